//! Functions of the C library that we stand in front of, each for one reason.
//!
//! - `sigaction`, `signal`, `sysv_signal`: the program's own handler for our signal is kept beside ours, and
//!   the program sees its own settings. Handlers that run on an alternate stack block our signal meanwhile,
//!   because two kernel frames and ours may not fit there. SIGUSR1 is a peek as long as the program leaves it at
//!   its default; a handler of the program's own takes its place.
//! - `sigaltstack`: learns of alternate stacks that are too small for our handler.
//! - `dlclose`: the sampler forgets a closed library's unwind rules at its next tick.
//!
//! (`pthread_create` is in `threads`, what takes a set of signals in `signal_sets`.) All pass on unchanged what does not concern us.

use crate::next::{self, Handler};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU64, Ordering::*};
use stackglass_host::signal::{self, Action};
use stackglass_host::{guest, peek};

/// Signals in whose mask we have put ours, a bit each.
static MASKED: AtomicU64 = AtomicU64::new(0);

pub(crate) fn fail(errno: c_int) -> c_int {
    // SAFETY: errno's address is this thread's own and always valid.
    unsafe { *libc::__errno_location() = errno };
    -1
}

fn is_ours(number: c_int) -> bool {
    signal::has_our_handler(number)
}

/// As [`signal::program_action`]. When that has changed our signal, handlers on alternate stacks block the new one.
fn program_action(number: c_int, new: Option<Action>) -> Action {
    let before = signal::installed();
    let old = signal::program_action(number, new);
    let (Some(before), Some(ours)) = (before, signal::installed()) else { return old };
    let masked = MASKED.load(Acquire);
    if let Some(real) = next::sigaction().filter(|_| ours != before) {
        for other in (1..=64).filter(|n| masked >> (n - 1) & 1 == 1) {
            // SAFETY: an all-zero sigaction is a value; the C library fills it and then reads it.
            unsafe {
                let mut action: libc::sigaction = core::mem::zeroed();
                if real(other, core::ptr::null(), &mut action) == 0 && action.sa_sigaction > libc::SIG_IGN {
                    let mask = mask_word(&action.sa_mask) & !(1 << (before - 1)) | 1 << (ours - 1);
                    action.sa_mask = set_of(mask);
                    real(other, &action, core::ptr::null_mut());
                }
            }
        }
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
        (old.sa_sigaction, old.sa_flags, old.sa_mask) = (libc::SIG_DFL, 0, set_of(0));
        old.sa_restorer = None;
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
    if is_ours(number) {
        let asked = new.map(|n| Action::new(n.sa_sigaction, n.sa_flags as u64, mask_word(&n.sa_mask)));
        let before = program_action(number, asked);
        if let Some(old) = old {
            old.sa_sigaction = before.handler;
            old.sa_flags = before.flags as c_int;
            old.sa_mask = set_of(before.mask);
            old.sa_restorer = None;
        }
        return 0;
    }
    let Some(real) = next::sigaction() else { return fail(libc::ENOSYS) };
    let bit = if (1..=64).contains(&number) { 1u64 << (number - 1) } else { 0 };
    let masked_before = MASKED.load(Acquire) & bit != 0;
    let mut changed = None;
    if let (Some(new), Some(ours)) = (new, signal::installed()) {
        let ours = 1u64 << (ours - 1);
        let mask = mask_word(&new.sa_mask);
        let on_stack = new.sa_flags & libc::SA_ONSTACK != 0 && new.sa_flags & libc::SA_NODEFER == 0;
        if on_stack && new.sa_sigaction > libc::SIG_IGN && mask & ours == 0 {
            changed = Some(libc::sigaction { sa_mask: set_of(mask | ours), ..*new });
        }
    }
    let old = old.map_or(core::ptr::null_mut(), |o| o as *mut libc::sigaction);
    let asked = changed.as_ref().or(new).map_or(core::ptr::null(), |n| n as *const libc::sigaction);
    // SAFETY: `asked` is null, the caller's, or our copy with one more signal in the mask.
    let answer = unsafe { real(number, asked, old) };
    if answer == 0 {
        // SAFETY: null or the caller's, filled by the C library just now.
        let mut old = unsafe { old.as_mut() };
        if let (true, Some(old), Some(ours)) = (masked_before, old.as_deref_mut(), signal::installed()) {
            old.sa_mask = set_of(mask_word(&old.sa_mask) & !(1 << (ours - 1)));
        }
        if number == peek::SIGNAL {
            after_peek_signal(new, old);
        }
        if changed.is_some() {
            MASKED.fetch_or(bit, AcqRel);
        } else if new.is_some() {
            MASKED.fetch_and(!bit, AcqRel);
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
    if is_ours(number) {
        let own = 1 << (number - 1);
        return program_action(number, Some(Action::new(handler, libc::SA_RESTART as u64, own))).handler;
    }
    if number == peek::SIGNAL {
        return set_peek_signal(handler, libc::SA_RESTART);
    }
    match next::signal() {
        // SAFETY: passed on as it came.
        Some(real) => unsafe { real(number, handler) },
        None => libc::SIG_ERR,
    }
}

/// signal(2) and its like for the signal of a peek, by way of [`sigaction`].
fn set_peek_signal(handler: Handler, flags: c_int) -> Handler {
    let (mut new, mut old) = (action_of(handler, flags), action_of(libc::SIG_DFL, 0));
    if flags & libc::SA_NODEFER == 0 {
        new.sa_mask = set_of(1 << (peek::SIGNAL - 1));
    }
    // SAFETY: both are live.
    match unsafe { sigaction(peek::SIGNAL, &new, &mut old) } {
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
    if is_ours(number) {
        let flags = (libc::SA_RESETHAND | libc::SA_NODEFER) as u64;
        return program_action(number, Some(Action::new(handler, flags, 0))).handler;
    }
    if number == peek::SIGNAL {
        return set_peek_signal(handler, libc::SA_RESETHAND | libc::SA_NODEFER);
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
    // SAFETY: the caller's pointer is null or valid, as the C library asks for.
    if let Some(new) = unsafe { new.as_ref() }
        && new.ss_flags & libc::SS_DISABLE == 0
        && new.ss_size < signal::smallest_alternate_stack()
    {
        signal::avoid_alternate_stacks();
    }
    match next::sigaltstack() {
        // SAFETY: passed on as it came.
        Some(real) => unsafe { real(new, old) },
        None => fail(libc::ENOSYS),
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
