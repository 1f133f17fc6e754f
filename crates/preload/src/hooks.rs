//! Functions of the C library that we stand in front of, each for one reason.
//!
//! - `sigaction`, `signal`, `sysv_signal`, `sigset`: the program's own handler for our signal is kept beside ours, and
//!   the program sees its own settings. That there is a handler at all is noted before it can run: from then on no call
//!   is put back (`restart`). SIGUSR1 is a peek as long as the program leaves it at its default; a handler of the
//!   program's own takes its place.
//! - `sigaltstack`: learns of alternate stacks that are too small for our handler, or for one on top of another.
//! - `dlclose`: the sampler forgets a closed library's unwind rules at its next tick.
//!
//! (`pthread_create` is in `threads`, what takes a set of signals in `signal_sets`.) All pass on unchanged what does not concern us.
//! A child of `vfork` comes by here with its parent's memory: whatever it asks for is between it and the kernel.

use crate::alternate_handlers;
use crate::next::{self, Handler};
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

/// The program is about to install a handler: what is known of its handlers must be true before it can run.
fn before_handler(number: c_int, handler: Handler) {
    if handler > libc::SIG_IGN {
        restart::program_has_a_handler(number);
    }
}

/// As [`signal::program_action`], which may change our signal.
fn program_action(number: c_int, new: Option<Action>) -> Action {
    let before = signal::installed();
    let old = signal::program_action(number, new);
    if let Some(before) = before.filter(|before| signal::installed() != Some(*before)) {
        alternate_handlers::signal_changed(before);
    }
    old
}

/// The first 64 signals of a set.
pub(crate) fn mask_word(set: &libc::sigset_t) -> u64 {
    // SAFETY: a sigset_t is 128 bytes of bits, of which the kernel uses the first eight.
    unsafe { *(set as *const libc::sigset_t).cast::<u64>() }
}

pub(crate) fn set_of(mask: u64) -> libc::sigset_t {
    // SAFETY: all zeros is the empty set; its first eight bytes are the first 64 signals.
    unsafe {
        let mut set: libc::sigset_t = core::mem::zeroed();
        *(&raw mut set).cast::<u64>() = mask;
        set
    }
}

/// The program has asked for, or set, its action for the signal of a peek: it finds the default where ours was, and
/// ours stands in for a default that it sets.
fn after_peek_signal(new: Option<&libc::sigaction>, old: Option<&mut libc::sigaction>) {
    if let Some(old) = old
        && peek::is_handler(old.sa_sigaction)
    {
        tell(old, Action::DEFAULT);
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
    // SAFETY: the caller's pointers are null or valid, as the C library asks for.
    let (new, old) = unsafe { (new.as_ref(), old.as_mut()) };
    if !fork_guard::is_own_process() {
        // SAFETY: as they came.
        return unsafe { sigaction_of_child(number, new, old) };
    }
    if let Some(new) = new {
        before_handler(number, new.sa_sigaction);
    }
    if is_ours(number) {
        let asked = new.map(|n| Action::new(n.sa_sigaction, n.sa_flags as u64, mask_word(&n.sa_mask)));
        let before = program_action(number, asked);
        if let Some(old) = old {
            tell(old, before);
        }
        return 0;
    }
    let Some(real) = next::sigaction() else { return fail(libc::ENOSYS) };
    let old_at = old.map_or(core::ptr::null_mut(), |o| o as *mut libc::sigaction);
    let changed = new.and_then(alternate_handlers::for_kernel);
    let was_masked = alternate_handlers::is_masked(number);
    // SAFETY: the caller's pointers as they came, or our copy with one more signal in the mask.
    let answer = unsafe { real(number, changed.as_ref().or(new).map_or(core::ptr::null(), |n| n), old_at) };
    if answer != 0 {
        return answer;
    }
    // SAFETY: null or the caller's, filled by the C library just now.
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

fn tell(old: &mut libc::sigaction, action: Action) {
    old.sa_sigaction = action.handler;
    old.sa_flags = action.flags as c_int;
    old.sa_mask = set_of(action.mask);
    old.sa_restorer = None;
}

/// In a child that has its parent's memory until it execs: the kernel keeps its actions apart, and nothing is noted. Where it
/// inherited a handler of ours it is told the parent's own action.
///
/// # Safety
/// As for the C library's.
unsafe fn sigaction_of_child(
    number: c_int,
    new: Option<&libc::sigaction>,
    old: Option<&mut libc::sigaction>,
) -> c_int {
    let Some(real) = next::sigaction() else { return fail(libc::ENOSYS) };
    let old_at = old.map_or(core::ptr::null_mut(), |o| o as *mut libc::sigaction);
    // SAFETY: the caller's pointers as they came.
    let answer = unsafe { real(number, new.map_or(core::ptr::null(), |n| n), old_at) };
    // SAFETY: null or the caller's, filled by the C library just now.
    if let Some(old) = unsafe { old_at.as_mut() }.filter(|_| answer == 0) {
        if signal::is_handler(old.sa_sigaction) {
            tell(old, signal::program_action(number, None));
        } else if peek::is_handler(old.sa_sigaction) {
            tell(old, Action::DEFAULT);
        } else if alternate_handlers::is_masked(number) {
            alternate_handlers::hide(&mut old.sa_mask);
        }
    }
    answer
}

/// signal(2): the handler stays, calls are restarted.
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
    match next::signal() {
        // SAFETY: passed on as it came.
        Some(real) => unsafe { real(number, handler) },
        None => libc::SIG_ERR,
    }
}

/// signal(2) and its like by way of [`sigaction`].
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
    // SAFETY: passed on as it came.
    unsafe { signal(number, handler) }
}

/// sysv_signal(3): the handler is gone once it was called, calls are not restarted.
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
    match next::__sysv_signal() {
        // SAFETY: passed on as it came.
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
    let Some(real) = next::sigaltstack() else { return fail(libc::ENOSYS) };
    // SAFETY: the caller's pointer is null or valid, as the C library asks for.
    let asked = unsafe { new.as_ref() }.filter(|_| fork_guard::is_own_process());
    let bytes = asked.map(|new| if new.ss_flags & libc::SS_DISABLE == 0 { new.ss_size } else { 0 });
    if let Some(bytes) = bytes.filter(|bytes| *bytes > 0) {
        if bytes < signal::smallest_alternate_stack() {
            signal::avoid_alternate_stacks();
        }
        alternate_handlers::stack_appears(bytes);
    }
    // SAFETY: passed on as it came.
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
    match next::sigset() {
        // SAFETY: passed on as it came.
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
    let Some(real) = next::dlclose() else { return fail(libc::ENOSYS) };
    // SAFETY: passed on as it came.
    let answer = unsafe { real(library) };
    if let Some(guest) = guest::current() {
        guest.modules_changed.store(1, Release);
    }
    answer
}
