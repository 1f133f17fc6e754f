//! Kernel calls for which no other interface is safe and free of allocation.
//!
//! The functions make system calls only: no `malloc` and no lock, nothing that a forked child of a program with
//! threads may not do.

use core::ffi::CStr;
use core::sync::atomic::AtomicU32;
use stackglass_unwind::mapping::{DECIMAL_DIGITS, decimal};
pub use stackglass_unwind::own_memory;
pub use stackglass_unwind::pages::{mmap, munmap};

/// Kernel id of the calling thread.
pub fn thread_id() -> u32 {
    // SAFETY: gettid has no arguments and cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Whether a thread of this process has this kernel id.
pub fn is_thread(tid: u32) -> bool {
    // SAFETY: signal 0 is only checked, not sent.
    let answer = unsafe { libc::syscall(libc::SYS_tgkill, process_id(), tid, 0) };
    answer == 0 || errno() != libc::ESRCH
}

/// Process id, from the kernel (never a cached one).
pub fn process_id() -> u32 {
    // SAFETY: getpid has no arguments and cannot fail.
    unsafe { libc::syscall(libc::SYS_getpid) as u32 }
}

/// The calling thread's errno.
pub fn errno() -> i32 {
    // SAFETY: errno's address is this thread's own and always valid.
    unsafe { *libc::__errno_location() }
}

/// Sets the calling thread's errno.
pub fn set_errno(errno: i32) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// A clock in nanoseconds; `None` if the kernel refuses it.
fn clock(id: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live timespec that the kernel writes.
    let answer = unsafe { libc::clock_gettime(id, &mut time) };
    (answer == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// CLOCK_MONOTONIC, ns.
pub fn now() -> u64 {
    clock(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

/// CLOCK_REALTIME, ns.
pub fn realtime() -> u64 {
    clock(libc::CLOCK_REALTIME).unwrap_or(0)
}

/// CPU time the calling thread has used, ns.
pub fn own_cpu() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

/// CPU time that a thread of this process has used, ns; `None` if there is no such thread.
///
/// The clock's number is made as the kernel makes it (`include/linux/posix-timers_types.h`: complement of
/// the thread id, shifted by three, 4 for "one thread", 2 for "scheduler's clock").
pub fn thread_cpu(tid: u32) -> Option<u64> {
    let id = (!tid << 3 | 6) as i32;
    let mut time = [0i64; 2];
    // SAFETY: `time` has the size of a kernel timespec. Called directly because the vDSO does not know
    // these clocks anyway and some C libraries check the number first.
    let answer = unsafe { libc::syscall(libc::SYS_clock_gettime, id, time.as_mut_ptr()) };
    (answer == 0).then(|| time[0] as u64 * 1_000_000_000 + time[1] as u64)
}

/// Sleeps until `until` (CLOCK_MONOTONIC ns), or until `word` is no longer `expected` and [`wake`] is called.
pub fn sleep_until(word: &AtomicU32, expected: u32, until: u64) {
    let time = [(until / 1_000_000_000) as i64, (until % 1_000_000_000) as i64];
    // SAFETY: FUTEX_WAIT_BITSET (private, absolute CLOCK_MONOTONIC) reads `word` and `time`, both live.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
            expected,
            time.as_ptr(),
            0usize,
            u32::MAX,
        );
    }
}

/// Wakes the threads that [sleep](sleep_until) on `word`.
pub fn wake(word: &AtomicU32) {
    // SAFETY: FUTEX_WAKE only uses the address of `word`, which is live.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, i32::MAX);
    }
}

/// Sets the calling thread's blocked signals and returns the previous ones.
///
/// This goes to the kernel directly: the C library's function may be replaced by the preload library's.
pub fn set_blocked(mask: u64) -> u64 {
    let mut before = 0u64;
    // SAFETY: the kernel reads and writes eight bytes of two live words.
    unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const mask, &raw mut before, 8);
    }
    before
}

/// The calling thread's blocked signals.
pub fn blocked() -> u64 {
    let mut mask = 0u64;
    let none: *const u64 = core::ptr::null();
    // SAFETY: without a new set the kernel only writes eight bytes of a live word.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, none, &raw mut mask, 8) };
    mask
}

/// Signals that are pending for the calling thread, or for the process.
pub fn pending() -> u64 {
    let mut mask = 0u64;
    // SAFETY: the kernel writes eight bytes of a live word.
    unsafe { libc::syscall(libc::SYS_rt_sigpending, &raw mut mask, 8) };
    mask
}

