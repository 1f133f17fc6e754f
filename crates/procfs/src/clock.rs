//! Clocks of the kernel, in nanoseconds.

use rustix::time::{ClockId, clock_gettime};

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CLOCK_MONOTONIC, ns.
pub fn monotonic() -> u64 {
    read(ClockId::Monotonic)
}

/// CLOCK_REALTIME, ns.
pub fn realtime() -> u64 {
    read(ClockId::Realtime)
}

/// The moment, on CLOCK_MONOTONIC, of a number of clock ticks since boot. It is exact to a tick.
pub fn since_boot(ticks: u64) -> u64 {
    let suspended = read(ClockId::Boottime).saturating_sub(monotonic());
    of_ticks(ticks).saturating_sub(suspended)
}

/// The length of a number of clock ticks, ns.
pub fn of_ticks(ticks: u64) -> u64 {
    ticks.saturating_mul(1_000_000_000 / rustix::param::clock_ticks_per_second().max(1))
}

/// CPU time of this process, ns.
pub fn own_cpu() -> u64 {
    read(ClockId::ProcessCPUTime)
}

/// CPU time of the calling thread, ns.
pub fn thread_cpu() -> u64 {
    read(ClockId::ThreadCPUTime)
}
