//! Finds the mapping that holds an address, without allocating: safe in a signal handler.
//!
//! Linux 6.11 has an ioctl for this (`PROCMAP_QUERY`, include/uapi/linux/fs.h). On older kernels, `/proc/PID/maps` is
//! read in small pieces. [`force_text`] forces the second way, for tests.

use std::sync::atomic::{AtomicBool, Ordering};

/// A mapping and its access rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// Can be read.
    pub readable: bool,
    /// Can be written.
    pub writable: bool,
    /// Can be executed.
    pub executable: bool,
}

static TEXT_ONLY: AtomicBool = AtomicBool::new(false);

/// Forces `/proc/PID/maps` even where the kernel has the ioctl. For tests.
pub fn force_text(on: bool) {
    TEXT_ONLY.store(on, Ordering::Relaxed);
}

/// The mapping of the own process that holds `address`.
pub fn holding(address: u64) -> Option<Mapping> {
    // By the id of this thread: the first thread may have exited, and its id then has no memory.
    // SAFETY: no arguments.
    let pid = unsafe { libc::syscall(libc::SYS_gettid) } as i32;
    holding_in(pid, address)
}

/// The mapping of process `pid` that holds `address`.
pub(crate) fn holding_in(pid: i32, address: u64) -> Option<Mapping> {
    let mut path = [0u8; 32];
    proc_path(pid, b"/maps", &mut path);
    // SAFETY: `path` ends with a zero byte.
    let fd = unsafe {
        libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC, 0)
    };
    if fd < 0 {
        return None;
    }
    let answer = if TEXT_ONLY.load(Ordering::Relaxed) {
        search(fd, address)
    } else {
        match query(fd, address) {
            Ok(answer) => answer,
            Err(NotSupported) => search(fd, address),
        }
    };
    // SAFETY: opened above and used only there.
    unsafe { libc::syscall(libc::SYS_close, fd) };
    answer
}

struct NotSupported;

/// `struct procmap_query`.
#[repr(C)]
#[derive(Default)]
struct ProcmapQuery {
    size: u64,
    query_flags: u64,
    query_addr: u64,
    vma_start: u64,
    vma_end: u64,
    vma_flags: u64,
    vma_page_size: u64,
    vma_offset: u64,
    inode: u64,
    dev_major: u32,
    dev_minor: u32,
    vma_name_size: u32,
    build_id_size: u32,
    vma_name_addr: u64,
    build_id_addr: u64,
}

// Bits of `vma_flags`.
const PROCMAP_QUERY_VMA_READABLE: u64 = 1;
const PROCMAP_QUERY_VMA_WRITABLE: u64 = 2;
const PROCMAP_QUERY_VMA_EXECUTABLE: u64 = 4;

/// `_IOWR('f', 17, struct procmap_query)`.
const PROCMAP_QUERY: u64 = 3 << 30 | (size_of::<ProcmapQuery>() as u64) << 16 | (b'f' as u64) << 8 | 17;
const _: () = assert!(PROCMAP_QUERY == 0xc068_6611);

fn query(fd: i64, address: u64) -> Result<Option<Mapping>, NotSupported> {
    let mut q =
        ProcmapQuery { size: size_of::<ProcmapQuery>() as u64, query_addr: address, ..Default::default() };
    // SAFETY: the kernel reads and writes `size` bytes of `q`; no name or build id is requested.
    let result = unsafe { libc::syscall(libc::SYS_ioctl, fd, PROCMAP_QUERY, &raw mut q) };
    if result < 0 {
        // SAFETY: errno is this thread's own.
        return match unsafe { *libc::__errno_location() } {
            libc::ENOENT => Ok(None),
            _ => Err(NotSupported),
        };
    }
    Ok(Some(Mapping {
        start: q.vma_start,
        end: q.vma_end,
        readable: q.vma_flags & PROCMAP_QUERY_VMA_READABLE != 0,
        writable: q.vma_flags & PROCMAP_QUERY_VMA_WRITABLE != 0,
        executable: q.vma_flags & PROCMAP_QUERY_VMA_EXECUTABLE != 0,
    }))
}