/// Removes one pending signal of `mask`, if there is one. The signals must be blocked.
pub fn take_pending(mask: u64) {
    let at_once = [0i64; 2];
    let none: *mut libc::siginfo_t = core::ptr::null_mut();
    // SAFETY: the kernel reads a live mask and a live time; it is not asked for the signal's description.
    unsafe { libc::syscall(libc::SYS_rt_sigtimedwait, &raw const mask, none, at_once.as_ptr(), 8) };
}

/// All signals except the two that the C library reserves (32 for cancellation, 33 for setuid in all threads).
pub const ALL_SIGNALS: u64 = !(1 << 31 | 1 << 32);

/// Zeroed private memory that is touched lazily; null if there is none.
///
/// It is not locked in a program that locks all its memory (`mlockall`): most of it is never touched.
pub fn map_private(bytes: usize) -> *mut u8 {
    // SAFETY: a new anonymous mapping at an address of the kernel's choice disturbs nobody; what follows concerns it alone.
    // The kernel does not fill inaccessible pages, so no page is locked before the lock is removed.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let at = mmap(core::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0);
        if at == libc::MAP_FAILED {
            return core::ptr::null_mut();
        }
        libc::syscall(libc::SYS_munlock, at, bytes);
        if libc::mprotect(at, bytes, libc::PROT_READ | libc::PROT_WRITE) != 0 {
            munmap(at, bytes);
            return core::ptr::null_mut();
        }
        own_memory::add(at.cast(), bytes);
        at.cast()
    }
}

/// A file descriptor that is closed when dropped.
pub struct Fd(i32);

impl Fd {
    /// Opens `path` relative to the folder `at` (or `AT_FDCWD`).
    pub fn open(at: i32, path: &CStr, flags: i32, mode: u32) -> Option<Fd> {
        // SAFETY: `path` ends with a zero byte; openat keeps no pointer.
        let fd = unsafe { libc::openat(at, path.as_ptr(), flags | libc::O_CLOEXEC, mode) };
        // Not `then_some`: it would make and close a descriptor in any case, and errno would be lost.
        (fd >= 0).then(|| Fd(fd))
    }

    /// Takes over an open descriptor.
    ///
    /// # Safety
    /// Nobody else may close it.
    pub unsafe fn from_raw(descriptor: i32) -> Fd {
        Fd(descriptor)
    }

    /// The number.
    pub fn raw(&self) -> i32 {
        self.0
    }

    /// Reads from offset `at`: the number of bytes, 0 at the end and on any error.
    pub fn read_at(&self, into: &mut [u8], at: u64) -> usize {
        // SAFETY: the kernel writes at most `into.len()` bytes into `into`.
        let n = unsafe { libc::pread(self.0, into.as_mut_ptr().cast(), into.len(), at as i64) };
        n.max(0) as usize
    }

    /// Reads until `into` is full or the file ends.
    pub fn read_all<'a>(&self, into: &'a mut [u8]) -> &'a [u8] {
        let mut filled = 0;
        while filled < into.len() {
            let n = self.read_at(&mut into[filled..], filled as u64);
            if n == 0 {
                break;
            }
            filled += n;
        }
        &into[..filled]
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours alone.
        unsafe { libc::close(self.0) };
    }
}

/// A path that is put together in place, without allocation.
pub struct PathText<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> PathText<N> {
    /// An empty one.
    pub const fn new() -> Self {
        PathText { bytes: [0; N], len: 0 }
    }

    /// Appends bytes. Those that do not fit with the closing zero are dropped, and the path then fails to open.
    #[must_use]
    pub fn text(mut self, text: &[u8]) -> Self {
        for byte in text {
            if self.len + 1 < N {
                self.bytes[self.len] = *byte;
                self.len += 1;
            }
        }
        self
    }

    /// Appends a decimal number.
    #[must_use]
    pub fn number(self, number: u64) -> Self {
        self.text(decimal(number, &mut [0; DECIMAL_DIGITS]))
    }

    /// The path so far.
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or(c"")
    }

    /// The bytes so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl<const N: usize> Default for PathText<N> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_text_make_a_path() {
        let path = PathText::<64>::new().text(b"/proc/self/task/").number(0).text(b"/").number(u64::MAX);
        assert_eq!(path.as_c_str(), c"/proc/self/task/0/18446744073709551615");
    }

    #[test]
    fn a_path_that_is_too_long_is_cut_and_still_ends() {
        let path = PathText::<8>::new().text(b"0123456789");
        assert_eq!(path.as_c_str(), c"0123456");
    }

    #[test]
    fn the_cpu_clock_of_a_thread_is_found_by_its_id() {
        let before = own_cpu();
        let seen = thread_cpu(thread_id()).unwrap();
        assert!(before <= seen && seen <= own_cpu());
        assert_eq!(thread_cpu(0x3fff_fff0), None);
    }
}
