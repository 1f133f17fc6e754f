//! Reading memory of the walked program, the only place where bytes of it are loaded.
//!
//! Stacks are read word by word ([`StackMemory`]), code and unwind tables in small pieces ([`ImageMemory`]).
//! Three ways, from fast to safe: plain loads where a mapping is known to stay; `process_vm_readv`, which
//! answers instead of faulting, for everything that might vanish; `/proc/PID/mem` where a sandbox forbids
//! that call. Only system calls: all of it may run in a signal handler.

use crate::mapping::{self, Mapping};
use crate::modules::Module;
use std::ffi::c_void;
use std::ops::Range;

/// Reads words of a stack.
pub trait StackMemory {
    /// The 8 bytes at `address`, or `None` if they cannot be read.
    fn read_u64(&mut self, address: u64) -> Option<u64>;
}

/// Reads code and unwind data of loaded modules.
pub trait ImageMemory {
    /// Copies bytes from `address` on into `into`, as many as can be read, and says how many.
    /// Must not fault whatever the address.
    fn read(&self, module: &Module, address: u64, into: &mut [u8]) -> usize;
}

/// The images of the own process: those that never unload by plain copies, the others fault-safe.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnImages;

impl ImageMemory for OwnImages {
    fn read(&self, module: &Module, address: u64, into: &mut [u8]) -> usize {
        if !module.is_pinned() {
            return read_own(address, into);
        }
        let Some(range) = module.readable_at(address) else { return 0 };
        let len = into.len().min((range.end - address) as usize);
        // SAFETY: a pinned module is never unmapped (see `modules::own`), `readable_at` gave a range of its
        // file-backed, read-only pages that contains `address`, and `len` ends within it and within `into`.
        unsafe { std::ptr::copy_nonoverlapping(address as *const u8, into.as_mut_ptr(), len) };
        len
    }
}

/// Bytes fetched at once when the stack leaves its mapping.
const ASIDE: usize = 128;

/// The stack of the calling thread, for its own signal handler.
///
/// Words in the mapping that holds `sp` are plain loads. What lies elsewhere (the interrupted stack below an
/// alternate signal stack, or garbage in `rbp`) is read fault-safe.
pub struct OwnStack {
    stack: Range<u64>,
    aside_at: u64,
    aside_len: usize,
    aside: [u8; ASIDE],
}

impl OwnStack {
    /// Asks the kernel for the mapping that holds `sp` (0.4 to 10 us).
    pub fn at(sp: u64) -> OwnStack {
        OwnStack::within(0..0, sp)
    }

    /// Uses the range an earlier [`OwnStack::range`] of the same thread gave; asks anew if `sp` has left it.
    pub fn within(known: Range<u64>, sp: u64) -> OwnStack {
        let stack = if known.contains(&sp) {
            known
        } else {
            match mapping::holding(sp) {
                Some(Mapping { start, end, readable: true, writable: true, .. }) => start..end,
                _ => 0..0,
            }
        };
        OwnStack { stack, aside_at: 0, aside_len: 0, aside: [0; ASIDE] }
    }

    /// The mapping that is read directly; worth keeping for the thread's next walk.
    pub fn range(&self) -> Range<u64> {
        self.stack.clone()
    }

    #[cold]
    #[inline(never)]
    fn read_aside(&mut self, address: u64) -> Option<u64> {
        let mut from = address.wrapping_sub(self.aside_at);
        if address < self.aside_at || from.saturating_add(8) > self.aside_len as u64 {
            self.aside_len = read_own(address, &mut self.aside);
            self.aside_at = address;
            from = 0;
        }
        word(self.aside.get(..self.aside_len)?, from)
    }
}

impl StackMemory for OwnStack {
    #[inline(always)]
    fn read_u64(&mut self, address: u64) -> Option<u64> {
        if address >= self.stack.start && address <= self.stack.end.wrapping_sub(8) && self.stack.end >= 8 {
            // SAFETY: the 8 bytes lie inside the mapping that held this thread's own stack pointer, readable when
            // it was asked for, and a stack is not unmapped under the thread that runs on it.
            return Some(unsafe { (address as *const u64).read_unaligned() });
        }
        self.read_aside(address)
    }
}

