//! The session: a folder in which the launcher leaves its orders.
//!
//! The environment names the folder, and the folder holds one page. If either is missing, has another owner or is of another
//! version, there is no session, and the program runs as if the library were not there.

use crate::system::{self, Fd, PathText};
use core::ffi::CStr;
use stackglass_wire::{REQUESTS_FILE, Requests, SESSION_FILE, SessionPage};

/// Longest name of a folder.
pub const PATH_BYTES: usize = 512;

/// An open session. Never closed: the page stays mapped, also in forked children.
pub struct Session {
    /// The launcher's orders.
    pub page: &'static SessionPage,
    /// The folder, as an absolute path.
    pub folder: PathText<PATH_BYTES>,
}

/// Opens the session in `folder`.
///
/// `None` if there is none: the folder or its page is missing, belongs to another user, is not ready, or is of another
/// version.
pub fn open(folder: &CStr) -> Option<Session> {
    let bytes = folder.to_bytes();
    if bytes.first() != Some(&b'/') || bytes.len() + 64 > PATH_BYTES {
        return None;
    }
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let dir = Fd::open(libc::AT_FDCWD, folder, flags, 0)?;
    is_ours(&dir)?;
    let name = PathText::<32>::new().text(SESSION_FILE.as_bytes());
    let file = Fd::open(dir.raw(), name.as_c_str(), libc::O_RDONLY | libc::O_NOFOLLOW, 0)?;
    if is_ours(&file)? < size_of::<SessionPage>() as i64 {
        return None;
    }
    // SAFETY: made of atomics, for which any bytes are a value. We only read.
    let page = unsafe { map::<SessionPage>(&file, libc::PROT_READ)? };
    page.is_ready().then(|| Session { page, folder: PathText::new().text(bytes) })
}

impl Session {
    /// The page that counts peek requests, shared by all processes of the session and their forked children. `None` if the
    /// session has none.
    pub fn requests(&self) -> Option<&'static Requests> {
        let path = PathText::<PATH_BYTES>::new()
            .text(self.folder.as_bytes())
            .text(b"/")
            .text(REQUESTS_FILE.as_bytes());
        let file = Fd::open(libc::AT_FDCWD, path.as_c_str(), libc::O_RDWR | libc::O_NOFOLLOW, 0)?;
        if is_ours(&file)? < size_of::<Requests>() as i64 {
            return None;
        }
        // SAFETY: made of atomics, for which any bytes are a value.
        unsafe { map::<Requests>(&file, libc::PROT_READ | libc::PROT_WRITE) }
    }
}

/// Maps a shared file for as long as the process lives.
///
/// # Safety
/// The file must be large enough for a `T`, and any bytes in it, at any time, must be a value of `T`.
unsafe fn map<T>(file: &Fd, protection: i32) -> Option<&'static T> {
    // SAFETY: a new mapping at an address of the kernel's choice; never unmapped, page-aligned, as large as the caller says.
    unsafe {
        let at =
            system::mmap(core::ptr::null_mut(), size_of::<T>(), protection, libc::MAP_SHARED, file.raw(), 0);
        (at != libc::MAP_FAILED).then(|| &*at.cast::<T>())
    }
}

/// The size of the file, if it belongs to the effective user.
fn is_ours(file: &Fd) -> Option<i64> {
    // SAFETY: an all-zero stat is a value, and the kernel fills it. The user is the one that the kernel told at the start: without a call.
    unsafe {
        let mut stat: libc::stat = core::mem::zeroed();
        (libc::fstat(file.raw(), &mut stat) == 0 && stat.st_uid == libc::getauxval(libc::AT_EUID) as u32)
            .then_some(stat.st_size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    fn folder(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("stackglass-session-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        path
    }

    fn open_path(path: &std::path::Path) -> Option<Session> {
        open(&CString::new(path.as_os_str().as_bytes()).unwrap())
    }

    fn bytes_of(page: &SessionPage) -> &[u8] {
        // SAFETY: the page is plain words without padding, and nobody writes to it meanwhile.
        unsafe { core::slice::from_raw_parts((page as *const SessionPage).cast(), size_of::<SessionPage>()) }
    }

    #[test]
    fn only_a_ready_page_is_a_session() {
        let path = folder("ready");
        assert!(open_path(&path).is_none(), "no page");
        let page = SessionPage::new();
        std::fs::write(path.join(SESSION_FILE), bytes_of(&page)).unwrap();
        assert!(open_path(&path).is_none(), "not ready");
        page.publish();
        std::fs::write(path.join(SESSION_FILE), &bytes_of(&page)[..16]).unwrap();
        assert!(open_path(&path).is_none(), "cut off");
        std::fs::write(path.join(SESSION_FILE), bytes_of(&page)).unwrap();
        let session = open_path(&path).unwrap();
        assert!(session.requests().is_none(), "a session that samples");
        std::fs::write(path.join(REQUESTS_FILE), [0; 4096]).unwrap();
        let (counted, read) = (session.requests().unwrap(), session.requests().unwrap());
        assert!(counted.add(7) && read.take().eq([(7, 1)]), "the same page");
        std::fs::remove_dir_all(&path).unwrap();
        assert!(open_path(&path).is_none(), "gone");
        assert!(open(c"relative").is_none());
        assert!(open(c"").is_none());
    }
}
