//! The folder `/proc/self/task`: which threads exist, and the files about each.
//!
//! Descriptors stay open only in a descriptor table of the sampler's own (see `privilege`). Otherwise every file is opened
//! anew.

use crate::threads::status::{Confinement, SignalState};
use stackglass_host::system::{Fd, PathText};
use stackglass_proc_text::numbers::decimal;
use stackglass_wire::ThreadName;

/// The folder.
pub struct ThreadFolder {
    /// Open, where descriptors may stay open.
    folder: Option<Fd>,
    keeps_open: bool,
}

/// Working memory of [`ThreadFolder::scan`]. All zeros is a value.
pub type ScanBuffer = [u8; 16 << 10];

const FOLDER: &core::ffi::CStr = c"/proc/self/task";

impl ThreadFolder {
    /// Opens the folder, if descriptors may stay open.
    pub fn open_if(keeps_open: bool) -> ThreadFolder {
        ThreadFolder { folder: if keeps_open { open_folder() } else { None }, keeps_open }
    }

    /// Whether descriptors may stay open.
    pub fn keeps_open(&self) -> bool {
        self.keeps_open
    }

    /// The folder's link count: two more than there are threads.
    pub fn links(&self) -> Option<u64> {
        // SAFETY: an all-zero stat is a value; the kernel fills it; the path ends with a zero byte.
        unsafe {
            let mut stat: libc::stat = core::mem::zeroed();
            let answer = match &self.folder {
                Some(folder) => libc::fstat(folder.raw(), &mut stat),
                None => libc::stat(FOLDER.as_ptr(), &mut stat),
            };
            (answer == 0).then_some(stat.st_nlink)
        }
    }

    /// Calls `each` with the kernel id of every thread. False if the folder cannot be read.
    pub fn scan(&self, buffer: &mut ScanBuffer, mut each: impl FnMut(u32)) -> bool {
        let opened;
        let folder = match &self.folder {
            Some(folder) => {
                // SAFETY: a call on an open descriptor.
                unsafe { libc::lseek(folder.raw(), 0, libc::SEEK_SET) };
                folder
            }
            None => match open_folder() {
                Some(folder) => {
                    opened = folder;
                    &opened
                }
                None => return false,
            },
        };
        loop {
            // SAFETY: the kernel writes at most the buffer's length.
            let n = unsafe {
                libc::syscall(libc::SYS_getdents64, folder.raw(), buffer.as_mut_ptr(), buffer.len())
            };
            match usize::try_from(n) {
                Ok(0) => return true,
                Ok(n) => each_entry(&buffer[..n.min(buffer.len())], &mut each),
                Err(_) => return false,
            }
        }
    }

    /// Opens a file of one thread.
    pub fn open(&self, tid: u32, file: &[u8]) -> Option<Fd> {
        match &self.folder {
            Some(folder) => {
                let path = PathText::<48>::new().number(tid as u64).text(b"/").text(file);
                Fd::open(folder.raw(), path.as_c_str(), libc::O_RDONLY, 0)
            }
            None => {
                let path =
                    PathText::<48>::new().text(b"/proc/self/task/").number(tid as u64).text(b"/").text(file);
                Fd::open(libc::AT_FDCWD, path.as_c_str(), libc::O_RDONLY, 0)
            }
        }
    }

    /// A thread's name.
    pub fn name(&self, tid: u32) -> Option<ThreadName> {
        let mut text = [0u8; 16];
        let n = self.open(tid, b"comm")?.read_at(&mut text, 0);
        if n == 0 {
            return None;
        }
        let mut name = [0u8; 16];
        for (to, from) in name.iter_mut().zip(text[..n.min(16)].iter().take_while(|b| **b != b'\n').take(15))
        {
            *to = *from;
        }
        Some(name)
    }

    /// Time a thread has spent in system mode, ns.
    pub fn system_time(&self, tid: u32) -> Option<u64> {
        let mut text = [0u8; 512];
        let n = self.open(tid, b"stat")?.read_at(&mut text, 0);
        crate::signals::call_ends::system_time(&text[..n.min(512)])
    }

    /// A thread's seccomp state; `None` if it cannot be read.
    pub fn confinement(&self, tid: u32) -> Option<Confinement> {
        let mut text = [0u8; 2048];
        Some(Confinement::parse(self.open(tid, b"status")?.read_all(&mut text)))
    }

    /// Whether a descriptor of a thread is known to be an unnamed pipe.
    pub fn is_pipe(&self, tid: u32, descriptor: u64) -> bool {
        let path = PathText::<64>::new()
            .text(b"/proc/self/task/")
            .number(tid as u64)
            .text(b"/fd/")
            .number(descriptor);
        let mut target = [0u8; 8];
        // SAFETY: the path ends with a zero byte; the kernel writes at most the buffer's length.
        let n = unsafe { libc::readlink(path.as_c_str().as_ptr(), target.as_mut_ptr().cast(), target.len()) };
        n > 0 && target.starts_with(b"pipe:")
    }

    /// What a thread does with a signal; `None` if that cannot be read.
    pub fn signal_state(&self, tid: u32, signal: i32) -> Option<SignalState> {
        let mut text = [0u8; 2048];
        SignalState::parse(self.open(tid, b"status")?.read_all(&mut text), signal)
    }
}

fn open_folder() -> Option<Fd> {
    Fd::open(libc::AT_FDCWD, FOLDER, libc::O_RDONLY | libc::O_DIRECTORY, 0)
}

/// The numbers among the names of a piece of getdents64 output (u64 inode, i64 offset, u16 length, u8 type,
/// name ended by zero).
fn each_entry(mut entries: &[u8], each: &mut impl FnMut(u32)) {
    while entries.len() > 19 {
        let length = u16::from_le_bytes([entries[16], entries[17]]) as usize;
        if length <= 19 || length > entries.len() {
            return;
        }
        let name = entries[19..length].split(|b| *b == 0).next().unwrap_or(&[]);
        if let Some(tid) = decimal(name).and_then(|tid| u32::try_from(tid).ok()) {
            each(tid);
        }
        entries = &entries[length..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_host::system;

    #[test]
    fn the_folder_of_this_process_is_read_both_ways() {
        let mut buffer: Box<ScanBuffer> = Box::new([0; 16 << 10]);
        for keeps_open in [false, true] {
            let folder = ThreadFolder::open_if(keeps_open);
            let mut seen = Vec::new();
            assert!(folder.scan(&mut buffer, |tid| seen.push(tid)));
            assert!(seen.contains(&system::thread_id()) && seen.contains(&std::process::id()));
            assert!(folder.links().unwrap() >= 3);
            assert!(folder.name(system::thread_id()).is_some());
            assert_eq!(folder.signal_state(system::thread_id(), libc::SIGURG), Some(SignalState::default()));
        }
    }
}
