//! Mappings whose file may be truncated by a program we do not trust.
//!
//! Touching such a page raises SIGBUS. The handler here puts zeroed private memory in the place of
//! the whole mapping, so that the reader goes on, finds nonsense, and says so.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};

/// Mappings that can be guarded at a time.
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
/// Its bytes may be changed by other processes at any time, so they must only be touched through
/// atomics.
pub struct GuardedMap {
    base: *mut u8,
    len: usize,
    entry: &'static Entry,
}

// SAFETY: the memory is process-wide and only touched through atomics; the entry is atomic.
unsafe impl Send for GuardedMap {}
// SAFETY: as above.
unsafe impl Sync for GuardedMap {}

impl GuardedMap {
    /// Maps the first `len` bytes of `file`.
    ///
    /// # Errors
    /// What mmap says; `OutOfMemory` when too many mappings are guarded already.
    pub fn new(file: BorrowedFd<'_>, len: usize) -> std::io::Result<GuardedMap> {
        install();
        let entry = ENTRIES
            .iter()
            .find(|entry| entry.base.compare_exchange(0, 1, AcqRel, Relaxed).is_ok())
            .ok_or(std::io::ErrorKind::OutOfMemory)?;
        // SAFETY: a new shared mapping at an address of the kernel's choice disturbs nobody.
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

    /// First byte; valid for [`GuardedMap::len`] bytes while this lives, page-aligned.
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    /// Bytes mapped.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True for a mapping of no bytes (there is none: the kernel refuses it).
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Drop for GuardedMap {
    fn drop(&mut self) {
        self.entry.len.store(0, Release);
        // SAFETY: `base` and `len` are a mapping made in `new` that nobody else unmaps; that no
        // reference into it is left is the duty of the owner (see `StreamFile`, `Session`).
        unsafe { libc::munmap(self.base.cast(), self.len) };
        self.entry.base.store(0, Release);
    }
}

fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: an all-zero sigaction is a valid value; both structures outlive the calls, the
        // old one for ever. The handler has the three-argument form that SA_SIGINFO asks for.
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
            // SAFETY: replaces a mapping of ours, whole, by zeros; all that refers into it are
            // atomics, for which zeros are a value.
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
        // SAFETY: not ours. The action from before comes back and the fault happens again.
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
        // SAFETY: inside the mapping, aligned, touched as an atomic only.
        let word = unsafe { &*map.base().add(8192).cast::<AtomicU64>() };
        word.store(7, Relaxed);
        file.set_len(0).unwrap();
        assert_eq!(word.load(Relaxed), 0);
        word.store(9, Relaxed);
        assert_eq!(word.load(Relaxed), 9);
    }
}
