//! Interposed functions of the C library.
//!
//! - `sigaction`, `signal`, `sysv_signal`, `sigset`: the program's handler for the sampling signal is stored and called by
//!   this library's, and the program sees its own settings. A handler of the program is noted before it can run: from then
//!   on, no interrupted call is restarted (`restart`). SIGUSR1 requests a peek as long as the program leaves it at its
//!   default.
//! - `sigaltstack`: alternate stacks that are too small for the sampling handler, alone or above another one, are noted.
//! - `dlclose`: the sampler drops a closed library's unwind rules at its next tick.
//!
//! `pthread_create` is in `threads`; functions with sets of signals are in `signal_sets`. All other calls are passed on
//! unchanged. A child of `vfork` has its parent's memory: its calls go to the kernel, and nothing is noted.

use crate::alternate_handlers;
use crate::real_functions::{self, Handler};
use crate::sigset::{mask_word, set_of};
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering::*;
use stackglass_host::{Action, has_our_handler, signal};
use stackglass_host::{fork_guard, guest, peek, restart};

pub(crate) fn fail(errno: c_int) -> c_int {
    // SAFETY: errno's address is this thread's own and always valid.
    unsafe { *libc::__errno_location() = errno };
    -1
}

fn is_ours(number: c_int) -> bool {
    has_our_handler(number)
}

/// Notes a handler of the program before it can run.
fn before_handler(number: c_int, handler: Handler) {
    if handler > libc::SIG_IGN {
        restart::program_has_a_handler(number);
    }
}

/// As [`signal::program_action`], which may change the sampling signal.
fn program_action(number: c_int, new: Option<Action>) -> Action {
    let before = signal::installed();
    let old = signal::program_action(number, new);
    if let Some(before) = before.filter(|before| signal::installed() != Some(*before)) {
        alternate_handlers::signal_changed(before);
    }
    old
}

/// Handles an action for the signal of peeks: the program sees the default instead of this library's handler, and a default
/// that it sets becomes that handler.
fn after_peek_signal(new: Option<&libc::sigaction>, old: Option<&mut libc::sigaction>) {
    if let Some(old) = old
        && peek::is_handler(old.sa_sigaction)
    {
        fill(old, Action::DEFAULT);
    }
    if let Some(new) = new {
        peek::program_owns(new.sa_sigaction != libc::SIG_DFL);
    }
}

/// sigaction(2).
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(
    number: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // SAFETY: the caller's pointers are null or valid, as the C library requires.
    let (new, old) = unsafe { (new.as_ref(), old.as_mut()) };
    if !fork_guard::is_own_process() {
        // SAFETY: passed on unchanged.
        return unsafe { sigaction_of_child(number, new, old) };
    }
    if let Some(new) = new {
        before_handler(number, new.sa_sigaction);
    }
    if is_ours(number) {
        let asked = new.map(|n| Action::new(n.sa_sigaction, n.sa_flags as u64, mask_word(&n.sa_mask)));
        let before = program_action(number, asked);
        if let Some(old) = old {
            fill(old, before);
        }
        return 0;
    }
    let Some(real) = real_functions::sigaction() else { return fail(libc::ENOSYS) };
    let old_at = old.map_or(core::ptr::null_mut(), |o| o as *mut libc::sigaction);
    let changed = new.and_then(alternate_handlers::for_kernel);
    let was_masked = alternate_handlers::is_masked(number);
    // SAFETY: the caller's pointers, or a copy with one more signal in the mask.
    let answer = unsafe { real(number, changed.as_ref().or(new).map_or(core::ptr::null(), |n| n), old_at) };
    if answer != 0 {
        return answer;
    }
    // SAFETY: null, or the caller's, which the C library has filled.
    let mut old = unsafe { old_at.as_mut() };
    if let Some(old) = old.as_deref_mut().filter(|_| was_masked) {
        alternate_handlers::hide(&mut old.sa_mask);
    }
    if new.is_some() {
        alternate_handlers::is_set(number, changed.is_some());
    }
    if number == peek::SIGNAL {
        after_peek_signal(new, old);
    }
    answer
}

fn fill(old: &mut libc::sigaction, action: Action) {
    old.sa_sigaction = action.handler;
    old.sa_flags = action.flags as c_int;
    old.sa_mask = set_of(action.mask);
    old.sa_restorer = None;
}

