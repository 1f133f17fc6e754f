//! What is recorded of allocations, and how the program learns it.

use stackglass_procfs::clock::monotonic;
use stackglass_profile::AllocationSampling;
use stackglass_wire::SessionPage;
use stackglass_wire::heap::HeapSampling;
use std::sync::atomic::Ordering::*;
use std::time::Duration;

/// Time for threads that are inside the recorder to leave it.
pub(super) const LEAVE: Duration = Duration::from_millis(5);

/// What is recorded of allocations.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AllocationSettings {
    /// Which allocations.
    pub sampling: AllocationSampling,
}

impl AllocationSettings {
    /// Stores the settings in the session's page. Nothing is recorded before [`AllocationSettings::turn`].
    pub fn store(&self, page: &SessionPage) {
        let (kind, parameter) = match self.sampling {
            AllocationSampling::Every | AllocationSampling::Stacks(_) => (HeapSampling::Every, 0),
            AllocationSampling::Rate(rate) | AllocationSampling::ScaledRate(rate) => {
                (HeapSampling::Rate, rate.to_bits())
            }
            AllocationSampling::Bytes(mean) => (HeapSampling::Bytes, mean),
        };
        page.allocation_parameter.store(parameter, Relaxed);
        page.allocation_sampling.store(kind as u32, Release);
    }

    /// Turns recording on or off in all processes of a session that has settings. Each recording has another number.
    pub fn turn(page: &SessionPage, on: bool) {
        let has_settings = page.allocation_sampling.load(Relaxed) != HeapSampling::Off as u32;
        let number = if on && has_settings { monotonic_millis() | 1 } else { 0 };
        page.allocations.store(number, Release);
    }

    /// Begins a recording that is on anew, with another number: each process counts from zero then, from its next allocation on.
    /// Returns a moment between the two, CLOCK_MONOTONIC in ns.
    pub(crate) fn begin_anew(page: &SessionPage) -> u64 {
        let is_on = page.allocations.load(Acquire) != 0;
        AllocationSettings::turn(page, false);
        let between = monotonic();
        if is_on {
            // Threads that are inside the recorder leave it, and the number becomes another one.
            std::thread::sleep(LEAVE);
            AllocationSettings::turn(page, true);
        }
        between
    }
}

/// CLOCK_MONOTONIC in milliseconds, modulo 2^32.
fn monotonic_millis() -> u32 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a live timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    (time.tv_sec as u64).wrapping_mul(1000).wrapping_add(time.tv_nsec as u64 / 1_000_000) as u32
}
