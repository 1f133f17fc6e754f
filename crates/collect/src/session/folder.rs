//! The session folder: private, checked, removed at the end, and swept if its launcher was killed.
//!
//! It is in memory if there is room (`/dev/shm`, then `$XDG_RUNTIME_DIR`, then `/tmp`). A lock on the file `session`
//! shows that the launcher is alive. The kernel releases the lock however the launcher ends, and it works across pid
//! namespaces.

use crate::private_folder::{is_private, user};
use crate::session::bus_guard::GuardedMap;
use stackglass_wire::{SESSION_FILE, SessionPage, SessionState};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::{Duration, SystemTime};

/// Prefix of the names of session folders; user id and process id follow.
const PREFIX: &str = "stackglass-";
/// Bytes of the session file.
const PAGE: usize = 4096;
/// A place with less free space than this is used only if there is no better one.
const ROOMY: u64 = 256 << 20;
/// A folder without a session file is swept if it is older than this.
const UNFINISHED: Duration = Duration::from_secs(60);

/// A session folder and its page.
pub struct Session {
    folder: PathBuf,
    map: GuardedMap,
    /// Holds the lock.
    _file: File,
}

impl Session {
    /// Creates a folder and a page that is not published yet. Sweeps the folders of dead launchers.
    ///
    /// # Errors
    /// If no place allows a private folder: the error of the last place.
    pub fn create() -> io::Result<Session> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for place in places() {
            sweep(&place);
            match Session::create_in(&place) {
                Ok(session) => return Ok(session),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn create_in(place: &Path) -> io::Result<Session> {
        let nanos = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.subsec_nanos());
        let name = format!("{PREFIX}{}-{}-{nanos}", user(), std::process::id());
        let folder = place.join(name);
        // Fails if anything with this name exists, links included.
        DirBuilder::new().mode(0o700).create(&folder)?;
        Session::fill(&folder).inspect_err(|_| {
            let _ = fs::remove_dir_all(&folder);
        })
    }

    fn fill(folder: &Path) -> io::Result<Session> {
        if !is_private(folder) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the session folder is not private"));
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(folder.join(SESSION_FILE))?;
        lock(&file)?;
        // Writes the whole page: a full disk is noticed here, not when the page is accessed.
        (&file).write_all(&[0; PAGE])?;
        let map = GuardedMap::new(file.as_fd(), PAGE)?;
        Ok(Session { folder: folder.to_path_buf(), map, _file: file })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The page.
    pub fn page(&self) -> &SessionPage {
        const { assert!(size_of::<SessionPage>() <= PAGE) };
        // SAFETY: PAGE bytes are mapped while `self` lives, and the size is checked above. A mapping is page-aligned.
        // The type is made of atomics, for which any bytes are a value.
        unsafe { &*self.map.base().cast::<SessionPage>() }
    }

    /// Changes the state that all guests follow.
    pub fn set_state(&self, state: SessionState) {
        self.page().state.store(state as u32, Release);
    }

    /// Shows the guests that the launcher is alive.
    pub fn beat(&self) {
        self.page().beat.fetch_add(1, Relaxed);
    }
}

/// The page of a session that another process has created.
pub struct OtherSession {
    map: GuardedMap,
}

impl OtherSession {
    /// Opens the page in `folder`.
    ///
    /// # Errors
    /// If it cannot be opened and written to, or is of another version.
    pub fn open(folder: &Path) -> io::Result<OtherSession> {
        let flags = libc::O_NOFOLLOW;
        let file =
            OpenOptions::new().read(true).write(true).custom_flags(flags).open(folder.join(SESSION_FILE))?;
        if file.metadata()?.len() < PAGE as u64 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let session = OtherSession { map: GuardedMap::new(file.as_fd(), PAGE)? };
        if session.page().is_ready() { Ok(session) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    /// The page.
    pub fn page(&self) -> &SessionPage {
        // SAFETY: as for `Session::page`.
        unsafe { &*self.map.base().cast::<SessionPage>() }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.set_state(SessionState::Stopped);
        // There is no remedy if the folder cannot be removed.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Folders of this user's sessions whose launcher is alive, with its process id.
pub fn running() -> Vec<(PathBuf, u32)> {
    places()
        .iter()
        .flat_map(|place| mine_in(place))
        .filter(|folder| !is_stale(folder))
        .filter_map(|folder| {
            let page = fs::read(folder.join(SESSION_FILE)).ok()?;
            let at = std::mem::offset_of!(SessionPage, launcher);
            Some((folder, u32::from_ne_bytes(page.get(at..at + 4)?.try_into().ok()?)))
        })
        .filter(|(_, pid)| *pid != 0)
        .collect()
}

/// Process ids of this user's launchers that are alive.
pub fn running_launchers() -> Vec<u32> {
    let mut pids: Vec<u32> = running().into_iter().map(|(_, pid)| pid).collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// Requests that a launcher saves a snapshot of its recording.
///
/// # Errors
/// Those of kill(2).
pub fn ask_to_save(launcher: u32) -> io::Result<()> {
    // SAFETY: a system call without pointers.
    match unsafe { libc::kill(launcher as libc::pid_t, libc::SIGUSR2) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Places for a session folder, the best first.
fn places() -> Vec<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let mut places: Vec<(PathBuf, u64)> = [Some("/dev/shm".into()), runtime, Some("/tmp".into())]
        .into_iter()
        .flatten()
        .map(|place| {
            let free = free_bytes(&place);
            (place, free)
        })
        .collect();
    places.sort_by_key(|(_, free)| std::cmp::Reverse((*free).min(ROOMY)));
    places.into_iter().map(|(place, _)| place).collect()
}

fn free_bytes(place: &Path) -> u64 {
    let Ok(path) = std::ffi::CString::new(place.as_os_str().as_bytes()) else { return 0 };
    // SAFETY: `path` ends with a zero byte; all-zero is a valid value of the struct, which the kernel fills.
    unsafe {
        let mut answer: libc::statvfs = std::mem::zeroed();
        if libc::statvfs(path.as_ptr(), &mut answer) != 0 {
            return 0;
        }
        answer.f_bavail.saturating_mul(answer.f_frsize)
    }
}

/// Removes this user's session folders whose launcher has died.
fn sweep(place: &Path) {
    for folder in mine_in(place).iter().filter(|folder| is_stale(folder)) {
        let _ = fs::remove_dir_all(folder);
    }
}

/// Session folders of this user.
fn mine_in(place: &Path) -> Vec<PathBuf> {
    let mine = format!("{PREFIX}{}-", user());
    let Ok(entries) = fs::read_dir(place) else { return Vec::new() };
    entries
        .flatten()
        .filter(|entry| entry.file_name().as_bytes().starts_with(mine.as_bytes()))
        .map(|entry| entry.path())
        .filter(|folder| is_private(folder))
        .collect()
}

fn is_stale(folder: &Path) -> bool {
    match File::open(folder.join(SESSION_FILE)) {
        Ok(file) => lock(&file).is_ok(),
        Err(_) => {
            let age =
                fs::metadata(folder).and_then(|meta| meta.modified()).ok().and_then(|at| at.elapsed().ok());
            age.is_some_and(|age| age > UNFINISHED)
        }
    }
}

/// Takes the lock of the launcher; an error if another process holds it.
fn lock(file: &File) -> io::Result<()> {
    // SAFETY: a call on an open descriptor.
    match unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_session_is_private_and_goes_away() {
        let place = tempfile::tempdir().unwrap();
        let session = Session::create_in(place.path()).unwrap();
        let folder = session.folder().to_path_buf();
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        session.page().publish();
        assert!(session.page().is_ready());
        sweep(place.path());
        assert!(folder.exists(), "a living launcher's folder stays");
        drop(session);
        assert!(!folder.exists());
    }

    #[test]
    fn a_dead_launchers_folder_is_swept_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let stale = place.path().join(format!("{PREFIX}{}-1-1", user()));
        DirBuilder::new().mode(0o700).create(&stale).unwrap();
        fs::write(stale.join(SESSION_FILE), [0; PAGE]).unwrap();
        fs::write(stale.join("p-1-1"), [0; 10]).unwrap();
        let young = place.path().join(format!("{PREFIX}{}-2-2", user()));
        DirBuilder::new().mode(0o700).create(&young).unwrap();
        let foreign = place.path().join("stackglass-notes");
        fs::create_dir(&foreign).unwrap();
        let target = place.path().join("precious");
        fs::create_dir(&target).unwrap();
        let link = place.path().join(format!("{PREFIX}{}-3-3", user()));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        sweep(place.path());
        assert!(!stale.exists());
        assert!(young.exists() && foreign.exists() && target.exists() && link.exists());
    }
}
