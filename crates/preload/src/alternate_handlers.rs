//! Handlers of the program that run on small alternate stacks: our signal waits until they are done.
//!
//! While such a handler runs, the kernel would put the frame of our signal on top of it, on a stack that has no room for both
//! (`stackglass_host::alternate`). So the kernel's mask of the handler has our signal as well, from the moment
//! that the program has a small alternate stack. No program can see that by the functions of the C library: it
//! is told the mask it gave, the handler finds our signal unblocked when it asks, and cannot unblock it.

use crate::hooks::{mask_word, set_of};
use crate::next;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use stackglass_host::{alternate, has_our_handler, signal};

/// Signals whose handler has ours in its mask by us, a bit each.
static MASKED: AtomicU64 = AtomicU64::new(0);
/// There is, or was, a small alternate stack.
static SMALL: AtomicBool = AtomicBool::new(false);

fn bit(number: i32) -> u64 {
    if (1..=64).contains(&number) { 1 << (number - 1) } else { 0 }
}

/// A stack of so many bytes is about to be used.
pub fn stack_appears(bytes: usize) {
    if bytes < alternate::enough_for_two() && !SMALL.swap(true, AcqRel) {
        mask_all(None);
    }
}

/// The program's action has changed our signal: the new one takes the place of `before` in the masks.
pub fn signal_changed(before: i32) {
    if SMALL.load(Acquire) {
        mask_all(Some(before));
    }
}

fn mask_all(before: Option<i32>) {
    let Some(real) = next::sigaction() else { return };
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

/// The action as the kernel is to have it, where that is another one than the program's.
pub fn for_kernel(action: &libc::sigaction) -> Option<libc::sigaction> {
    let ours = bit(signal::installed()?);
    let mask = mask_word(&action.sa_mask);
    let runs_there = action.sa_sigaction > libc::SIG_IGN && action.sa_flags & libc::SA_ONSTACK != 0;
    (SMALL.load(Acquire) && runs_there && mask & ours == 0)
        .then(|| libc::sigaction { sa_mask: set_of(mask | ours), ..*action })
}

/// The program has set an action: whether the kernel has [another](for_kernel).
pub fn is_set(number: i32, changed: bool) {
    if changed {
        MASKED.fetch_or(bit(number), AcqRel);
    } else {
        MASKED.fetch_and(!bit(number), AcqRel);
    }
}

/// Whether the kernel's action for a signal has our signal in its mask by us.
pub fn is_masked(number: i32) -> bool {
    MASKED.load(Acquire) & bit(number) != 0
}

/// Takes our signal out of a mask that the program is told.
pub fn hide(mask: &mut libc::sigset_t) {
    if let Some(ours) = signal::installed() {
        *mask = set_of(mask_word(mask) & !bit(ours));
    }
}

/// Whether the calling thread is in a handler that blocks our signal by us, as far as its mask can be told.
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
