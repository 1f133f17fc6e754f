//! Reads heap snapshots of any origin.

mod continued;
mod from_parts;
mod groups;
pub(super) mod single;

use super::error::HeapSnapshotError;
use super::in_recording;
use super::part_files::{EDGES, METADATA, NODES, STRINGS, part};
use crate::glass::heap_snapshots::is_recording;
use stackglass_profile::heap_graph::HeapGraph;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Reads a heap snapshot: a `.heapsnapshot` of ours, of V8 or of Julia, four part files, or the last one in a recording.
///
/// Part files are named by their prefix, or by one of the four. Blocks of 4 GiB or more are one node, although they are
/// several in a `.heapsnapshot`; see [`CONTINUED`](super::CONTINUED).
///
/// # Errors
/// If the file cannot be read, is damaged, truncated, or no heap snapshot.
pub fn read(path: &Path) -> Result<HeapGraph, HeapSnapshotError> {
    if let Some(prefix) = prefix_of(path) {
        return from_parts::read(&prefix);
    }
    let file = File::open(path).map_err(HeapSnapshotError::system("open", path))?;
    let mut first = [0; 8];
    if file.read_at(&mut first, 0).is_ok_and(|count| is_recording(&first[..count])) {
        return in_recording::read_last(path, &file);
    }
    let meta = file.metadata().map_err(HeapSnapshotError::system("open", path))?;
    let size = if meta.is_file() { meta.len() } else { u64::MAX };
    single::read(file, size).map_err(|fault| fault.in_file(path))
}

/// As [`read`], of a `.heapsnapshot` in memory.
///
/// # Errors
/// As [`read`].
pub fn read_bytes(bytes: &[u8]) -> Result<HeapGraph, HeapSnapshotError> {
    single::read(bytes, bytes.len() as u64).map_err(|fault| fault.in_file(Path::new("the snapshot")))
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
