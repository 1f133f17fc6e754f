//! What a page of `stackglass view` shows beside the samples: a heap snapshot, tasks, and an earlier recording.

use crate::failure::Failure;
use crate::heap::open::{self, Progress};
use crate::input;
use stackglass_files::heapsnapshot::{self, ReadOptions};
use stackglass_profile::heap_graph::HeapGraph;
use stackglass_view::TaskDump;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// What a file is that is no recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Alone {
    /// A heap snapshot.
    Heap,
    /// The output of `stackglass tasks --json`.
    Tasks,
}

/// What a file is, if it is no recording.
pub(crate) fn alone(file: &Path) -> Option<Alone> {
    if open::is_snapshot(file) {
        return Some(Alone::Heap);
    }
    open::begins_with_key(file, "pid").then_some(Alone::Tasks)
}

/// The tasks in a file, and its name.
pub(crate) fn tasks_of(file: &Path) -> Result<(String, TaskDump), Failure> {
    let cannot = |error: &dyn Display| Failure::new(format!("{}: {error}", file.display()));
    let other = |error: &dyn Display| {
        cannot(&format!("this is not the output of `stackglass tasks PID --json`: {error}"))
    };
    let json = std::fs::read(file).map_err(|error| cannot(&error))?;
    let json = String::from_utf8(json).map_err(|error| other(&error))?;
    let dump = TaskDump::read(&json).map_err(|error| other(&error))?;
    Ok((name_of(file), dump))
}

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
    Ok(SnapshotFile { name: name_of(&path), graph })
}

/// The name of a file in a page.
pub(crate) fn name_of(path: &Path) -> String {
    path.file_name().map_or("standard input".into(), |name| name.to_string_lossy().into_owned())
}
