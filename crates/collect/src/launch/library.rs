//! Unpacks the preload library from the command to a file that the loader can map.
//!
//! It goes to a private folder in the user's cache (0700, owner checked). Its name depends on its content, and it is
//! put in place atomically (rename). If there is no such folder, or code may not be mapped from it, a sealed memory
//! file is used while the launcher is alive.
//!
//! Programs that root starts may change their user, and their children load the library as that user. So root's
//! library is readable by all and writable only by root (0755, owner checked as well).

use super::program::file_size_limit;
use crate::memory_file::memory_file;
use crate::private_folder::user;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Age at which the library of another version is removed.
const OLD: Duration = Duration::from_secs(30 * 24 * 3600);

/// Root's folders, the best first.
const FOR_ALL: [&str; 2] = ["/var/cache/stackglass", "/var/tmp/stackglass-0"];

/// Which users load the library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Readers {
    /// Programs of this user.
    Own,
    /// Programs of any user.
    All,
}

impl Readers {
    /// Mode of the folder and of the file.
    fn mode(self) -> u32 {
        match self {
            Readers::Own => 0o700,
            Readers::All => 0o755,
        }
    }

    /// Whether they can use a file or folder with this mode.
    fn may_use(self, path: &Path) -> bool {
        let mode = fs::symlink_metadata(path).map_or(0, |meta| meta.permissions().mode());
        mode & self.mode() == self.mode()
    }
}

/// The unpacked library.
#[derive(Debug)]
pub struct Library {
    path: PathBuf,
    /// Keeps a memory file alive.
    _memory: Option<OwnedFd>,
}

impl Library {
    /// Unpacks `bytes`, unless that was done before. `name` is a file name that changes whenever they do.
    ///
    /// # Errors
    /// If neither a cache folder nor a memory file can be used.
    pub fn unpack(bytes: &[u8], name: &str) -> io::Result<Library> {
        let mut found = None;
        if user() == 0 {
            let folders = FOR_ALL.map(Path::new).into_iter().filter(|folder| all_may_pass(folder.parent()));
            found = folders.filter_map(|folder| in_folder(folder, bytes, name, Readers::All).ok()).next();
        }
        let own = || in_folder(&cache_folder()?, bytes, name, Readers::Own).ok();
        match found.or_else(own) {
            Some(path) => Ok(Library { path, _memory: None }),
            None => in_memory(bytes),
        }
    }

    /// Its path, absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// `$XDG_CACHE_HOME/stackglass` or `~/.cache/stackglass`.
fn cache_folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))?;
    Some(cache.join("stackglass"))
}

/// Whether any user may enter `folder` and all folders above it.
fn all_may_pass(folder: Option<&Path>) -> bool {
    let mut above = folder.into_iter().flat_map(Path::ancestors);
    above.all(|folder| fs::metadata(folder).is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0))
}

fn in_folder(folder: &Path, bytes: &[u8], name: &str, readers: Readers) -> io::Result<PathBuf> {
    let path = folder.join(name);
    let is_there = is_private(folder)
        && is_private_file(&path)
        && [folder, &path].into_iter().all(|path| readers.may_use(path));
    if is_there && fs::read(&path).is_ok_and(|there| there == bytes) {
        return if may_be_mapped(folder) { Ok(path) } else { Err(io::ErrorKind::PermissionDenied.into()) };
    }
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    if !is_private(folder) || !may_be_mapped(folder) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mode = Permissions::from_mode(readers.mode());
    if !readers.may_use(folder) {
        fs::set_permissions(folder, mode.clone())?;
    }
    check_limit(bytes)?;
    let unfinished = folder.join(format!("{name}.{}", std::process::id()));
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o700).open(&unfinished)?;
        file.write_all(bytes)?;
        // Set afterwards: a mode at creation is restricted by the umask.
        file.set_permissions(mode)?;
        fs::rename(&unfinished, &path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    remove_old(folder, name);
    written.map(|()| path)
}

