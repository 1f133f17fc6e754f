//! Whether this process has a sampler, and whether it is to stop.

use core::sync::atomic::{AtomicU32, Ordering::*};
use stackglass_host::fork_guard;

const IDLE: u32 = 0;
const RUNNING: u32 = 1;
const STOPPING: u32 = 2;

/// In a forked child this is still the parent's state; the fork guard tells.
static STATE: AtomicU32 = AtomicU32::new(IDLE);

/// Whether this process has a sampler.
pub fn is_running() -> bool {
    fork_guard::is_sampled() && !is_idle()
}

pub(crate) fn is_idle() -> bool {
    STATE.load(Acquire) == IDLE
}

pub(crate) fn is_stopping() -> bool {
    STATE.load(Acquire) == STOPPING
}

/// A sampler is about to start.
pub(crate) fn start() {
    STATE.store(RUNNING, Release);
}

/// The sampler has ended, or could not start.
pub(crate) fn finish() {
    STATE.store(IDLE, Release);
}

/// Tells the sampler to stop. False if there is none.
pub(crate) fn request_stop() -> bool {
    STATE.compare_exchange(RUNNING, STOPPING, AcqRel, Acquire) != Err(IDLE)
}
