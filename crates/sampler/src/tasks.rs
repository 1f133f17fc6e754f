//! `/proc/self/task`: which threads there are, their names, whether they sleep and where.
//!
//! Descriptors stay open only in a table of our own (see `privilege`); otherwise every file is opened anew.

use stackglass_host::system::{Fd, PathText};
use stackglass_wire::ThreadName;

/// What a thread's `status` says about system calls it may make.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Confinement {
    /// `Seccomp`: 0 for none, 1 for strict, 2 for filters.
    mode: u64,
    /// `Seccomp_filters` (since Linux 5.9).
    filters: u64,
}

impl Confinement {
    /// Whether nothing is forbidden.
    pub fn is_free(self) -> bool {
        self.mode == 0
    }

    /// Whether what `other` may do is known to be allowed here as well.
    pub fn is_no_stricter_than(self, other: Confinement) -> bool {
        self.is_free() || self.mode == 2 && self == other
    }
}

/// The folder, open or to be opened each time.
pub struct Tasks {
    folder: Option<Fd>,
    keep_open: bool,
    /// A scan that is larger than this buffer is read in pieces.
    entries: [u8; 16 << 10],
}

const FOLDER: &core::ffi::CStr = c"/proc/self/task";

impl Tasks {
    /// Prepares in place; `keep_open` when descriptors may stay open.
    pub fn init(&mut self, keep_open: bool) {
        self.keep_open = keep_open;
        self.folder = if keep_open { open_folder() } else { None };
    }

    /// Whether descriptors may stay open.
    pub fn keeps_open(&self) -> bool {
        self.keep_open
    }

    /// Links of the folder: two more than there are threads.
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

    /// Calls `each` with the kernel id of every thread. False when the folder cannot be read.
    pub fn scan(&mut self, mut each: impl FnMut(u32)) -> bool {
        let opened;
        let folder = match &self.folder {
            Some(folder) => {
                // SAFETY: a call on a descriptor of ours.
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
            let buffer = &mut self.entries;
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
        crate::calls::system_time(&text[..n.min(512)])
    }

    /// Whether system calls are forbidden to a thread; `None` when that cannot be read.
    pub fn confinement(&self, tid: u32) -> Option<Confinement> {
        let mut text = [0u8; 2048];
        let text = self.open(tid, b"status")?.read_all(&mut text);
        let number = |name: &[u8]| decimal(line_of(text, name)?).map(u64::from);
        // Kernels without seccomp have no such line.
        Some(Confinement {
            mode: number(b"Seccomp:").unwrap_or(0),
            filters: number(b"Seccomp_filters:").unwrap_or(0),
        })
    }

    /// Whether a descriptor of a thread is a socket; true also when that cannot be told.
    pub fn is_socket(&self, tid: u32, descriptor: u64) -> bool {
        let path = PathText::<64>::new()
            .text(b"/proc/self/task/")
            .number(tid as u64)
            .text(b"/fd/")
            .number(descriptor);
        let mut target = [0u8; 8];
        // SAFETY: the path ends with a zero byte; the kernel writes at most the buffer's length.
        let n = unsafe { libc::readlink(path.as_c_str().as_ptr(), target.as_mut_ptr().cast(), target.len()) };
        n <= 0 || target.starts_with(b"socket:")
    }

    /// Whether a thread blocks a signal; `None` when that cannot be read.
    pub fn blocks(&self, tid: u32, signal: i32) -> Option<bool> {
        let mut text = [0u8; 2048];
        let text = self.open(tid, b"status")?.read_all(&mut text);
        blocked_mask(text).map(|mask| mask >> (signal - 1) & 1 == 1)
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
        if let Some(tid) = decimal(name) {
            each(tid);
        }
        entries = &entries[length..];
    }
}

fn decimal(text: &[u8]) -> Option<u32> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u32, |n, b| {
        b.is_ascii_digit().then(|| n.checked_mul(10)?.checked_add((b - b'0') as u32)).flatten()
    })
}

fn hexadecimal(text: &[u8]) -> Option<u64> {
    let text = text.strip_prefix(b"0x").unwrap_or(text);
    if text.is_empty() || text.len() > 16 {
        return None;
    }
    text.iter().try_fold(0u64, |n, b| Some(n << 4 | (*b as char).to_digit(16)? as u64))
}

/// The mask in the line `SigBlk:` of a status file.
fn blocked_mask(status: &[u8]) -> Option<u64> {
    hexadecimal(line_of(status, b"SigBlk:")?)
}

/// What stands in the line of a status file that begins so.
fn line_of<'a>(status: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    status.split(|b| *b == b'\n').find_map(|line| line.strip_prefix(name)).map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_host::system;

    #[test]
    fn masks_are_read() {
        assert_eq!(blocked_mask(b"Name:\tx\nSigBlk:\t0000000000400000\nSigIgn:\t0\n"), Some(1 << 22));
        assert_eq!(blocked_mask(b"Name:\tx\n"), None);
    }

    #[test]
    fn a_thread_with_more_filters_than_we_have_is_confined() {
        let (free, ours) = (Confinement { mode: 0, filters: 0 }, Confinement { mode: 2, filters: 1 });
        let (strict, more) = (Confinement { mode: 1, filters: 0 }, Confinement { mode: 2, filters: 2 });
        assert!(free.is_no_stricter_than(ours) && ours.is_no_stricter_than(ours));
        assert!(
            !strict.is_no_stricter_than(ours)
                && !more.is_no_stricter_than(ours)
                && !ours.is_no_stricter_than(free)
        );
    }

    #[test]
    fn the_folder_of_this_process_is_read_both_ways() {
        for keep_open in [false, true] {
            // SAFETY: all zeros is a closed folder.
            let mut tasks: Box<Tasks> = unsafe { Box::new_zeroed().assume_init() };
            tasks.init(keep_open);
            let mut seen = Vec::new();
            assert!(tasks.scan(|tid| seen.push(tid)));
            assert!(seen.contains(&system::thread_id()) && seen.contains(&std::process::id()));
            assert!(tasks.links().unwrap() >= 3);
            assert!(tasks.name(system::thread_id()).is_some());
            assert_eq!(tasks.blocks(system::thread_id(), libc::SIGURG), Some(false));
        }
    }
}
