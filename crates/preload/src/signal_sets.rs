//! Removes the sampling signal from sets that mean *all* signals.
//!
//! Many libraries block all signals in their worker threads, which would then never be sampled. Many programs let one thread
//! wait for all signals, which would then get the sampling signal. Both mean every signal of the program, to which the
//! sampling signal does not belong. A small set that contains it is passed on unchanged: the program uses that signal.
//!
//! A program that reads its mask gets the one that it has set. Each thread stores the signals removed from its mask, and a new
//! thread inherits them with the mask.

use crate::alternate_handlers;
use crate::hooks::fail;
use crate::real_functions;
use crate::sigset::{mask_word, set_of};
use core::cell::Cell;
use core::ffi::c_int;
use stackglass_host::{fork_guard, guest, signal};

/// A set with this many of the first 31 signals means all signals.
const ALL_OF_THEM: u32 = 20;

thread_local! {
    /// Signals removed from this thread's mask. This library is loaded at program start, so the variable exists in every
    /// thread.
    static REMOVED: Cell<u64> = const { Cell::new(0) };
}

/// The signals removed from the calling thread's mask.
pub(crate) fn removed() -> u64 {
    REMOVED.get()
}

/// Sets the removed signals of a new thread, which inherits them from its creator.
pub(crate) fn inherit(removed: u64) {
    REMOVED.set(removed);
}

/// A set to pass on: the caller's, or a copy without the sampling signal if it means all signals.
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

    /// As `on`, with signals that were removed before and stay removed.
    ///
    /// # Safety
    /// `caller` must be null or point to a set.
    unsafe fn beside(caller: *const libc::sigset_t, removed: u64) -> Passed {
        // SAFETY: by the caller.
        let copy = unsafe { caller.as_ref() }.and_then(|set| {
            let ours = 1u64 << (signal::installed()? - 1);
            let mask = mask_word(set);
            let all = (mask & 0x7fff_ffff).count_ones() >= ALL_OF_THEM || removed & ours != 0;
            let meant = all && mask & ours != 0;
            (meant && guest::current().is_some() && fork_guard::is_own_process())
                .then(|| set_of(mask & !ours))
        });
        Passed { caller, copy }
    }

    /// In a handler for which this library blocks the sampling signal: it stays blocked.
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

/// Changes the calling thread's mask by `real`, and returns the old mask as the program has set it.
///
/// # Safety
/// As for the C library's function, which `real` is.
unsafe fn change_mask(
    real: unsafe extern "C" fn(c_int, *const libc::sigset_t, *mut libc::sigset_t) -> c_int,
    how: c_int,
    set: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    let before = removed();
    if !fork_guard::is_own_process() {
        // A child with its parent's memory, including thread-locals, has its own mask and is not sampled.
        // SAFETY: passed on unchanged; `old` is null, or the call has filled it.
        return unsafe {
            let answer = real(how, set, old);
            if let Some(old) = old.as_mut().filter(|_| answer == 0) {
                *old = set_of(mask_word(old) | before);
            }
            answer
        };
    }
    let in_handler = alternate_handlers::runs_one();
    // SAFETY: the caller's pointers are null or valid, as the C library requires, and passed on unchanged,
    // except a set that means all signals. They may be the same: `set` is read before the call.
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
            REMOVED.set(match how {
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
    let Some(real) = real_functions::pthread_sigmask() else { return libc::ENOSYS };
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
    let Some(real) = real_functions::sigprocmask() else { return fail(libc::ENOSYS) };
    // SAFETY: as for the C library's function.
    unsafe { change_mask(real, how, set, old) }
}

/// sigwait(3).
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigwait(set: *const libc::sigset_t, number: *mut c_int) -> c_int {
    let Some(real) = real_functions::sigwait() else { return libc::ENOSYS };
    // SAFETY: the caller's pointers are null or valid, as the C library requires, and passed on unchanged,
    // except a set that means all signals.
    unsafe { real(Passed::on(set).as_ptr(), number) }
}

/// sigwaitinfo(2).
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigwaitinfo(set: *const libc::sigset_t, info: *mut libc::siginfo_t) -> c_int {
    let Some(real) = real_functions::sigwaitinfo() else { return fail(libc::ENOSYS) };
    // SAFETY: the caller's pointers are null or valid, as the C library requires, and passed on unchanged,
    // except a set that means all signals.
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
    let Some(real) = real_functions::sigtimedwait() else { return fail(libc::ENOSYS) };
    // SAFETY: the caller's pointers are null or valid, as the C library requires, and passed on unchanged,
    // except a set that means all signals.
    unsafe { real(Passed::on(set).as_ptr(), info, limit) }
}

/// signalfd(2).
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn signalfd(fd: c_int, set: *const libc::sigset_t, flags: c_int) -> c_int {
    let Some(real) = real_functions::signalfd() else { return fail(libc::ENOSYS) };
    // SAFETY: the caller's pointers are null or valid, as the C library requires, and passed on unchanged,
    // except a set that means all signals.
    unsafe { real(fd, Passed::on(set).as_ptr(), flags) }
}
