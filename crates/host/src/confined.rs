//! Whether the program has confined itself to certain system calls (seccomp(2)).
//!
//! A filter may end the program at the first call that it does not know, and strict mode does. So the library makes none on threads
//! that are confined. The kernel cannot be asked which threads are: that would be a call as well. Strict mode also forbids the
//! instruction that reads the clock.

use crate::system;
use core::sync::atomic::{AtomicU32, Ordering::*};

const NO: u32 = 0;
/// Some threads are, and perhaps those that they start.
const SOME: u32 = 1;
const ALL: u32 = 2;

static CONFINED: AtomicU32 = AtomicU32::new(NO);
/// Threads that make system calls for the library just now.
static CALLING: AtomicU32 = AtomicU32::new(0);

/// Notes that the calling thread, or all threads, will be confined. Returns what [`restore`] needs.
pub fn set(all: bool) -> u32 {
    CONFINED.fetch_max(if all { ALL } else { SOME }, SeqCst)
}

/// The call was refused.
pub fn restore(before: u32) {
    CONFINED.store(before, Release);
}

/// Whether any thread is confined.
#[inline]
pub fn is_confined() -> bool {
    CONFINED.load(Relaxed) != NO
}

/// Whether all threads are.
#[inline]
pub fn are_all_confined() -> bool {
    CONFINED.load(Relaxed) == ALL
}

/// A right to make system calls, while it lives.
pub struct Calls(());

/// The right to make system calls; `None` if any thread is confined.
pub fn calls() -> Option<Calls> {
    CALLING.fetch_add(1, SeqCst);
    let calls = Calls(());
    (CONFINED.load(SeqCst) == NO).then_some(calls)
}

impl Drop for Calls {
    fn drop(&mut self) {
        CALLING.fetch_sub(1, Release);
    }
}

/// Waits until no thread makes calls, after [`set`], or until the clock is at `until`.
pub fn wait_for_calls(until: u64) {
    while CALLING.load(SeqCst) != 0 && system::now() < until {
        // SAFETY: no arguments.
        unsafe { libc::sched_yield() };
    }
}
