//! Reads memory of the walked program. All such loads are in this file.
//!
//! Stacks are read word by word ([`StackMemory`]), code and unwind tables in small pieces ([`ModuleMemory`]). There are
//! three ways. All of them may run in a signal handler.
//!
//! * Plain loads, where a mapping of the own process is known to stay.
//! * `process_vm_readv`, for other memory of the own process, and for mapped files of other processes ([`read_file`]). It
//!   returns an error instead of faulting. While a file system delivers a page, it can be killed, and holds no lock of the
//!   process. But it also waits for a page that the program itself delivers (userfaultfd(2)).
//! * `/proc/PID/mem`, for all other memory of other processes ([`read_process`]): the kernel fails such a read instead of
//!   asking the program for the page. Also for the own process where a sandbox forbids `process_vm_readv`.

use crate::mapping::{self, Mapping};
use crate::modules::Module;
use crate::table::RuleTable;
use std::ffi::c_void;
use std::ops::Range;

/// Reads words of a stack.
pub trait StackMemory {
    /// The 8 bytes at `address`, or `None` if they cannot be read.
    fn read_u64(&mut self, address: u64) -> Option<u64>;
}

/// Reads code and unwind data of loaded modules.
pub trait ModuleMemory {
    /// Copies as many bytes from `address` on into `into` as can be read, and returns how many.
    /// It must not fault, whatever the address.
    fn read(&self, module: &Module, address: u64, into: &mut [u8]) -> usize;

    /// Rules found earlier in the file of a module, by an address minus the module's bias, which is the second value. All processes
    /// that run from the file share them. A walker without a table of its process uses them.
    fn file_rules(&self, module: &Module) -> Option<(&RuleTable, u64)> {
        let _ = module;
        None
    }
}

/// The modules of the own process. Those that are never unloaded are read by plain copies, others without faults.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnModules;

impl ModuleMemory for OwnModules {
    fn read(&self, module: &Module, address: u64, into: &mut [u8]) -> usize {
        if !module.is_pinned() {
            return read_own(address, into);
        }
        let Some(range) = module.readable_at(address) else { return 0 };
        let len = into.len().min((range.end - address) as usize);
        // SAFETY: a pinned module is never unmapped (see `published_modules`), `readable_at` gave a range of its
        // file-backed, read-only pages that contains `address`, and `len` ends within it and within `into`.
        unsafe { std::ptr::copy_nonoverlapping(address as *const u8, into.as_mut_ptr(), len) };
        len
    }
}

const PAGE: u64 = 4096;

/// Bytes copied at once from outside the mapping of the stack.
const OUTSIDE: usize = 128;

/// The stack of the calling thread, for its own signal handler.
///
/// Words in the mapping that holds `sp` are plain loads. Other words (the interrupted stack below an alternate signal
/// stack, or a wrong value of `rbp`) are read without faults.
pub struct OwnStack {
    stack: Range<u64>,
    outside_at: u64,
    outside_len: usize,
    outside: [u8; OUTSIDE],
}

impl OwnStack {
    /// Asks the kernel for the mapping that holds `sp` (0.4 to 10 µs).
    pub fn at(sp: u64) -> OwnStack {
        OwnStack::within(0..0, sp)
    }

    /// Uses a range from an earlier [`OwnStack::range`] of the same thread. Asks again if `sp` is outside.
    pub fn within(known: Range<u64>, sp: u64) -> OwnStack {
        let stack = if known.contains(&sp) {
            known
        } else {
            match mapping::holding(sp) {
                Some(Mapping { start, end, readable: true, writable: true, .. }) => start..end,
                _ => 0..0,
            }
        };
        OwnStack { stack, outside_at: 0, outside_len: 0, outside: [0; OUTSIDE] }
    }

    /// The mapping that is read directly. Keep it for the thread's next walk.
    pub fn range(&self) -> Range<u64> {
        self.stack.clone()
    }

    #[cold]
    #[inline(never)]
    fn read_outside(&mut self, address: u64) -> Option<u64> {
        let mut from = address.wrapping_sub(self.outside_at);
        if address < self.outside_at || from.saturating_add(8) > self.outside_len as u64 {
            self.outside_len = read_own(address, &mut self.outside);
            self.outside_at = address;
            from = 0;
        }
        word(self.outside.get(..self.outside_len)?, from)
    }
}

impl StackMemory for OwnStack {
    #[inline(always)]
    fn read_u64(&mut self, address: u64) -> Option<u64> {
        if address >= self.stack.start && address <= self.stack.end.wrapping_sub(8) && self.stack.end >= 8 {
            // SAFETY: the 8 bytes lie inside the mapping that held this thread's own stack pointer. It was readable
            // then, and a stack is not unmapped while its thread runs on it.
            return Some(unsafe { (address as *const u64).read_unaligned() });
        }
        self.read_outside(address)
    }
}

