//! Files with a hidden name until they are complete.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A file with a temporary name in the same folder. It is removed unless it gets its final name.
pub(crate) fn beside(path: &Path, mode: u32) -> io::Result<tempfile::NamedTempFile> {
    hidden_name(mode).tempfile_in(folder(path)).map_err(without_passing_name)
}

/// Hidden names of incomplete files.
pub(crate) fn hidden_name(mode: u32) -> tempfile::Builder<'static, 'static> {
    let mut names = tempfile::Builder::new();
    names.prefix(".stackglass-").suffix(".part").permissions(Permissions::from_mode(mode));
    names
}

/// The system's message without the temporary name, which tempfile adds.
pub(crate) fn without_passing_name(error: io::Error) -> io::Error {
    match error.to_string().split_once(" at path \"") {
        Some((words, _)) => io::Error::new(error.kind(), words),
        None => error,
    }
}

/// The folder of a file.
pub(crate) fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
