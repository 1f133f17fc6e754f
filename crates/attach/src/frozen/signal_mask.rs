//! Whether a thread blocks SIGTRAP, so that a stop in user code would reach the program.
//!
//! The signal of such a stop waits if it is blocked, and sigtimedwait(2) or signalfd(2) would give it to the program. What the kernel shows
//! as blocked cannot be trusted in some calls, which replace the set until they return. A thread that waits for a CPU may be in one: at its
//! end, after it has slept, or at its begin, before it sleeps. So one check proves nothing. Neither do two: the first can meet the end of a
//! call, the second the begin of the next one. Nor does the time that the thread has run: on a busy machine that can be spent in switching
//! to it, again and again, while it gets no further (measured: five switches of 33 µs).
//!
//! So a thread that runs is known not to block the signal after several checks, if it was in user code between any two of them, and did
//! not sleep in all that time. A thread in a long call is hardly in user code: it has run for long without sleeping.

use stackglass_perf::user_stop::{UserMoments, UserStop};
use stackglass_proc_text::Call;
use stackglass_procfs::Status;

/// SIGTRAP in a set of signals.
pub(super) const TRAP: u64 = 1 << (libc::SIGTRAP - 1);
/// Checks that show the signal as not blocked. Two can meet calls that sleep; three cannot. One more is for calls that do not sleep.
const LEAST_CHECKS: u32 = 4;
/// A call that replaces the set, and does not sleep, returns before the thread has run this long, ns.
const LONG_RUN: u64 = 2_000_000;

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

/// Checks a thread again and again.
#[derive(Default)]
pub(super) struct SignalMask {
    /// Shows that the thread gets on.
    progress: Option<UserMoments>,
    seen: Option<Seen>,
}

/// A thread that showed no blocked SIGTRAP.
#[derive(Clone, Copy)]
struct Seen {
    voluntary_switches: u64,
    /// Checks with a moment in user code between any two of them.
    checks: u32,
    /// Moments in user code until the last of them.
    moments: u64,
    /// How long the thread had run at the first check, ns.
    ran: u64,
}

impl SignalMask {
    /// Checks a thread that runs, and has this timer, which is not armed.
    pub(super) fn check(&mut self, tid: u32, timer: &mut UserStop) -> Mask {
        if self.progress.is_none() {
            self.progress = UserMoments::note(tid, timer).ok();
        }
        let ran = || self.progress.as_ref().and_then(UserMoments::ran).unwrap_or(0);
        // Before the status now, and after it the last time.
        let (moments, ran_before) = (timer.moments().unwrap_or(0), ran());
        let Some(Status { blocked, voluntary_switches, .. }) = Status::read(tid) else {
            return Mask::Unknown;
        };
        if blocked & TRAP != 0 {
            self.seen = None;
            return Mask::Blocks;
        }
        let Some(seen) = self.seen.as_mut().filter(|seen| seen.voluntary_switches == voluntary_switches)
        else {
            let moments = timer.moments().unwrap_or(0);
            self.seen = Some(Seen { voluntary_switches, checks: 1, moments, ran: ran() });
            return Mask::Unknown;
        };
        if moments > seen.moments {
            seen.checks += 1;
            seen.moments = timer.moments().unwrap_or(0);
        }
        match seen.checks >= LEAST_CHECKS || ran_before.saturating_sub(seen.ran) >= LONG_RUN {
            true => Mask::Open,
            false => Mask::Unknown,
        }
    }

    /// Forgets what was seen, before anything of the thread is armed.
    pub(super) fn end(&mut self, timer: &mut UserStop) {
        *self = SignalMask::default();
        // Makes room for firings.
        let _ = timer.moments();
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
