//! Mappings of files that an untrusted program may truncate.
//!
//! Access to a truncated page raises SIGBUS. The handler replaces the whole mapping by zeroed private memory, so the
//! reader goes on, finds malformed data, and reports it.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};

/// Largest number of guarded mappings.
const MOST: usize = 4096;

struct Entry {
    base: AtomicUsize,
    len: AtomicUsize,
}

static ENTRIES: [Entry; MOST] =
    [const { Entry { base: AtomicUsize::new(0), len: AtomicUsize::new(0) } }; MOST];
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// A shared, writable mapping of a whole file, unmapped when dropped.
///
/// Other processes may change its bytes at any time, so they must be accessed only through atomics.
pub struct GuardedMap {
    base: *mut u8,
    len: usize,
    entry: &'static Entry,
}

// SAFETY: the memory belongs to the process and is accessed only through atomics; the entry is atomic.
unsafe impl Send for GuardedMap {}
// SAFETY: as above.
unsafe impl Sync for GuardedMap {}

impl GuardedMap {
    /// Maps the first `len` bytes of `file`.
    ///
    /// # Errors
    /// Those of mmap(2); `OutOfMemory` if too many mappings are guarded.
    pub fn new(file: BorrowedFd<'_>, len: usize) -> std::io::Result<GuardedMap> {
        install();
        let entry = ENTRIES
            .iter()
            .find(|entry| entry.base.compare_exchange(0, 1, AcqRel, Relaxed).is_ok())
            .ok_or(std::io::ErrorKind::OutOfMemory)?;
        // SAFETY: a new shared mapping, at an address that the kernel chooses.
        let base = unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(ptr::null_mut(), len, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if base == libc::MAP_FAILED {
            let error = std::io::Error::last_os_error();
            entry.base.store(0, Release);
            return Err(error);
        }
        entry.len.store(len, Relaxed);
        entry.base.store(base.addr(), Release);
        Ok(GuardedMap { base: base.cast(), len, entry })
    }

    /// The first byte, page-aligned; [`GuardedMap::len`] bytes are valid while this lives.
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    /// Size of the mapping in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the mapping is empty. It never is: the kernel refuses that.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Drop for GuardedMap {
    fn drop(&mut self) {
        self.entry.len.store(0, Release);
        // SAFETY: `base` and `len` are a mapping made by `new` and unmapped only here. The owner guarantees that no
        // reference into it is left (see `StreamFile`, `Session`).
        unsafe { libc::munmap(self.base.cast(), self.len) };
        self.entry.base.store(0, Release);
    }
}

fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: an all-zero sigaction is a valid value; both structs outlive the calls, the old one is never freed.
        // The handler has the three-argument form of SA_SIGINFO.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = on_bus_error;
            action.sa_sigaction = handler as libc::sighandler_t;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&mut action.sa_mask);
            let before = Box::into_raw(Box::new(std::mem::zeroed()));
            BEFORE.store(before, Release);
            libc::sigaction(libc::SIGBUS, &action, before);
        }
    });
}

/// Async-signal-safe: atomics and two system calls.
extern "C" fn on_bus_error(_: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo for a handler installed with SA_SIGINFO.
    let at = unsafe { (*info).si_addr() }.addr();
    for entry in &ENTRIES {
        let (base, len) = (entry.base.load(Acquire), entry.len.load(Acquire));
        if base > 1 && (base..base.saturating_add(len)).contains(&at) {
            // SAFETY: replaces a whole guarded mapping by zeros; it is accessed only through atomics, for which zeros
            // are a value.
            let new = unsafe {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
                let protection = libc::PROT_READ | libc::PROT_WRITE;
                libc::mmap(ptr::with_exposed_provenance_mut(base), len, protection, flags, -1, 0)
            };
            if new != libc::MAP_FAILED {
                return;
            }
        }
    }
    let before = BEFORE.load(Acquire);
    if !before.is_null() {
        // SAFETY: the fault is not in a guarded mapping. The earlier action is restored and the fault happens again.
        unsafe { libc::sigaction(libc::SIGBUS, before, ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn a_truncated_file_reads_as_zeros() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(16384).unwrap();
        let map = GuardedMap::new(file.as_fd(), 16384).unwrap();
        // SAFETY: inside the mapping, aligned, and accessed only as an atomic.
        let word = unsafe { &*map.base().add(8192).cast::<AtomicU64>() };
        word.store(7, Relaxed);
        file.set_len(0).unwrap();
        assert_eq!(word.load(Relaxed), 0);
        word.store(9, Relaxed);
        assert_eq!(word.load(Relaxed), 9);
    }
}