/// The stack of another thread or process, copied in pieces into a buffer of the caller. The thread must not run
/// meanwhile, or the caller must check the result.
pub struct ProcessStack<'a, Read = fn(i32, u64, &mut [u8]) -> usize> {
    pid: i32,
    read: Read,
    buffer: &'a mut [u8],
    at: u64,
    len: usize,
}

impl<'a> ProcessStack<'a> {
    /// A stack of another process. Each miss fills the whole buffer, as far as it can be read: 4 to 32 KiB are sensible.
    pub fn new(pid: i32, buffer: &'a mut [u8]) -> ProcessStack<'a> {
        ProcessStack { pid, read: read_process, buffer, at: 0, len: 0 }
    }

    /// A stack of the own process. `tid` is the id of the calling thread.
    pub fn own(tid: i32, buffer: &'a mut [u8]) -> ProcessStack<'a> {
        ProcessStack { pid: tid, read: read_by_call, buffer, at: 0, len: 0 }
    }
}

impl<'a, Read: Fn(i32, u64, &mut [u8]) -> usize> ProcessStack<'a, Read> {
    /// A stack of a process whose memory `read` copies: so many bytes from an address on.
    pub fn read_by(pid: i32, buffer: &'a mut [u8], read: Read) -> ProcessStack<'a, Read> {
        ProcessStack { pid, read, buffer, at: 0, len: 0 }
    }
}

impl<Read: Fn(i32, u64, &mut [u8]) -> usize> StackMemory for ProcessStack<'_, Read> {
    #[inline]
    fn read_u64(&mut self, address: u64) -> Option<u64> {
        let mut from = address.wrapping_sub(self.at);
        if address < self.at || from.saturating_add(8) > self.len as u64 {
            self.len = (self.read)(self.pid, address, self.buffer);
            self.at = address;
            from = 0;
        }
        word(self.buffer.get(..self.len)?, from)
    }
}

fn word(bytes: &[u8], from: u64) -> Option<u64> {
    let from = usize::try_from(from).ok()?;
    let bytes = bytes.get(from..from.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// Copies memory of the own process without faults, and returns how many bytes.
pub fn read_own(address: u64, into: &mut [u8]) -> usize {
    // By the id of this thread: the first thread may have exited, and its id then has no memory.
    // SAFETY: no arguments.
    let pid = unsafe { libc::syscall(libc::SYS_gettid) } as i32;
    read_by_call(pid, address, into)
}

/// Whether all pages of a range of the own process can be read now. One system call for each 16 pages.
pub(crate) fn is_readable(range: Range<u64>) -> bool {
    const PAGES: usize = 16;
    // SAFETY: no arguments.
    let pid = unsafe { libc::syscall(libc::SYS_gettid) };
    let mut bytes = [0u8; PAGES];
    let mut page = range.start & !(PAGE - 1);
    while page < range.end {
        let mut remote = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 1 }; PAGES];
        let mut len = 0;
        while len < PAGES && page < range.end {
            remote[len].iov_base = page as *mut c_void;
            page += PAGE;
            len += 1;
        }
        let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: len };
        let (one, no_flags) = (1usize, 0usize);
        // SAFETY: as in `read_by_call`: one byte for each of `len` pages.
        let got = unsafe {
            let (local, remote) = (&raw const local, remote.as_ptr());
            libc::syscall(libc::SYS_process_vm_readv, pid, local, one, remote, len, no_flags)
        };
        let all = got == len as i64
            || got < 0 && remote[..len].iter().all(|at| read_own(at.iov_base as u64, &mut bytes[..1]) == 1);
        if !all {
            return false;
        }
    }
    true
}

/// Runs `act` and puts errno back: an allocation that succeeds does not change it.
pub(crate) fn keep_errno<T>(act: impl FnOnce() -> T) -> T {
    // SAFETY: errno is this thread's own.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *place };
    let result = act();
    // SAFETY: as above.
    unsafe { *place = before };
    result
}

/// Copies memory of another process that it may read itself, and returns how many bytes. It takes ptrace rights.
///
/// It does not wait for the program: a page that a thread of it would have to deliver (userfaultfd(2)) is a failed read.
pub fn read_process(pid: i32, address: u64, into: &mut [u8]) -> usize {
    let read = read_through_proc(pid, address, into);
    // The file also shows memory without the right to read, as zeros if it was never written: guard pages of stacks.
    let mut at = 0;
    while at < read {
        let page_end = (PAGE - (address.wrapping_add(at as u64) % PAGE)) as usize;
        let end = read.min(at + page_end);
        let is_zero = into[at..end].iter().all(|byte| *byte == 0);
        if is_zero && !mapping::holding_in(pid, address.wrapping_add(at as u64)).is_some_and(|m| m.readable) {
            return at;
        }
        at = end;
    }
    read
}

/// Copies bytes of a file that another process has mapped, and returns how many. It takes ptrace rights.
pub fn read_file(pid: i32, address: u64, into: &mut [u8]) -> usize {
    read_by_call(pid, address, into)
}

/// Copies memory of a process by process_vm_readv, and returns how many bytes.
fn read_by_call(pid: i32, address: u64, into: &mut [u8]) -> usize {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: address as *mut c_void, iov_len: into.len() };
    // Each argument is a full word. The sixth is passed on the stack, where a 32-bit argument would leave the upper half
    // undefined, and the kernel refuses unknown flags.
    let (one, no_flags) = (1usize, 0usize);
    // SAFETY: the kernel writes at most `into.len()` bytes to `into` and checks the remote range itself.
    let got = unsafe {
        libc::syscall(
            libc::SYS_process_vm_readv,
            i64::from(pid),
            &raw const local,
            one,
            &raw const remote,
            one,
            no_flags,
        )
    };
    if got >= 0 {
        return got as usize;
    }
    // SAFETY: errno is this thread's own.
    match unsafe { *libc::__errno_location() } {
        libc::EPERM | libc::ENOSYS => read_through_proc(pid, address, into),
        _ => 0,
    }
}

