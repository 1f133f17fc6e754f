//! `.glass`: our recording, a row of checked chunks. `FORMAT.md` in this crate says each byte.
//!
//! * [`GlassWriter`] while a program runs: [`create`](GlassWriter::create), then
//!   [`append`](GlassWriter::append) every 100 ms to 1 s, then [`finish`](GlassWriter::finish).
//! * [`write()`] for a recording that is already complete.
//! * [`read()`] for most readers, [`read_merged`] for recordings of any size, [`GlassReader`] to
//!   see every sample of such a one.
//! * [`read_tables`] for what a recording says besides its samples, at once however large it is.
//! * [`latest`] for the recording made last.

mod bytes;
mod chunk;
mod columns;
mod contents;
mod error;
mod index;
mod merged;
mod names;
mod parts;
mod reader;
mod samples;
mod tables;
mod tasks;
mod writer;

pub use error::{ReadError, WriteError};
pub use index::Totals;
pub use merged::{read_merged, read_merged_from};
pub use parts::read_tables;
pub use reader::{Completeness, GlassReader, read, read_from};
pub use writer::{GlassWriter, write};

use std::io;
use std::path::{Path, PathBuf};

/// The newest `*.glass` file of a folder that is a recording, by the time it was last written to; of
/// equally new ones the last by name. Recordings go to the current folder unless told otherwise.
///
/// `passed_over` is told of newer ones that cannot be read.
///
/// # Errors
/// When the folder cannot be read. Files that vanish meanwhile are passed over.
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
        let Ok(about) = path.metadata() else { continue };
        let Ok(modified) = about.modified() else { continue };
        if about.is_file() {
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
