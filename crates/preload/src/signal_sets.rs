//! Sets of signals that mean *all* signals leave ours out.
//!
//! Many libraries block all signals in their worker threads, and many programs let one thread wait for all of
//! them. The first would never be sampled; the second would meet a signal that nobody sent. Both mean "every
//! signal of this program", of which ours is none. A set that names ours among a few is passed on as it is: such
//! a program has its own use for it.
//!
//! A program that asks for its mask is told the one that it has set: each thread remembers what was left out of it,
//! and a new thread inherits that as it does the mask.

use crate::alternate_handlers;
use crate::hooks::{fail, mask_word, set_of};
use crate::next;
use core::cell::Cell;
use core::ffi::c_int;
use stackglass_host::{fork_guard, guest, signal};

/// This many of the first 31 signals in one set mean "all of them".
const ALL_OF_THEM: u32 = 20;

thread_local! {
    /// Signals that this thread believes to block. In place in every thread from its beginning, since this library
    /// is there from the program's.
    static LEFT_OUT: Cell<u64> = const { Cell::new(0) };
}

/// What was left out of the calling thread's mask.
pub(crate) fn left_out() -> u64 {
    LEFT_OUT.get()
}

/// A new thread's mask is its maker's, also in what was `left_out`.
pub(crate) fn inherit(left_out: u64) {
    LEFT_OUT.set(left_out);
}

/// A set as it is passed on: the caller's, or a copy without our signal if it means all signals.
struct Passed {
    caller: *const libc::sigset_t,
    copy: Option<libc::sigset_t>,
}

impl Passed {
    /// # Safety
    /// `caller` must be null or point to a set.
    unsafe fn on(caller: *const libc::sigset_t) -> Passed {
        // SAFETY: by the caller.
        unsafe { Passed::beside(caller, 0) }
    }

    /// As `on`, when what is `left_out` already stays so.
    ///
    /// # Safety
    /// `caller` must be null or point to a set.
    unsafe fn beside(caller: *const libc::sigset_t, left_out: u64) -> Passed {
        // SAFETY: by the caller.
        let copy = unsafe { caller.as_ref() }.and_then(|set| {
            let ours = 1u64 << (signal::installed()? - 1);
            let mask = mask_word(set);
            let all = (mask & 0x7fff_ffff).count_ones() >= ALL_OF_THEM || left_out & ours != 0;
            let meant = all && mask & ours != 0;
            (meant && guest::current().is_some() && fork_guard::is_own_process())
                .then(|| set_of(mask & !ours))
        });
        Passed { caller, copy }
    }

    /// In a handler during which our signal is blocked by us: it stays so.
    ///
    /// # Safety
    /// `caller` must be null or point to a set.
    unsafe fn in_handler(how: c_int, caller: *const libc::sigset_t) -> Passed {
        // SAFETY: by the caller.
        let copy = unsafe { caller.as_ref() }.and_then(|set| {
            let ours = 1u64 << (signal::installed()? - 1);
            match how {
                libc::SIG_SETMASK => Some(set_of(mask_word(set) | ours)),
                libc::SIG_UNBLOCK => Some(set_of(mask_word(set) & !ours)),
                _ => None,
            }
        });
        Passed { caller, copy }
    }

    fn as_ptr(&self) -> *const libc::sigset_t {
        self.copy.as_ref().map_or(self.caller, |copy| copy as *const libc::sigset_t)
    }
}

/// Changes the calling thread's mask by `real` and answers as if nothing was left out.
///
/// # Safety
/// As for the C library's function, which `real` is.
unsafe fn change_mask(
    real: unsafe extern "C" fn(c_int, *const libc::sigset_t, *mut libc::sigset_t) -> c_int,
    how: c_int,
    set: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    let before = left_out();
    if !fork_guard::is_own_process() {
        // A child that has its parent's memory, thread-locals included: it has a mask of its own and nothing is sampled there.
        // SAFETY: passed on as it came; `old` is null or was filled just now.
        return unsafe {
            let answer = real(how, set, old);
            if let Some(old) = old.as_mut().filter(|_| answer == 0) {
                *old = set_of(mask_word(old) | before);
            }
            answer
        };
    }
    let in_handler = alternate_handlers::runs_one();
    // SAFETY: the caller's pointers are null or valid, as the C library asks for, and passed on as they came,
    // but for a set that means all signals. They may be the same: `set` is read before the call.
    unsafe {
        let mask = set.as_ref().map(mask_word);
        let passed = if in_handler {
            Passed::in_handler(how, set)
        } else if how == libc::SIG_UNBLOCK {
            Passed { caller: set, copy: None }
        } else {
            Passed::beside(set, before)
        };
        let answer = real(how, passed.as_ptr(), old);
        if answer != 0 {
            return answer;
        }
        if let Some(old) = old.as_mut().filter(|_| in_handler) {
            alternate_handlers::hide(old);
        }
        if let Some(mask) = mask.filter(|_| !in_handler) {
            let new = passed.copy.as_ref().map_or(0, |copy| mask & !mask_word(copy));
            LEFT_OUT.set(match how {
                libc::SIG_BLOCK => before | new,
                libc::SIG_UNBLOCK => before & !mask,
                _ => new,
            });
        }
        if let Some(old) = old.as_mut().filter(|_| before != 0) {
            *old = set_of(mask_word(old) | before);
        }
        answer
    }
}

/// pthread_sigmask(3).
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_sigmask(
    how: c_int,
    set: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    let Some(real) = next::pthread_sigmask() else { return libc::ENOSYS };
    // SAFETY: as for the C library's function.
    unsafe { change_mask(real, how, set, old) }
}

/// sigprocmask(2).
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigprocmask(
    how: c_int,
    set: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    let Some(real) = next::sigprocmask() else { return fail(libc::ENOSYS) };
    // SAFETY: as for the C library's function.
    unsafe { change_mask(real, how, set, old) }
}

/// sigwait(3).
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigwait(set: *const libc::sigset_t, number: *mut c_int) -> c_int {
    let Some(real) = next::sigwait() else { return libc::ENOSYS };
    // SAFETY: the caller's pointers are null or valid, as the C library asks for, and passed on as they came,
    // but for a set that means all signals.
    unsafe { real(Passed::on(set).as_ptr(), number) }
}

/// sigwaitinfo(2).
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigwaitinfo(set: *const libc::sigset_t, info: *mut libc::siginfo_t) -> c_int {
    let Some(real) = next::sigwaitinfo() else { return fail(libc::ENOSYS) };
    // SAFETY: the caller's pointers are null or valid, as the C library asks for, and passed on as they came,
    // but for a set that means all signals.
    unsafe { real(Passed::on(set).as_ptr(), info) }
}

/// sigtimedwait(2).
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigtimedwait(
    set: *const libc::sigset_t,
    info: *mut libc::siginfo_t,
    limit: *const libc::timespec,
) -> c_int {
    let Some(real) = next::sigtimedwait() else { return fail(libc::ENOSYS) };
    // SAFETY: the caller's pointers are null or valid, as the C library asks for, and passed on as they came,
    // but for a set that means all signals.
    unsafe { real(Passed::on(set).as_ptr(), info, limit) }
}

/// signalfd(2).
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn signalfd(fd: c_int, set: *const libc::sigset_t, flags: c_int) -> c_int {
    let Some(real) = next::signalfd() else { return fail(libc::ENOSYS) };
    // SAFETY: the caller's pointers are null or valid, as the C library asks for, and passed on as they came,
    // but for a set that means all signals.
    unsafe { real(fd, Passed::on(set).as_ptr(), flags) }
}
