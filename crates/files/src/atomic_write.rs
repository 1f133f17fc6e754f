//! Files that appear under their name only when they are complete.

use crate::unnamed_file::UnnamedFile;
use std::fs::{File, Metadata, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Writes a file that appears under its name only when `fill` has succeeded. Until then, and after an error or a crash, an
/// existing file stays.
///
/// A replaced file keeps its mode. A new file has the usual one (0666 without the umask). Devices and pipes are written
/// directly.
///
/// # Errors
/// The errors of `fill` or the system. No file is left behind.
pub fn write_atomically(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    write_atomically_with_mode(path, 0o666, fill)
}

/// As [`write_atomically`], with this mode, without the umask, for a new file.
///
/// # Errors
/// As [`write_atomically`].
pub fn write_atomically_with_mode(
    path: &Path,
    mode: u32,
    fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    match special(path)? {
        Some(file) => {
            let mut out = BufWriter::new(file);
            fill(&mut out)?;
            out.flush()
        }
        None => {
            let path = resolve(path);
            let replaced = path.metadata().ok();
            let mode = if replaced.is_some() { 0o600 } else { mode };
            let part = UnnamedFile::create(&path, mode)?;
            if let Some(replaced) = replaced {
                keep_mode(part.file(), &replaced)?;
            }
            let mut out = BufWriter::new(part.file().try_clone()?);
            fill(&mut out)?;
            out.flush()?;
            part.persist(&path)
        }
    }
}

/// Gives a file the mode of the one it replaces. Group permissions are copied only if the group is the same.
fn keep_mode(file: &File, replaced: &Metadata) -> io::Result<()> {
    let same_group = file.metadata()?.gid() == replaced.gid();
    let kept = if same_group { 0o777 } else { 0o707 };
    file.set_permissions(Permissions::from_mode(replaced.mode() & kept))
}

/// The target of a path through symbolic links, so that renaming does not replace a link.
pub(crate) fn resolve(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Opens an existing device or pipe of this name; `None` for files and missing names.
pub(crate) fn special(path: &Path) -> io::Result<Option<File>> {
    match path.metadata() {
        Ok(meta) if meta.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(meta) if !meta.is_file() => Ok(Some(File::options().write(true).open(path)?)),
        Ok(_) => Ok(None),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}
