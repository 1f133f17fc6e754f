//! How a page of shared memory becomes complete: its version is written first, its magic number last.

use core::sync::atomic::Ordering::*;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// Marks a page as complete.
pub(crate) fn publish(magic: &AtomicU64, version: &AtomicU32, number: u64) {
    version.store(crate::VERSION, Relaxed);
    magic.store(number, Release);
}

/// Whether a page is complete and of this version.
#[inline]
pub(crate) fn is_ready(magic: &AtomicU64, version: &AtomicU32, number: u64) -> bool {
    magic.load(Acquire) == number && version.load(Relaxed) == crate::VERSION
}
