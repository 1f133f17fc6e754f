//! Files without a name until they are complete: if their writer is killed, nothing remains.
//!
//! The kernel creates such a file in a folder (`O_TMPFILE`), and links it to its name at the end. Where the file system cannot,
//! the file has a hidden name meanwhile.

use crate::hidden_file::{beside, folder, hidden_name, without_passing_name};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// A file that has no name yet. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct UnnamedFile {
    file: File,
    /// Its hidden name, where it must have one.
    hidden: Option<TempPath>,
}

impl UnnamedFile {
    /// Creates a file in the folder of `path`, with this mode, less the bits of the umask.
    pub(crate) fn create(path: &Path, mode: u32) -> io::Result<UnnamedFile> {
        if let Some(file) = without_name(path, mode) {
            return Ok(UnnamedFile { file, hidden: None });
        }
        let (file, hidden) = beside(path, mode)?.into_parts();
        Ok(UnnamedFile { file, hidden: Some(hidden) })
    }

    /// The open file, for reading and writing.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Names the file `path`, which replaces a file of that name.
    ///
    /// # Errors
    /// If the system refuses. The existing file stays.
    pub(crate) fn persist(self, path: &Path) -> io::Result<()> {
        if let Some(hidden) = self.hidden {
            return hidden.persist(path).map_err(|error| without_passing_name(error.error));
        }
        match link(&self.file, path) {
            // Only renaming replaces a file.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let hidden = hidden_name(0o600)
                    .make_in(folder(path), |hidden| link(&self.file, hidden))
                    .map_err(without_passing_name)?;
                let persisted = hidden.into_temp_path().persist(path);
                persisted.map_err(|error| without_passing_name(error.error))
            }
            linked => linked,
        }
    }
}

fn without_name(path: &Path, mode: u32) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(open(folder(path), flags, Mode::from_raw_mode(mode)).ok()?);
    // Without /proc, it could not get a name.
    descriptor(&file).symlink_metadata().is_ok().then_some(file)
}

fn link(file: &File, path: &Path) -> io::Result<()> {
    Ok(linkat(CWD, descriptor(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

fn descriptor(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_has_no_name_before_it_is_complete() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("name");
        for text in ["first", "second"] {
            let before = fs::read_dir(place.path()).unwrap().count();
            let whole = UnnamedFile::create(&path, 0o600).unwrap();
            whole.file().write_all(text.as_bytes()).unwrap();
            let hidden = usize::from(whole.hidden.is_some());
            assert_eq!(fs::read_dir(place.path()).unwrap().count(), before + hidden);
            whole.persist(&path).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
        }
        drop(UnnamedFile::create(&path, 0o600).unwrap());
        assert!(UnnamedFile::create(&place.path().join("none/name"), 0o600).is_err());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }
}
