//! Tries which perf events this process may open, on itself. Nothing is sampled or stopped.

use super::perf_events::Event;
use super::perf_refused::PerfRefused;
use stackglass_perf::attributes::{self, Attributes, PERF_COUNT_SW_CPU_CLOCK, PERF_TYPE_SOFTWARE, flags};
use stackglass_perf::breakpoint::Breakpoint;
use std::io;

/// A period that never passes, ns.
const NEVER: u64 = 1 << 60;

/// Whether stacks of running threads are sampled; and whether time in the kernel is.
///
/// # Errors
/// What refuses them.
pub fn sampling() -> Result<bool, PerfRefused> {
    Event::open(0, NEVER, false).map_err(PerfRefused::new)?;
    let with_kernel = clock(flags::EXCLUDE_HYPERVISOR);
    Ok(attributes::open(&with_kernel, 0, None).is_ok())
}

/// Whether an event stops a thread in user code (`sigtrap`).
///
/// # Errors
/// Those of the kernel; EINVAL before Linux 5.13.
pub fn stop_in_user_code() -> io::Result<()> {
    const REMOVE_ON_EXEC: u64 = 1 << 36;
    const SIGTRAP: u64 = 1 << 37;
    let stop = clock(flags::EXCLUDE_HYPERVISOR | flags::EXCLUDE_KERNEL | REMOVE_ON_EXEC | SIGTRAP);
    attributes::open(&stop, 0, None).map(drop)
}

/// Whether the processor's breakpoints can be used.
///
/// # Errors
/// Those of the kernel; ENOSPC if all are in use.
pub fn breakpoint() -> io::Result<()> {
    // No instruction is at this address.
    Breakpoint::set(0, 0x1000).map(drop)
}

/// A clock that does not run.
fn clock(more: u64) -> Attributes {
    Attributes {
        kind: PERF_TYPE_SOFTWARE,
        config: PERF_COUNT_SW_CPU_CLOCK,
        sample_period: NEVER,
        flags: flags::DISABLED | more,
        ..Attributes::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_tried_does_nothing() {
        let (sampling, stop, breakpoint) =
            (sampling().is_ok(), stop_in_user_code().is_ok(), breakpoint().is_ok());
        assert!(sampling || !(stop && breakpoint), "one right is needed for all three");
    }
}
