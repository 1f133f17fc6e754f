//! Finding and reading a recording: the one that was named, or the newest of this folder.

use crate::failure::{self, Failure};
use stackglass_profile::Recording;
use std::path::{Path, PathBuf};

/// Reads `file`, or the newest recording here. A recording that was never finished (or still grows)
/// is read as far as it goes, and its names are looked for now.
pub(crate) fn read(file: Option<&Path>) -> Result<(PathBuf, Recording), Failure> {
    let path = match file {
        Some(path) => path.to_path_buf(),
        None => newest()?,
    };
    let (mut recording, completeness) = stackglass_files::read(&path).map_err(Failure::new)?;
    if !completeness.is_complete() {
        failure::say(&format!("{}: {completeness}", path.display()));
    }
    if recording.symbols.is_empty() && !recording.stacks.locations().is_empty() {
        stackglass_symbols::symbolize(&mut recording, &Default::default(), &mut |_| ());
    }
    Ok((path, recording))
}

fn newest() -> Result<PathBuf, Failure> {
    stackglass_files::latest(".")
        .map_err(|error| Failure::new(format!("cannot look for recordings in this folder: {error}")))?
        .ok_or_else(|| {
            Failure::new("no recording (*.glass) in this folder: make one with `stackglass record -- PROGRAM`, or name one")
        })
}