/// `sigaction` in a child with its parent's memory. The kernel has separate actions for it, so nothing is noted. If it has
/// inherited a handler of this library, it gets the action that the parent has set.
///
/// # Safety
/// As for the C library's.
unsafe fn sigaction_of_child(
    number: c_int,
    new: Option<&libc::sigaction>,
    old: Option<&mut libc::sigaction>,
) -> c_int {
    let Some(real) = real_functions::sigaction() else { return fail(libc::ENOSYS) };
    let old_at = old.map_or(core::ptr::null_mut(), |o| o as *mut libc::sigaction);
    // SAFETY: the caller's pointers, unchanged.
    let answer = unsafe { real(number, new.map_or(core::ptr::null(), |n| n), old_at) };
    // SAFETY: null, or the caller's, which the C library has filled.
    if let Some(old) = unsafe { old_at.as_mut() }.filter(|_| answer == 0) {
        if signal::is_handler(old.sa_sigaction) {
            fill(old, signal::program_action(number, None));
        } else if peek::is_handler(old.sa_sigaction) {
            fill(old, Action::DEFAULT);
        } else if alternate_handlers::is_masked(number) {
            alternate_handlers::hide(&mut old.sa_mask);
        }
    }
    answer
}

/// signal(2): the handler stays installed, calls are restarted.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn signal(number: c_int, handler: Handler) -> Handler {
    if !fork_guard::is_own_process() {
        return set_action(number, handler, libc::SA_RESTART);
    }
    before_handler(number, handler);
    if is_ours(number) {
        let own = 1 << (number - 1);
        return program_action(number, Some(Action::new(handler, libc::SA_RESTART as u64, own))).handler;
    }
    if number == peek::SIGNAL {
        return set_action(number, handler, libc::SA_RESTART);
    }
    match real_functions::signal() {
        // SAFETY: passed on unchanged.
        Some(real) => unsafe { real(number, handler) },
        None => libc::SIG_ERR,
    }
}

/// signal(2) and similar functions, by [`sigaction`].
fn set_action(number: c_int, handler: Handler, flags: c_int) -> Handler {
    let (mut new, mut old) = (action_of(handler, flags), action_of(libc::SIG_DFL, 0));
    if flags & libc::SA_NODEFER == 0 && (1..=64).contains(&number) {
        new.sa_mask = set_of(1 << (number - 1));
    }
    // SAFETY: both are live.
    match unsafe { sigaction(number, &new, &mut old) } {
        0 => old.sa_sigaction,
        _ => libc::SIG_ERR,
    }
}

fn action_of(handler: Handler, flags: c_int) -> libc::sigaction {
    libc::sigaction { sa_sigaction: handler, sa_flags: flags, sa_mask: set_of(0), sa_restorer: None }
}

/// The other name of [`signal`].
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bsd_signal(number: c_int, handler: Handler) -> Handler {
    // SAFETY: passed on unchanged.
    unsafe { signal(number, handler) }
}

/// sysv_signal(3): the handler is removed when it is called, calls are not restarted.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sysv_signal(number: c_int, handler: Handler) -> Handler {
    const FLAGS: c_int = libc::SA_RESETHAND | libc::SA_NODEFER;
    if !fork_guard::is_own_process() {
        return set_action(number, handler, FLAGS);
    }
    before_handler(number, handler);
    if is_ours(number) {
        return program_action(number, Some(Action::new(handler, FLAGS as u64, 0))).handler;
    }
    if number == peek::SIGNAL {
        return set_action(number, handler, FLAGS);
    }
    match real_functions::__sysv_signal() {
        // SAFETY: passed on unchanged.
        Some(real) => unsafe { real(number, handler) },
        None => libc::SIG_ERR,
    }
}

/// sigaltstack(2).
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaltstack(new: *const libc::stack_t, old: *mut libc::stack_t) -> c_int {
    let Some(real) = real_functions::sigaltstack() else { return fail(libc::ENOSYS) };
    // SAFETY: the caller's pointer is null or valid, as the C library requires.
    let asked = unsafe { new.as_ref() }.filter(|_| fork_guard::is_own_process());
    let bytes = asked.map(|new| if new.ss_flags & libc::SS_DISABLE == 0 { new.ss_size } else { 0 });
    if let Some(bytes) = bytes.filter(|bytes| *bytes > 0) {
        if bytes < signal::smallest_alternate_stack() {
            signal::avoid_alternate_stacks();
        }
        alternate_handlers::before_stack(bytes);
    }
    // SAFETY: passed on unchanged.
    unsafe { real(new, old) }
}

/// sigset(3).
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigset(number: c_int, handler: Handler) -> Handler {
    if fork_guard::is_own_process() {
        before_handler(number, handler);
    }
    match real_functions::sigset() {
        // SAFETY: passed on unchanged.
        Some(real) => unsafe { real(number, handler) },
        None => libc::SIG_ERR,
    }
}

/// dlclose(3).
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlclose(library: *mut c_void) -> c_int {
    let Some(real) = real_functions::dlclose() else { return fail(libc::ENOSYS) };
    // SAFETY: passed on unchanged.
    let answer = unsafe { real(library) };
    if let Some(guest) = guest::current() {
        guest.modules_changed.store(1, Release);
    }
    stackglass_heap::modules_changed();
    answer
}
