//! Threads that serve the profiler: no figure includes them.

use core::sync::atomic::{AtomicU32, Ordering::*};
use stackglass_host::{guest, system};

/// Kernel ids of the profiler's threads, 0 for none. The sampler's own thread is in the control page.
static OWN: [AtomicU32; 8] = [const { AtomicU32::new(0) }; 8];

/// Own threads that are being created. Until each has called [`leave_out_this_thread`], no new thread is tracked.
static EXPECTED: AtomicU32 = AtomicU32::new(0);

/// Announces a thread that will call [`leave_out_this_thread`] first.
pub fn expect_helper() {
    EXPECTED.fetch_add(1, AcqRel);
}

/// Takes back one [`expect_helper`], because its thread could not be created.
pub fn expect_no_helper() {
    let _ = EXPECTED.fetch_update(AcqRel, Acquire, |expected| expected.checked_sub(1));
    system::wake(&EXPECTED);
}

/// Whether an announced thread has not yet called [`leave_out_this_thread`].
pub fn expects_helper() -> bool {
    EXPECTED.load(Acquire) > 0
}

/// Waits for announced threads, until `until` (CLOCK_MONOTONIC ns) at most.
pub(crate) fn wait_for_helpers(until: u64) {
    loop {
        let expected = EXPECTED.load(Acquire);
        if expected == 0 || system::now() >= until {
            return;
        }
        system::sleep_until(&EXPECTED, expected, until);
    }
}

/// Leaves the calling thread out of all figures. It must have been [announced](expect_helper). At most eight threads.
pub fn leave_out_this_thread() {
    let tid = system::thread_id();
    let _ = OWN.iter().find(|own| own.compare_exchange(0, tid, AcqRel, Relaxed).is_ok());
    expect_no_helper();
}

/// Reverses [`leave_out_this_thread`], before the thread ends.
pub fn count_this_thread_again() {
    let tid = system::thread_id();
    let _ = OWN.iter().find(|own| own.compare_exchange(tid, 0, AcqRel, Relaxed).is_ok());
}

/// Whether a thread serves the profiler. The sampler's own thread does.
pub fn is_ours(tid: u32) -> bool {
    OWN.iter().any(|own| own.load(Relaxed) == tid)
        || guest::current()
            .and_then(|guest| guest.control())
            .is_some_and(|control| control.sampler_tid.load(Relaxed) == tid)
}
