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

/// CPU time of this process, ns.
pub fn own_cpu() -> u64 {
    read(ClockId::ProcessCPUTime)
}

/// CPU time of the calling thread, ns.
pub fn thread_cpu() -> u64 {
    read(ClockId::ThreadCPUTime)
}
