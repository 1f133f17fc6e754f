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
mod meta;
mod part_files;
mod part_strings;
mod parts_writer;
mod read;

pub use crate::glass::heap_snapshots::StoredSnapshot;
pub use assemble::{AssembleOptions, Assembled, assemble, assemble_to, assemble_with};
pub use error::HeapSnapshotError;
pub use group_names::grouped_blocks;
pub use in_recording::{add_to_recording, extract, extract_to, read_stored, stored_snapshots};
pub use part_files::cleanup;
pub use parts_writer::PartsWriter;
pub use read::{read, read_bytes};

/// The highest number of nodes: readers keep seven times the number of a node in 32 bits.
pub const MOST_NODES: u32 = u32::MAX / 7;

/// Name of the edges from a block of 4 GiB or more to the nodes that carry the rest of its size. Numbers of more than 32
/// bits wrap in viewers.
pub const CONTINUED: &str = "(continued)";