/// The stack of another thread or process that does not run meanwhile (or whose result is checked afterwards),
/// fetched in pieces into a buffer of the caller.
pub struct ProcessStack<'a> {
    pid: i32,
    buffer: &'a mut [u8],
    at: u64,
    len: usize,
}

impl<'a> ProcessStack<'a> {
    /// `pid` may be the own one. Each miss fills the whole buffer (as far as readable): 4 to 32 KiB are sensible.
    pub fn new(pid: i32, buffer: &'a mut [u8]) -> ProcessStack<'a> {
        ProcessStack { pid, buffer, at: 0, len: 0 }
    }
}

impl StackMemory for ProcessStack<'_> {
    #[inline]
    fn read_u64(&mut self, address: u64) -> Option<u64> {
        let mut from = address.wrapping_sub(self.at);
        if address < self.at || from.saturating_add(8) > self.len as u64 {
            self.len = read_process(self.pid, address, self.buffer);
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

/// Copies own memory without ever faulting; the number of bytes copied.
pub fn read_own(address: u64, into: &mut [u8]) -> usize {
    // By the number of this thread: the first one may have left the process, and its number then has no memory.
    // SAFETY: no arguments.
    let pid = unsafe { libc::syscall(libc::SYS_gettid) } as i32;
    read_process(pid, address, into)
}

/// Copies memory of a process; the number of bytes copied. Needs ptrace rights over foreign ones.
pub fn read_process(pid: i32, address: u64, into: &mut [u8]) -> usize {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: address as *mut c_void, iov_len: into.len() };
    // Every argument is a full word: the sixth is passed on the stack, where a 32-bit one would leave the upper
    // half as it was, and the kernel refuses unknown flags.
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

/// The same through `/proc/PID/mem`: some containers forbid `process_vm_readv`. The file is opened each time,
/// since programs that close all descriptors would otherwise make us read a file of theirs.
pub fn read_through_proc(pid: i32, address: u64, into: &mut [u8]) -> usize {
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

/// Zeroed private memory; a child of fork gets a copy, like of all else. It is not locked where the program locks all of its own.
pub(crate) fn map_private(size: usize) -> Option<*mut u8> {
    // SAFETY: a new anonymous mapping touches nothing that exists; what follows concerns it alone. Nothing is locked that
    // cannot be accessed, so no page is filled before the lock is taken off.
    unsafe {
        let place = libc::mmap(
            std::ptr::null_mut(),
            size,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        );
        if place == libc::MAP_FAILED {
            return None;
        }
        libc::syscall(libc::SYS_munlock, place, size);
        if libc::mprotect(place, size, libc::PROT_READ | libc::PROT_WRITE) != 0 {
            libc::munmap(place, size);
            return None;
        }
        // Touched page by page: a huge page would cost its zeroing at once, perhaps in a signal handler.
        libc::madvise(place, size, libc::MADV_NOHUGEPAGE);
        Some(place.cast())
    }
}

/// Gives back what [`map_private`] gave, whole.
pub(crate) fn unmap(place: *mut u8, size: usize) {
    // SAFETY: callers pass exactly what `map_private` returned and hold the last reference to it.
    let result = unsafe { libc::munmap(place.cast(), size) };
    debug_assert_eq!(result, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_there_and_says_where_it_ends() {
        let page = 4096;
        let place = map_private(2 * page).unwrap();
        // SAFETY: the second of the two pages just mapped.
        unsafe {
            place.add(page - 1).write(7);
            assert_eq!(libc::munmap(place.add(page).cast(), page), 0);
        }
        let last = place as u64 + page as u64 - 1;
        let mut bytes = [0u8; 16];
        for read in [read_own, |a, b: &mut [u8]| read_through_proc(std::process::id() as i32, a, b)] {
            bytes.fill(0);
            assert_eq!(read(last, &mut bytes), 1);
            assert_eq!(bytes[0], 7);
            assert_eq!(read(last + 1, &mut bytes), 0);
            assert_eq!(read(0, &mut bytes), 0);
            assert_eq!(read(u64::MAX - 3, &mut bytes), 0);
        }
        let mut stack = OwnStack::at(0);
        assert_eq!(stack.read_u64(last - 7), Some(7 << 56));
        assert_eq!(stack.read_u64(last - 6), None);
        assert_eq!(stack.read_u64(u64::MAX), None);
        unmap(place, page);
    }
}
