//! Whether the program has confined itself to certain system calls (seccomp(2)).
//!
//! A filter may end the program at the first call that it does not know, and strict mode does. So the library makes none on threads
//! that are confined. The kernel cannot be asked which threads are: that would be a call as well.

use core::sync::atomic::{AtomicU32, Ordering::*};

const NO: u32 = 0;
/// Some threads are, and perhaps those that they start.
const SOME: u32 = 1;
const ALL: u32 = 2;

static CONFINED: AtomicU32 = AtomicU32::new(NO);

/// Notes that the calling thread, or all threads, will be confined. Returns what [`restore`] needs.
pub fn set(all: bool) -> u32 {
    CONFINED.fetch_max(if all { ALL } else { SOME }, AcqRel)
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
