//! A private page by which a forked child learns that it is not the sampled process.
//!
//! The page is `MADV_WIPEONFORK`: after a fork, by whatever call, it reads as zeros in the child, while the signal
//! handler and the hooks are still installed. They read it before they touch memory that the child does not have.

use crate::system;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*};

/// The page. All zeros in a child.
#[repr(C)]
struct ForkGuard {
    /// Process id of the sampled process; 0 in a child, and before [`arm`].
    pid: AtomicU32,
    /// Random word that sampling signals carry in `si_errno`.
    cookie: AtomicU32,
    /// In a forked child that is not sampled: its process id, after its first [`is_own_process`].
    child: AtomicU32,
}

static PAGE: AtomicPtr<ForkGuard> = AtomicPtr::new(core::ptr::null_mut());

/// The page, if there is one.
#[inline]
fn page() -> Option<&'static ForkGuard> {
    // SAFETY: the pointer is null or a page that is never unmapped and made of atomics.
    unsafe { PAGE.load(Acquire).as_ref() }
}

/// The sampled process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SampledProcess {
    /// Its process id.
    pub pid: u32,
    /// The random word that its sampling signals carry in `si_errno`.
    pub cookie: u32,
}

/// The sampled process, if this is it; `None` in a forked child.
#[inline]
pub fn sampled_process() -> Option<SampledProcess> {
    let page = page()?;
    match page.pid.load(Acquire) {
        0 => None,
        pid => Some(SampledProcess { pid, cookie: page.cookie.load(Relaxed) }),
    }
}

/// Whether this is the sampled process; false in a forked child.
#[inline]
pub fn is_sampled() -> bool {
    sampled_process().is_some()
}

/// Whether the caller runs in the process that this memory belongs to, sampled or not.
///
/// A child of `vfork` shares its parent's memory, this page included. Its signal actions, alternate stack and threads
/// are separate. Its requests must not be recorded as its parent's.
pub fn is_own_process() -> bool {
    let Some(page) = page() else { return true };
    if crate::confined::is_confined() {
        // The kernel must not be asked.
        return page.pid.load(Acquire) != 0;
    }
    let own = system::process_id();
    match page.pid.load(Acquire) {
        // The memory of a forked child that is not sampled belongs to the first process that asks.
        0 => page.child.compare_exchange(0, own, AcqRel, Acquire).map_or_else(|child| child == own, |_| true),
        pid => pid == own,
    }
}

/// Makes this process the sampled one. False without memory or `MADV_WIPEONFORK` (Linux before 4.14): nothing may be
/// sampled then, because a child could not be told apart.
pub fn arm() -> bool {
    let page = match page() {
        Some(page) => page,
        None => {
            let at = system::map_private(4096);
            if at.is_null() {
                return false;
            }
            // SAFETY: advice on the page just mapped.
            if unsafe { libc::madvise(at.cast(), 4096, libc::MADV_WIPEONFORK) } != 0 {
                return false;
            }
            // If two threads arm at once, both map a page, and one page stays unused.
            let _ = PAGE.compare_exchange(core::ptr::null_mut(), at.cast(), AcqRel, Acquire);
            match page() {
                Some(page) => page,
                None => return false,
            }
        }
    };
    let mixed =
        (system::now() ^ (page as *const ForkGuard).addr() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    page.cookie.store((mixed >> 33) as u32 | 1, Relaxed);
    page.pid.store(system::process_id(), Release);
    true
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_child_is_told_apart_however_it_was_forked() {
        assert!(super::arm());
        assert_eq!(super::sampled_process().map(|process| process.pid), Some(std::process::id()));
        // SAFETY: the child makes one check and leaves at once.
        let status = unsafe {
            let child = libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as i32;
            if child == 0 {
                libc::_exit(if !super::is_sampled() { 7 } else { 1 });
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
            status
        };
        assert_eq!(libc::WEXITSTATUS(status), 7);
    }

    #[test]
    fn a_child_with_its_parents_memory_is_told_apart() {
        assert!(super::arm() && super::is_own_process());
        extern "C" fn child(_: *mut core::ffi::c_void) -> i32 {
            if !super::is_own_process() && super::is_sampled() { 7 } else { 1 }
        }
        let mut stack = vec![0u128; 4096];
        // SAFETY: as `posix_spawn` does it: the parent waits until the child, which has a separate stack, is gone.
        let status = unsafe {
            let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
            let top = stack.as_mut_ptr().add(stack.len()).cast();
            let child = libc::clone(child, top, flags, core::ptr::null_mut());
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
            status
        };
        assert_eq!(libc::WEXITSTATUS(status), 7);
        assert!(super::is_own_process());
    }
}
