//! Whether a thread blocks SIGTRAP, so that a stop in user code would reach the program.
//!
//! The signal of such a stop waits if it is blocked, and sigtimedwait(2) or signalfd(2) would give it to the program. What the kernel
//! shows as blocked cannot be trusted in some calls, which replace the set until they return. A thread that waits for a CPU may still be
//! in one. So a thread that runs is known not to block the signal once it has run for a time, and has not waited meanwhile.

use stackglass_perf::attributes::{self, Attributes, PERF_COUNT_SW_TASK_CLOCK, PERF_TYPE_SOFTWARE, flags};
use stackglass_proc_text::Call;
use stackglass_procfs::Status;
use std::os::fd::OwnedFd;

/// SIGTRAP in a set of signals.
pub(super) const TRAP: u64 = 1 << (libc::SIGTRAP - 1);
/// Any call that replaced the set has returned after this time, ns.
const LEAST_RUN: u64 = 50_000;

/// What is known of a thread that runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mask {
    /// It blocks SIGTRAP.
    Blocks,
    /// It does not.
    Open,
    /// It may do so.
    Unknown,
}

/// Looks at a thread again and again.
#[derive(Default)]
pub(super) struct SignalMask {
    /// Counts how long the thread runs.
    clock: Option<OwnedFd>,
    seen: Option<Seen>,
}

/// A thread that showed no blocked SIGTRAP.
#[derive(Clone, Copy)]
struct Seen {
    voluntary_switches: u64,
    /// How long it had run, ns.
    ran: u64,
}

impl SignalMask {
    /// Looks at a thread that runs.
    pub(super) fn look(&mut self, tid: u32) -> Mask {
        if self.clock.is_none() {
            let clock = Attributes {
                kind: PERF_TYPE_SOFTWARE,
                config: PERF_COUNT_SW_TASK_CLOCK,
                flags: flags::EXCLUDE_KERNEL | flags::EXCLUDE_HYPERVISOR,
                ..Attributes::default()
            };
            self.clock = attributes::open(&clock, tid, None).ok();
        }
        let ran = || self.clock.as_ref().and_then(attributes::count);
        // Before the status now, and after it the last time.
        let before = ran();
        let Some(Status { blocked, voluntary_switches, .. }) = Status::read(tid) else {
            return Mask::Unknown;
        };
        if blocked & TRAP != 0 {
            self.seen = None;
            return Mask::Blocks;
        }
        match (self.seen, before) {
            (Some(seen), Some(before)) if seen.voluntary_switches == voluntary_switches => {
                if before.saturating_sub(seen.ran) >= LEAST_RUN { Mask::Open } else { Mask::Unknown }
            }
            _ => {
                self.seen = ran().map(|ran| Seen { voluntary_switches, ran });
                Mask::Unknown
            }
        }
    }
}

/// Whether a thread that sleeps in a call blocks SIGTRAP, or may do so after the call.
pub(super) fn may_block(tid: u32, call: Option<&Call>) -> bool {
    call.is_some_and(replaces_mask) || Status::read(tid).is_none_or(|status| status.blocked & TRAP != 0)
}

/// Whether a call replaces the set of blocked signals until it returns.
fn replaces_mask(call: &Call) -> bool {
    /// io_pgetevents(2).
    const IO_PGETEVENTS: i64 = if cfg!(target_arch = "x86_64") { 333 } else { 292 };
    let has = |argument: usize| call.arguments[argument] != 0;
    match call.number {
        libc::SYS_rt_sigtimedwait | libc::SYS_rt_sigsuspend => true,
        libc::SYS_ppoll => has(3),
        libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 | libc::SYS_io_uring_enter => has(4),
        libc::SYS_pselect6 | IO_PGETEVENTS => has(5),
        _ => false,
    }
}
