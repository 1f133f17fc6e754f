//! Files that appear under their name only when they are complete.

use std::fs::{File, Metadata, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Writes a file that appears under its name only when `fill` has succeeded; until then (and
/// after an error or a crash) whatever had the name keeps it.
///
/// A file that is replaced keeps its mode; that of a new one is as usual (0666 less the umask). A
/// device or pipe is written to directly.
///
/// # Errors
/// What `fill` or the system says; nothing is left behind.
pub fn write_whole(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    write_whole_at_most(path, 0o666, fill)
}

/// As [`write_whole`], the mode of a new file being this one less the umask.
///
/// # Errors
/// As [`write_whole`].
pub fn write_whole_at_most(
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
            let (file, part) = beside(&path, mode)?.into_parts();
            if let Some(replaced) = replaced {
                keep_mode(&file, &replaced)?;
            }
            let mut out = BufWriter::new(file);
            fill(&mut out)?;
            out.flush()?;
            part.persist(&path).map_err(|e| e.error)
        }
    }
}

/// Gives a file the mode of the one it replaces; what only that one's group may do, only for the same group.
fn keep_mode(file: &File, replaced: &Metadata) -> io::Result<()> {
    let same_group = file.metadata()?.gid() == replaced.gid();
    let kept = if same_group { 0o777 } else { 0o707 };
    file.set_permissions(Permissions::from_mode(replaced.mode() & kept))
}

/// A file with a passing name in the same folder, removed unless it is given its final name.
pub(crate) fn beside(path: &Path, mode: u32) -> io::Result<tempfile::NamedTempFile> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    tempfile::Builder::new()
        .prefix(".stackglass-")
        .suffix(".part")
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder)
        .map_err(without_passing_name)
}

/// The system's own words: the passing name, which tempfile adds, tells people nothing.
fn without_passing_name(error: io::Error) -> io::Error {
    match error.to_string().split_once(" at path \"") {
        Some((words, _)) => io::Error::new(error.kind(), words),
        None => error,
    }
}

/// The file a name stands for: through symbolic links, so that renaming does not replace them.
pub(crate) fn resolve(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Opens what has this name already when it is neither a file nor missing: a device, a pipe.
pub(crate) fn special(path: &Path) -> io::Result<Option<File>> {
    match path.metadata() {
        Ok(about) if about.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(about) if !about.is_file() => Ok(Some(File::options().write(true).open(path)?)),
        Ok(_) => Ok(None),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}
