//! Handlers of the program on small alternate stacks: the sampling signal waits until they return.
//!
//! While such a handler runs, the kernel would put the frame of the sampling signal on the same stack, which has no room for
//! both (`stackglass_host::alternate_stack`). Once the program has a small alternate stack, the kernel's mask of its handlers
//! therefore includes the sampling signal. The functions of the C library hide this: the program gets the mask that it
//! set, and a handler sees the sampling signal unblocked and cannot unblock it.

use crate::real_functions;
use crate::sigset::{bit, mask_word, set_of};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use stackglass_host::{alternate_stack, has_our_handler, signal};

/// Signals to whose mask this library has added the sampling signal, a bit each.
static MASKED: AtomicU64 = AtomicU64::new(0);
/// The program has, or had, a small alternate stack.
static SMALL: AtomicBool = AtomicBool::new(false);

/// Notes that the program sets an alternate stack of this size.
pub fn before_stack(bytes: usize) {
    if bytes < alternate_stack::enough_for_two() && !SMALL.swap(true, AcqRel) {
        mask_all(None);
    }
}

/// Replaces the sampling signal `before` in all masks by the current one.
pub fn signal_changed(before: i32) {
    if SMALL.load(Acquire) {
        mask_all(Some(before));
    }
}

fn mask_all(before: Option<i32>) {
    let Some(real) = real_functions::sigaction() else { return };
    for number in (1..=64).filter(|number| !has_our_handler(*number)) {
        // SAFETY: an all-zero sigaction is a value; the C library fills it and then reads it.
        unsafe {
            let mut action: libc::sigaction = core::mem::zeroed();
            if real(number, core::ptr::null(), &mut action) != 0 {
                continue;
            }
            if let Some(before) = before.filter(|_| MASKED.load(Acquire) & bit(number) != 0) {
                action.sa_mask = set_of(mask_word(&action.sa_mask) & !bit(before));
            }
            if let Some(changed) = for_kernel(&action)
                && real(number, &changed, core::ptr::null_mut()) == 0
            {
                MASKED.fetch_or(bit(number), AcqRel);
            }
        }
    }
}

/// The action for the kernel, if it differs from the program's.
pub fn for_kernel(action: &libc::sigaction) -> Option<libc::sigaction> {
    let ours = bit(signal::installed()?);
    let mask = mask_word(&action.sa_mask);
    let runs_there = action.sa_sigaction > libc::SIG_IGN && action.sa_flags & libc::SA_ONSTACK != 0;
    (SMALL.load(Acquire) && runs_there && mask & ours == 0)
        .then(|| libc::sigaction { sa_mask: set_of(mask | ours), ..*action })
}

/// Notes that the program has set an action, and whether the kernel has [another](for_kernel).
pub fn is_set(number: i32, changed: bool) {
    if changed {
        MASKED.fetch_or(bit(number), AcqRel);
    } else {
        MASKED.fetch_and(!bit(number), AcqRel);
    }
}

/// Whether this library has added the sampling signal to the mask of a signal's action.
pub fn is_masked(number: i32) -> bool {
    MASKED.load(Acquire) & bit(number) != 0
}

/// Removes the sampling signal from a mask that the program gets.
pub fn hide(mask: &mut libc::sigset_t) {
    if let Some(ours) = signal::installed() {
        *mask = set_of(mask_word(mask) & !bit(ours));
    }
}

/// Whether the calling thread is in a handler for which this library blocks the sampling signal.
pub fn runs_one() -> bool {
    if MASKED.load(Acquire) == 0 {
        return false;
    }
    // SAFETY: an all-zero stack_t is a value, which the kernel fills.
    unsafe {
        let mut stack: libc::stack_t = core::mem::zeroed();
        let none: *const libc::stack_t = core::ptr::null();
        libc::syscall(libc::SYS_sigaltstack, none, &raw mut stack) == 0
            && stack.ss_flags & libc::SS_ONSTACK != 0
    }
}
