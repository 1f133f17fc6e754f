//! Heap snapshots inside recordings, so that time, allocations and heap of one run stay together.

use super::ReadOptions;
use super::error::HeapSnapshotError;
use super::read::single;
use crate::atomic_write::write_atomically_with_mode;
use crate::fault::Fault;
use crate::glass::heap_snapshots::{self, SnapshotBytes, StoredSnapshot};
use stackglass_profile::heap_graph::HeapGraph;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;

/// Adds the `.heapsnapshot` file `snapshot` to a complete recording. `clock` is CLOCK_MONOTONIC in nanoseconds when it was
/// taken, 0 if unknown.
///
/// The recording is copied to a temporary file, which replaces it when it is complete.
///
/// # Errors
/// If the recording is incomplete or damaged, if `snapshot` is no heap snapshot, or if the system refuses. The recording
/// stays as it was.
pub fn add_to_recording(recording: &Path, snapshot: &Path, clock: u64) -> Result<(), HeapSnapshotError> {
    let mut input = open(snapshot)?;
    let size = input.metadata().map_err(HeapSnapshotError::system("open", snapshot))?.len();
    let mut json = super::json::Scanner::new(&input);
    json.expect(b'{').and_then(|()| json.expect(b'"')).map_err(|_| {
        HeapSnapshotError::invalid(snapshot, "no heap snapshot: it does not begin with an object of JSON")
    })?;
    input.rewind().map_err(HeapSnapshotError::system("read", snapshot))?;
    let old = open(recording)?;
    replace(recording, |out| heap_snapshots::add(&old, &mut input, size, clock, out), recording)
}

/// The heap snapshots in a recording, in the order in which they were added.
///
/// # Errors
/// If the file cannot be read or is no recording.
pub fn stored_snapshots(recording: &Path) -> Result<Vec<StoredSnapshot>, HeapSnapshotError> {
    heap_snapshots::stored(&open(recording)?).map_err(|fault| fault.in_file(recording))
}

/// Reads a snapshot in a recording.
///
/// # Errors
/// If it cannot be read or is damaged.
pub fn read_stored(recording: &Path, snapshot: &StoredSnapshot) -> Result<HeapGraph, HeapSnapshotError> {
    read_stored_with(recording, snapshot, ReadOptions::default())
}

/// As [`read_stored`], with options.
///
/// # Errors
/// As [`read_stored`].
pub fn read_stored_with(
    recording: &Path,
    snapshot: &StoredSnapshot,
    options: ReadOptions,
) -> Result<HeapGraph, HeapSnapshotError> {
    read_bytes(&open(recording)?, snapshot, options).map_err(|fault| fault.in_file(recording))
}

/// Writes a snapshot in a recording to a `.heapsnapshot` file of its own, which appears when it is complete.
///
/// # Errors
/// If it cannot be read or written.
pub fn extract(recording: &Path, snapshot: &StoredSnapshot, out: &Path) -> Result<(), HeapSnapshotError> {
    let file = open(recording)?;
    replace(out, |out| copy(&file, snapshot, out), recording)
}

/// As [`extract`], to a stream.
///
/// # Errors
/// As [`extract`]. What was written by then is incomplete.
pub fn extract_to(
    recording: &Path,
    snapshot: &StoredSnapshot,
    out: &mut dyn Write,
) -> Result<(), HeapSnapshotError> {
    copy(&open(recording)?, snapshot, out).map_err(|fault| fault.in_file(recording))
}

fn copy(recording: &File, snapshot: &StoredSnapshot, out: &mut dyn Write) -> Result<(), Fault> {
    let mut bytes = SnapshotBytes::new(recording, snapshot)?;
    let mut piece = vec![0; 1 << 20];
    loop {
        match io::Read::read(&mut bytes, &mut piece)? {
            0 => return Ok(()),
            count => out.write_all(&piece[..count])?,
        }
    }
}

/// The last snapshot of a recording.
pub(super) fn read_last(
    path: &Path,
    file: &File,
    options: ReadOptions,
) -> Result<HeapGraph, HeapSnapshotError> {
    let stored = heap_snapshots::stored(file).map_err(|fault| fault.in_file(path))?;
    let Some(last) = stored.last() else {
        return Err(HeapSnapshotError::invalid(path, "a recording without a heap snapshot"));
    };
    read_bytes(file, last, options).map_err(|fault| fault.in_file(path))
}

fn read_bytes(file: &File, snapshot: &StoredSnapshot, options: ReadOptions) -> Result<HeapGraph, Fault> {
    // Its size is not checked before: arrays grow as they are read.
    single::read(SnapshotBytes::new(file, snapshot)?, u64::MAX, options)
}

fn open(path: &Path) -> Result<File, HeapSnapshotError> {
    File::open(path).map_err(HeapSnapshotError::system("open", path))
}

/// Writes a file that appears when it is complete. Faults are those of the file `read`.
fn replace(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> Result<(), Fault>,
    read: &Path,
) -> Result<(), HeapSnapshotError> {
    let mut fault = None;
    let written = write_atomically_with_mode(path, 0o600, |out| {
        fill(out).map_err(|found| match found {
            Fault::System(error) => error,
            found => {
                fault = Some(found);
                io::ErrorKind::Other.into()
            }
        })
    });
    match fault {
        Some(fault) => Err(fault.in_file(read)),
        None => written.map_err(HeapSnapshotError::system("write", path)),
    }
}
