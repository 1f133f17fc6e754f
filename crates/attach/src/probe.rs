//! Tries which perf events this process may open, on itself. Nothing is sampled or stopped.

use super::perf_events::Event;
use super::perf_refused::PerfRefused;
use stackglass_perf::attributes::{self, Attributes, PERF_COUNT_SW_CPU_CLOCK, PERF_TYPE_SOFTWARE, flags};
use stackglass_perf::breakpoint::Breakpoint;
use stackglass_perf::user_stop;
use std::io;

/// A period that never passes, ns.
const NEVER: u64 = 1 << 60;

/// Whether stacks of running threads are sampled; and whether time in the kernel is.
///
/// # Errors
/// What refuses them.
pub fn sampling() -> Result<bool, PerfRefused> {
    Event::open(0, NEVER, false).map_err(PerfRefused::new)?;
    let with_kernel = Attributes {
        kind: PERF_TYPE_SOFTWARE,
        config: PERF_COUNT_SW_CPU_CLOCK,
        sample_period: NEVER,
        flags: flags::DISABLED | flags::EXCLUDE_HYPERVISOR,
        ..Attributes::default()
    };
    Ok(attributes::open(&with_kernel, 0, None).is_ok())
}

/// Whether an event stops a thread in user code, so that a running process can be copied without interrupting its system calls.
/// (One whose threads all sleep can be read anyway.)
///
/// # Errors
/// What refuses it.
pub fn stop_in_user_code() -> Result<(), PerfRefused> {
    user_stop::are_allowed().map_err(PerfRefused::new)
}

/// Whether the processor's breakpoints can be used.
///
/// # Errors
/// Those of the kernel; ENOSPC if all are in use.
pub fn breakpoint() -> io::Result<()> {
    // No instruction is at this address.
    Breakpoint::set(0, 0x1000).map(drop)
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
