//! Heap snapshots on disk: `.heapsnapshot`, the format of V8 and of Chrome's DevTools.
//!
//! * [`PartsWriter`] writes a graph to four part files while it is found. They have the layout of Julia's streamed
//!   snapshots.
//! * [`assemble`] makes one `.heapsnapshot` of four part files, ours or Julia's, in constant memory.
//! * [`read`] reads snapshots of ours, of V8 and of Julia.
//! * [`add_to_recording`] keeps a snapshot inside a recording, where [`read`] finds it.
//! * [`cleanup`] removes part files.
//!
//! The layout of all files is in `HEAPSNAPSHOT.md` in this crate.

mod allocation_stacks;
mod assemble;
pub(crate) mod error;
mod group_names;
mod in_recording;
mod json;
mod json_text;
mod limits;
mod meta;
mod part_files;
mod part_strings;
mod parts;
mod parts_writer;
mod read;

pub use crate::glass::heap_snapshots::StoredSnapshot;
pub use assemble::{AssembleOptions, Assembled, assemble, assemble_to, assemble_with};
pub use error::HeapSnapshotError;
pub use group_names::grouped_blocks;
pub use in_recording::{add_to_recording, extract, extract_to, read_stored, stored_snapshots};
pub use limits::{CONTINUED, MOST_NODES};
pub use part_files::cleanup;
pub use parts_writer::PartsWriter;
pub use read::{read, read_bytes};
