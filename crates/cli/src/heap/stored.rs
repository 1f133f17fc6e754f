//! Snapshots inside a recording, and how they are named: `app.glass` is the last one, `app.glass:2` the second.

use crate::failure::Failure;
use crate::input;
use stackglass_files::heapsnapshot::{self, StoredSnapshot};
use std::path::{Path, PathBuf};

/// A snapshot in a recording.
pub(crate) struct Stored {
    /// The recording.
    pub(crate) recording: PathBuf,
    /// Where it is there.
    pub(crate) snapshot: StoredSnapshot,
}

/// The snapshot that a path names; `None` if it names no recording.
pub(crate) fn find(path: &Path) -> Result<Option<Stored>, Failure> {
    let (recording, number) = match numbered(path) {
        Some((recording, number)) => (recording, Some(number)),
        None => (path.to_owned(), None),
    };
    if !input::is_recording(&recording) {
        return Ok(None);
    }
    let stored = heapsnapshot::stored_snapshots(&recording).map_err(Failure::new)?;
    let name = recording.display();
    let snapshot = match (number, stored.len()) {
        (_, 0) => {
            let line = format!(
                "{name} has no heap snapshot: `record --allocs --heap-at exit` keeps one if the program ends by exit or \
                 returns from main(), not by _exit, abort or a signal"
            );
            return Err(Failure::new(line));
        }
        (None, count) => stored[count - 1],
        (Some(number), count) => {
            let snapshot = number.checked_sub(1).and_then(|index| stored.get(index));
            let wrong = || {
                Failure::new(format!("{name} has no heap snapshot {number}: its snapshots are 1 to {count}"))
            };
            *snapshot.ok_or_else(wrong)?
        }
    };
    Ok(Some(Stored { recording, snapshot }))
}

/// `app.glass:2` is `app.glass` and 2, unless there is a file with that name.
fn numbered(path: &Path) -> Option<(PathBuf, usize)> {
    if path.exists() {
        return None;
    }
    let name = path.file_name()?.to_str()?;
    let (name, number) = name.rsplit_once(':')?;
    Some((path.with_file_name(name), number.parse().ok()?))
}