/// Removes libraries of other versions that were not unpacked for a month. Programs that still run with one keep
/// their mapping.
fn remove_old(folder: &Path, name: &str) {
    let Some((prefix, _)) = name.split_once('-') else { return };
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let other = entry.file_name();
        let is_library = other.as_bytes().starts_with(prefix.as_bytes());
        let age = entry.metadata().and_then(|meta| meta.modified()).ok().and_then(|at| at.elapsed().ok());
        if is_library && other != name && age.is_some_and(|age| age > OLD) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Writing beyond the limit of a file's size would kill this process with SIGXFSZ.
fn check_limit(bytes: &[u8]) -> io::Result<()> {
    if file_size_limit() < bytes.len() as u64 {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "files may not grow that large (ulimit -f)"));
    }
    Ok(())
}

/// Whether a folder belongs to this user and no one else can write to it.
fn is_private(folder: &Path) -> bool {
    fs::symlink_metadata(folder)
        .is_ok_and(|meta| meta.is_dir() && meta.uid() == user() && meta.permissions().mode() & 0o022 == 0)
}

fn is_private_file(path: &Path) -> bool {
    fs::symlink_metadata(path)
        .is_ok_and(|meta| meta.is_file() && meta.uid() == user() && meta.permissions().mode() & 0o022 == 0)
}

/// Whether code may be mapped from a file system (no noexec).
fn may_be_mapped(folder: &Path) -> bool {
    let Ok(path) = std::ffi::CString::new(folder.as_os_str().as_bytes()) else { return false };
    // SAFETY: `path` ends with a zero byte; all-zero is a value of the struct, which the kernel fills.
    unsafe {
        let mut answer: libc::statvfs = std::mem::zeroed();
        libc::statvfs(path.as_ptr(), &mut answer) == 0 && answer.f_flag & libc::ST_NOEXEC == 0
    }
}

/// A sealed memory file, by its path in `/proc` of this process.
fn in_memory(bytes: &[u8]) -> io::Result<Library> {
    check_limit(bytes)?;
    let mut file = memory_file(c"stackglass", libc::MFD_ALLOW_SEALING)?;
    file.write_all(bytes)?;
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE | libc::F_SEAL_SEAL;
    // SAFETY: a call on an open descriptor.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into();
    Ok(Library { path, _memory: Some(file.into()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_unpacked_once_and_repaired_when_changed() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("stackglass");
        let path = in_folder(&folder, b"library", "l.so", Readers::Own).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        let inode = fs::metadata(&path).unwrap().ino();
        in_folder(&folder, b"library", "l.so", Readers::Own).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().ino(), inode, "left as it was");
        fs::write(&path, b"libbary").unwrap();
        in_folder(&folder, b"library", "l.so", Readers::Own).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"library");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing is left over");
    }

    #[test]
    fn roots_library_can_be_read_by_all() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("stackglass");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        in_folder(&folder, b"library", "l.so", Readers::Own).unwrap();
        let path = in_folder(&folder, b"library", "l.so", Readers::All).unwrap();
        assert_eq!((mode(&folder), mode(&path)), (0o755, 0o755));
        fs::set_permissions(place.path(), Permissions::from_mode(0o700)).unwrap();
        assert!(!all_may_pass(Some(place.path())) && !all_may_pass(Some(&folder)));
        assert!(all_may_pass(Some("/usr/bin".as_ref())));
    }

    #[test]
    fn libraries_of_other_versions_go_after_a_month() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("stackglass");
        in_folder(&folder, b"one", "libx-1.so", Readers::Own).unwrap();
        in_folder(&folder, b"two", "libx-2.so", Readers::Own).unwrap();
        in_folder(&folder, b"other", "note-1.so", Readers::Own).unwrap();
        for name in ["libx-1.so", "note-1.so"] {
            let file = fs::File::options().write(true).open(folder.join(name)).unwrap();
            file.set_modified(std::time::SystemTime::now() - OLD - Duration::from_secs(60)).unwrap();
        }
        in_folder(&folder, b"three", "libx-3.so", Readers::Own).unwrap();
        let mut left: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["libx-2.so", "libx-3.so", "note-1.so"]);
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_not_trusted() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("stackglass");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(in_folder(&folder, b"library", "l.so", Readers::Own).is_err());
    }

    #[test]
    fn a_memory_file_can_be_read_by_its_path_and_not_written() {
        let library = in_memory(b"library").unwrap();
        assert_eq!(fs::read(library.path()).unwrap(), b"library");
        assert!(fs::write(library.path(), b"other").is_err());
    }
}
