//! `.glass`: the project's format, a sequence of chunks with checksums. `FORMAT.md` in this crate describes it.
//!
//! * [`GlassWriter`] while a program runs: [`create`](GlassWriter::create), then
//!   [`append`](GlassWriter::append) every 100 ms to 1 s, then [`finish`](GlassWriter::finish).
//! * [`write()`] for a recording that is already complete.
//! * [`read()`] for most uses, [`read_merged`] for recordings of any size, [`GlassReader`] for every sample of those.
//! * [`read_tables`] for everything but samples, fast for any size.
//! * [`latest`] for the newest recording.

mod allocations;
mod bytes;
mod chunk;
mod columns;
mod contents;
mod error;
pub(crate) mod heap_snapshots;
mod index;
mod merged;
mod names;
mod parts;
mod reader;
mod samples;
mod slices;
mod spreads;
mod tables;
mod tasks;
mod writer;

pub use error::{ReadError, WriteError};
pub use index::Totals;
pub use merged::{read_merged, read_merged_from, read_merged_part};
pub use parts::read_tables;
pub use reader::{Completeness, GlassReader, read, read_from, read_rows, read_rows_from};
pub use writer::{GlassWriter, write};

use std::io;
use std::path::{Path, PathBuf};

/// The newest recording `*.glass` of a folder, by modification time, then by name.
///
/// `passed_over` is called with newer files that cannot be read.
///
/// # Errors
/// If the folder cannot be read. Files that disappear meanwhile are skipped.
pub fn latest(
    folder: impl AsRef<Path>,
    mut passed_over: impl FnMut(ReadError),
) -> io::Result<Option<PathBuf>> {
    let mut found = Vec::new();
    for entry in folder.as_ref().read_dir()? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "glass") {
            continue;
        }
        let Ok(meta) = path.metadata() else { continue };
        let Ok(modified) = meta.modified() else { continue };
        if meta.is_file() {
            found.push((modified, path));
        }
    }
    found.sort();
    let newest_first = found.into_iter().rev().map(|(_, path)| path);
    let mut readable = newest_first.filter(|path| match GlassReader::open(path) {
        Ok(_) => true,
        Err(ReadError::Open { source, .. }) if source.kind() == io::ErrorKind::NotFound => false,
        Err(error) => {
            passed_over(error);
            false
        }
    });
    Ok(readable.next())
}