/// The same through `/proc/PID/mem`, since some containers forbid `process_vm_readv`. The file is opened each time: a
/// program that closes all descriptors could otherwise reuse the number for one of its own files.
fn read_through_proc(pid: i32, address: u64, into: &mut [u8]) -> usize {
    let mut path = [0u8; 32];
    mapping::proc_path(pid, b"/mem", &mut path);
    // SAFETY: `path` ends with a zero byte; the descriptor is closed below; the kernel writes at most
    // `into.len()` bytes to `into`.
    unsafe {
        let fd = libc::syscall(
            libc::SYS_openat,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::O_RDONLY | libc::O_CLOEXEC,
            0,
        );
        if fd < 0 {
            return 0;
        }
        let got = libc::syscall(libc::SYS_pread64, fd, into.as_mut_ptr(), into.len(), address);
        libc::syscall(libc::SYS_close, fd);
        got.max(0) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::{map_private, unmap};

    #[test]
    fn guard_pages_are_no_memory() {
        let (page, pid) = (PAGE as usize, std::process::id() as i32);
        let place = map_private(3 * page).unwrap();
        // SAFETY: the second of the three pages just mapped.
        unsafe {
            place.add(page - 1).write(7);
            assert_eq!(libc::mprotect(place.add(page).cast(), page, libc::PROT_NONE), 0);
        }
        let mut bytes = vec![1u8; 3 * page];
        assert_eq!(read_process(pid, place as u64, &mut bytes), page);
        assert_eq!(read_process(pid, place as u64 + 5, &mut bytes), page - 5);
        assert_eq!(read_process(pid, place as u64 + PAGE + 8, &mut bytes), 0);
        assert_eq!(read_process(pid, place as u64 + 2 * PAGE, &mut bytes[..page]), page);
        assert!(bytes[..page].iter().all(|byte| *byte == 0));
        unmap(place, 3 * page);
    }

    #[test]
    fn reading_ends_where_memory_ends() {
        let page = 4096;
        let place = map_private(2 * page).unwrap();
        // SAFETY: the second of the two pages just mapped.
        unsafe {
            place.add(page - 1).write(7);
            assert_eq!(libc::munmap(place.add(page).cast(), page), 0);
        }
        let last = place as u64 + page as u64 - 1;
        let mut bytes = [0u8; 16];
        let process = |a, b: &mut [u8]| read_process(std::process::id() as i32, a, b);
        for read in [read_own, process, |a, b: &mut [u8]| read_through_proc(std::process::id() as i32, a, b)]
        {
            bytes.fill(0);
            assert_eq!(read(last, &mut bytes), 1);
            assert_eq!(bytes[0], 7);
            assert_eq!(read(last + 1, &mut bytes), 0);
            assert_eq!(read(0, &mut bytes), 0);
            assert_eq!(read(u64::MAX - 3, &mut bytes), 0);
        }
        assert!(is_readable(last - 8..last + 1) && is_readable(last..last));
        assert!(!is_readable(last..last + 2) && !is_readable(last + 1..last + 9) && !is_readable(0..1));
        let mut stack = OwnStack::at(0);
        assert_eq!(stack.read_u64(last - 7), Some(7 << 56));
        assert_eq!(stack.read_u64(last - 6), None);
        assert_eq!(stack.read_u64(u64::MAX), None);
        unmap(place, page);
    }
}
