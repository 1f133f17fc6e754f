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

mod addresses;
mod allocation_stacks;
mod assemble;
mod error;
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
pub use in_recording::{
    add_to_recording, extract, extract_to, read_stored, read_stored_with, stored_snapshots,
};
pub use limits::{CONTINUED, MOST_NODES};
pub use part_files::cleanup;
pub use parts_writer::PartsWriter;

use crate::glass::heap_snapshots::is_recording;
use part_files::{EDGES, METADATA, NODES, STRINGS, part};
use stackglass_profile::heap_graph::HeapGraph;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Reads a heap snapshot: a `.heapsnapshot` of ours, of V8 or of Julia, four part files, or the last one in a recording.
///
/// Part files are named by their prefix, or by one of the four. Blocks of 4 GiB or more are one node, although they are
/// several in a `.heapsnapshot`; see [`CONTINUED`].
///
/// # Errors
/// If the file cannot be read, is damaged, truncated, or no heap snapshot.
pub fn read(path: &Path) -> Result<HeapGraph, HeapSnapshotError> {
    read_with(path, ReadOptions::default())
}

/// What is read of a snapshot, beside the graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReadOptions {
    /// Fill [`HeapGraph::addresses`], which takes 12 bytes for each node. Only snapshots of ours have addresses.
    pub addresses: bool,
}

/// As [`read`], with options.
///
/// # Errors
/// As [`read`].
pub fn read_with(path: &Path, options: ReadOptions) -> Result<HeapGraph, HeapSnapshotError> {
    if let Some(prefix) = prefix_of(path) {
        return read::from_parts::read(&prefix, options);
    }
    let file = File::open(path).map_err(HeapSnapshotError::system("open", path))?;
    let mut first = [0; 8];
    if file.read_at(&mut first, 0).is_ok_and(|count| is_recording(&first[..count])) {
        return in_recording::read_last(path, &file, options);
    }
    let meta = file.metadata().map_err(HeapSnapshotError::system("open", path))?;
    let size = if meta.is_file() { meta.len() } else { u64::MAX };
    read::single::read(file, size, options).map_err(|fault| fault.in_file(path))
}

/// As [`read`], of a `.heapsnapshot` in memory, with addresses.
///
/// # Errors
/// As [`read`].
pub fn read_bytes(bytes: &[u8]) -> Result<HeapGraph, HeapSnapshotError> {
    let options = ReadOptions { addresses: true };
    read::single::read(bytes, bytes.len() as u64, options)
        .map_err(|fault| fault.in_file(Path::new("the snapshot")))
}

/// The prefix of part files, if a path is such a prefix or one of the files.
fn prefix_of(path: &Path) -> Option<PathBuf> {
    if path.is_file() {
        let text = path.as_os_str().as_encoded_bytes();
        let ending =
            [METADATA, NODES, EDGES, STRINGS].into_iter().find(|end| text.ends_with(end.as_bytes()))?;
        let name = path.file_name()?.to_str()?.strip_suffix(ending)?;
        let prefix = path.with_file_name(name);
        return part(&prefix, METADATA).exists().then_some(prefix);
    }
    (!path.exists() && part(path, METADATA).exists()).then(|| path.to_owned())
}
