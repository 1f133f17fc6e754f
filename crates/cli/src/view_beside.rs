//! What a page of `stackglass view` shows beside the samples: a heap snapshot.

use crate::failure::Failure;
use crate::heap::open::{self, Progress};
use crate::input;
use stackglass_files::heapsnapshot::{self, ReadOptions};
use stackglass_profile::heap_graph::HeapGraph;
use std::path::{Path, PathBuf};

/// A heap snapshot, and where it comes from.
pub(crate) struct SnapshotFile {
    pub(crate) name: String,
    pub(crate) graph: HeapGraph,
}

/// The snapshot that is shown with a file: the given one, else the last one in the recording, else the file of the same name beside it.
pub(crate) fn heap_of(file: &Path, given: Option<&Path>) -> Result<Option<SnapshotFile>, Failure> {
    let path = match given {
        Some(given) => given.to_owned(),
        None if open::is_snapshot(file) => file.to_owned(),
        None if has_snapshot(file) => file.to_owned(),
        None => {
            let beside = file.with_extension("heapsnapshot");
            if input::is_stream(file) || !open::is_snapshot(&beside) {
                return Ok(None);
            }
            beside
        }
    };
    read(path).map(Some)
}

/// Whether a recording has a complete snapshot.
fn has_snapshot(file: &Path) -> bool {
    let stored = input::is_recording(file).then(|| heapsnapshot::stored_snapshots(file).ok()).flatten();
    stored.is_some_and(|stored| stored.last().is_some_and(|last| last.is_complete))
}

fn read(path: PathBuf) -> Result<SnapshotFile, Failure> {
    let progress = Progress::new();
    let graph = open::read(&path, ReadOptions::default(), &progress)?;
    progress.step("searching for what holds what");
    let name = path.file_name().map_or("standard input".into(), |name| name.to_string_lossy().into_owned());
    Ok(SnapshotFile { name, graph })
}