/// Reads the text up to the line that holds `address`. Lines are sorted.
fn search(fd: i64, address: u64) -> Option<Mapping> {
    let mut buffer = [0u8; 256];
    let mut line = Line::default();
    loop {
        // SAFETY: the kernel writes at most the buffer's length to it.
        let got = unsafe { libc::syscall(libc::SYS_read, fd, buffer.as_mut_ptr(), buffer.len()) };
        let read = buffer.get(..usize::try_from(got).ok().filter(|n| *n > 0)?)?;
        for &byte in read {
            if let Some(mapping) = line.take(byte) {
                if mapping.start > address {
                    return None;
                }
                if address < mapping.end {
                    return Some(mapping);
                }
            }
        }
    }
}

/// The part of the current line read so far: `start-end rwxp …`.
#[derive(Default)]
struct Line {
    field: u8,
    start: u64,
    end: u64,
    rights: [u8; 3],
    seen: usize,
}

impl Line {
    /// Adds one byte. Returns the mapping once its rights are complete.
    fn take(&mut self, byte: u8) -> Option<Mapping> {
        if byte == b'\n' {
            *self = Line::default();
            return None;
        }
        match (self.field, byte) {
            (0, b'-') | (1, b' ') => self.field += 1,
            (0 | 1, _) => {
                let digit = (byte as char).to_digit(16)?;
                let number = if self.field == 0 { &mut self.start } else { &mut self.end };
                *number = *number << 4 | u64::from(digit);
            }
            (2, _) => {
                if let Some(place) = self.rights.get_mut(self.seen) {
                    *place = byte;
                    self.seen += 1;
                }
                if self.seen == self.rights.len() {
                    self.field = 3;
                    return Some(Mapping {
                        start: self.start,
                        end: self.end,
                        readable: self.rights[0] == b'r',
                        writable: self.rights[1] == b'w',
                        executable: self.rights[2] == b'x',
                    });
                }
            }
            _ => {}
        }
        None
    }
}

/// Most digits of a decimal number.
pub const DECIMAL_DIGITS: usize = 20;

/// The decimal digits of a number, without allocation.
pub fn decimal(mut number: u64, digits: &mut [u8; DECIMAL_DIGITS]) -> &[u8] {
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    &digits[first..]
}

/// Writes `/proc/PID` + `suffix` + NUL into `path`. At most 6 + 11 + 5 + 1 bytes.
pub(crate) fn proc_path(pid: i32, suffix: &[u8], path: &mut [u8; 32]) {
    let mut digits = [0; DECIMAL_DIGITS];
    let parts = b"/proc/".iter().chain(decimal(pid.unsigned_abs().into(), &mut digits)).chain(suffix);
    for (place, byte) in path.iter_mut().take(31).zip(parts) {
        *place = *byte;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ioctl_and_text_agree_on_every_mapping_of_this_process() {
        let text = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut checked = 0;
        for line in text.lines().filter(|l| !l.contains("[heap]") && !l.contains("[stack]")) {
            let (range, rest) = line.split_once(' ').unwrap();
            let (start, end) = range.split_once('-').unwrap();
            let (start, end) =
                (u64::from_str_radix(start, 16).unwrap(), u64::from_str_radix(end, 16).unwrap());
            if line.contains("[vsyscall]") || !rest.contains('/') {
                continue; // anonymous ones may change while the tests run
            }
            let wanted = Some(Mapping {
                start,
                end,
                readable: &rest[..1] == "r",
                writable: &rest[1..2] == "w",
                executable: &rest[2..3] == "x",
            });
            for text_only in [false, true] {
                force_text(text_only);
                assert_eq!(holding(start), wanted, "{line}");
                assert_eq!(holding(end - 1), wanted, "{line}");
            }
            checked += 1;
        }
        assert!(checked > 4);
        for text_only in [false, true] {
            force_text(text_only);
            assert_eq!(holding(8), None);
            assert_eq!(holding(u64::MAX >> 1), None);
            let local = 0u8;
            let stack = holding(&raw const local as u64).expect("the stack this runs on");
            assert!(stack.readable && stack.writable && !stack.executable);
        }
        force_text(false);
    }
}
