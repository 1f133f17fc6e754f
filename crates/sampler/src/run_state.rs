//! Whether this process has a sampler, and whether it is to stop.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};
use stackglass_host::{fork_guard, system};

const IDLE: u32 = 0;
const RUNNING: u32 = 1;
const STOPPING: u32 = 2;

/// In a forked child this is still the parent's state; the fork guard tells.
static STATE: AtomicU32 = AtomicU32::new(IDLE);

/// 1 once the threads that were there at the beginning are known.
static BEGUN: AtomicU32 = AtomicU32::new(0);

/// Whether a thread of the program is about to change its own rights.
static OWN_RIGHTS: AtomicBool = AtomicBool::new(false);

/// The sampler ends because a thread changes its own rights.
pub(crate) fn expect_own_rights() {
    OWN_RIGHTS.store(true, Release);
}

/// Whether that is why it ends.
pub(crate) fn expects_own_rights() -> bool {
    OWN_RIGHTS.load(Acquire)
}

/// Waits until the sampler knows the threads that are there, at most `patience` ns. What threads that begin later run is all part of
/// the recording.
pub fn wait_until_begun(patience: u64) {
    let until = system::now() + patience;
    while BEGUN.load(Acquire) == 0 && is_running() && system::now() < until {
        system::sleep_until(&BEGUN, 0, until);
    }
}

/// The threads that are there are known.
pub(crate) fn begin() {
    if BEGUN.swap(1, AcqRel) == 0 {
        system::wake(&BEGUN);
    }
}

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
    BEGUN.store(0, Release);
    OWN_RIGHTS.store(false, Release);
    STATE.store(RUNNING, Release);
}

/// The sampler has ended, or could not start.
pub(crate) fn finish() {
    STATE.store(IDLE, Release);
    begin();
}

/// Tells the sampler to stop. False if there is none.
pub(crate) fn request_stop() -> bool {
    STATE.compare_exchange(RUNNING, STOPPING, AcqRel, Acquire) != Err(IDLE)
}
