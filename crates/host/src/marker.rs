//! One private page that tells a forked child that it is not the profiled process.
//!
//! The page is `MADV_WIPEONFORK`: whoever forks, by whatever call, finds it zeroed in the child, while the
//! signal handler and the hooks are still in place. They look here first, before they touch anything that
//! the child does not have.

use crate::system;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*};

/// What the page says; all zeros in a child.
#[repr(C)]
pub struct Marker {
    /// Process id of the profiled process; 0 in a child and while nothing is armed.
    pid: AtomicU32,
    /// Random word that our signals carry in `si_errno`.
    cookie: AtomicU32,
    /// In a forked child that is not sampled: its process id, once it has asked.
    child: AtomicU32,
}

static MARKER: AtomicPtr<Marker> = AtomicPtr::new(core::ptr::null_mut());

/// The page, if there is one.
#[inline]
fn page() -> Option<&'static Marker> {
    // SAFETY: the pointer is null or a page that is never unmapped and made of atomics.
    unsafe { MARKER.load(Acquire).as_ref() }
}

/// Process id and cookie when this is the profiled process, `None` in a forked child.
#[inline]
pub fn armed() -> Option<(u32, u32)> {
    let page = page()?;
    match page.pid.load(Acquire) {
        0 => None,
        pid => Some((pid, page.cookie.load(Relaxed))),
    }
}

/// Whether the caller runs in the process that this memory belongs to, sampled or not.
///
/// A child of `vfork` has the memory of its parent, marker included, but signal settings, alternate stack and
/// threads of its own: what it asks for must not be noted as its parent's.
pub fn is_own_process() -> bool {
    let Some(page) = page() else { return true };
    let own = system::process_id();
    match page.pid.load(Acquire) {
        // The memory of a forked child that is not sampled: it belongs to the first that asks.
        0 => page.child.compare_exchange(0, own, AcqRel, Acquire).map_or_else(|child| child == own, |_| true),
        pid => pid == own,
    }
}

/// Declares this process to be the profiled one. False when there is no memory or no `MADV_WIPEONFORK`
/// (Linux before 4.14): then nothing may be sampled, because a child could not be told apart.
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
            // Two threads that arm at once both map a page; the loser's stays unused.
            let _ = MARKER.compare_exchange(core::ptr::null_mut(), at.cast(), AcqRel, Acquire);
            match page() {
                Some(page) => page,
                None => return false,
            }
        }
    };
    let mixed = (system::now() ^ (page as *const Marker).addr() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    page.cookie.store((mixed >> 33) as u32 | 1, Relaxed);
    page.pid.store(system::process_id(), Release);
    true
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_child_is_told_apart_however_it_was_forked() {
        assert!(super::arm());
        assert_eq!(super::armed().map(|(pid, _)| pid), Some(std::process::id()));
        // SAFETY: the child makes one check and leaves at once.
        let status = unsafe {
            let child = libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as i32;
            if child == 0 {
                libc::_exit(if super::armed().is_none() { 7 } else { 1 });
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
            if !super::is_own_process() && super::armed().is_some() { 7 } else { 1 }
        }
        let mut stack = vec![0u128; 4096];
        // SAFETY: as `posix_spawn` does it: the parent waits until the child, which has a stack of its own, is gone.
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
