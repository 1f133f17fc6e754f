//! Which part of a thread's time a timer's stack gets.
//!
//! A stack mostly stands for what the thread has run since the one before. Two things spoil that. A thread that is in system calls
//! shows only their ends ([`CallShare`], [`MaskReleases`]). And a thread that blocks the signal, as handlers of the program do, shows only
//! the place where it restores its mask: what it ran before that is nobody's ([`HeldBack`]).

use crate::signals::held_back::{HeldBack, Lateness};
use crate::signals::mask_releases::MaskReleases;
use stackglass_host::mailbox::HitTimer;
use stackglass_sampling::CallShare;

/// A stack that a timer has brought, in its thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedStack {
    pub(crate) timer: HitTimer,
    /// It is at the end of a system call.
    pub(crate) is_at_end: bool,
    pub(crate) lateness: Lateness,
    /// One of so many that share what is pending.
    pub(crate) count: u64,
    /// What the thread has run without a stack, ns.
    pub(crate) pending: u64,
    /// The thread's clock, ns.
    pub(crate) cpu: u64,
}

/// What a stack gets, ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Given {
    /// The thread was there.
    Time(u64),
    /// The thread blocked the signal for so long: there is no stack of this time.
    Blocked(u64),
}

/// What is known of where a thread's stacks come from.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Attribution {
    share: CallShare,
    releases: MaskReleases,
    held_back: HeldBack,
}

impl Attribution {
    /// Timers are opened, when the thread's clock shows `cpu`.
    pub(crate) fn start(&mut self, cpu: u64) {
        self.share.start(cpu);
        self.held_back.start(cpu);
    }

    /// A stack has come, taken when the thread's clock showed `cpu`. Its frequent timer has this period, ns, if it has one.
    pub(crate) fn heard(&mut self, cpu: u64, period: Option<u64>) -> Lateness {
        self.held_back.heard(cpu, period)
    }

    /// No stack has come for a while, and the kernel was asked whether the thread blocks a signal that was sent to it.
    pub(crate) fn overdue(&mut self, holds_back: bool) {
        self.held_back.push(holds_back);
    }

    /// Whether the thread often blocks the signal. Its stacks are late by little more than that, so its timer's period must be short.
    pub(crate) fn holds_back(&self) -> bool {
        self.held_back.is_usual()
    }

    /// What the stack gets at a tick with this number. `holds_back` asks the kernel whether the thread blocks a signal that was sent to it.
    pub(crate) fn give(&mut self, stack: TimedStack, tick: u64, holds_back: impl FnOnce() -> bool) -> Given {
        let TimedStack { timer, is_at_end, lateness, count, pending, cpu } = stack;
        if timer == HitTimer::User {
            self.releases.push(is_at_end);
        }
        if let Some(time) = self.held_back.time(lateness, tick, holds_back) {
            self.share.was_in_own_code(cpu);
            return Given::Blocked(time.min(pending));
        }
        let is_call = is_at_end && !self.releases.are_releases();
        Given::Time(match (timer, is_call) {
            (HitTimer::Call, true) => self.share.of_call(cpu, pending),
            (HitTimer::Call, false) => {
                self.share.was_in_own_code(cpu);
                self.share.of_own_code(pending, count)
            }
            (HitTimer::User, _) => self.share.of_own_code(pending, count),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_sampling::Random;

    const DELAY: u64 = 1_000_000;

    /// What a thread does at a moment of its CPU time.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Doing {
        OwnCode,
        /// The signal comes at its end.
        Call,
        /// The signal waits for the mask to be restored.
        Blocking,
    }

    /// Shares of the time that go to stacks and to nobody, of a thread of 10 s that does this. The sampler looks at it each `gap` ns of its
    /// time, and a bit later now and then.
    fn shares(gap: u64, doing: impl Fn(u64) -> Doing) -> (f64, f64) {
        let mut random = Random::new(gap);
        let mut attribution = Attribution::default();
        attribution.start(0);
        let (mut next_user, mut next_call, mut next_tick, mut tick) = (DELAY, 3 * DELAY, gap, 0);
        let (mut user_waits, mut call_waits, mut before) = (false, false, Doing::OwnCode);
        let (mut heard_at, mut stacks, mut assigned, mut own, mut nobody) = (0, Vec::new(), 0, 0, 0);
        for cpu in (0..10_000_000_000u64).step_by(10_000) {
            let now = doing(cpu);
            if cpu >= next_user {
                next_user = cpu + DELAY + random.below(DELAY * 2 / 3);
                // In a call it does not fire.
                user_waits |= now != Doing::Call;
            }
            if cpu >= next_call {
                next_call = cpu + 4 * DELAY;
                call_waits = true;
            }
            if now == Doing::OwnCode {
                let is_at_end = before != Doing::OwnCode;
                for (timer, waits) in [(HitTimer::Call, &mut call_waits), (HitTimer::User, &mut user_waits)] {
                    if std::mem::take(waits) {
                        stacks.push((timer, is_at_end, cpu));
                    }
                }
            }
            before = now;
            if cpu < next_tick {
                continue;
            }
            (tick, next_tick) = (tick + 1, cpu + gap / 2 + random.below(gap));
            let holds_back = now == Doing::Blocking && (user_waits || call_waits);
            if stacks.is_empty() && cpu - heard_at >= 2 * DELAY {
                attribution.overdue(holds_back);
            }
            for (i, &(timer, is_at_end, at)) in stacks.iter().enumerate() {
                let count =
                    stacks[i + 1..].iter().filter(|other| other.0 == HitTimer::User).count() as u64 + 1;
                heard_at = at;
                let lateness = attribution.heard(at, Some(DELAY));
                let pending = cpu - assigned;
                let stack = TimedStack { timer, is_at_end, lateness, count, pending, cpu };
                let (own_part, blocked) = match attribution.give(stack, tick, || holds_back) {
                    Given::Time(time) => (time, 0),
                    Given::Blocked(time) => (0, time),
                };
                (own, nobody, assigned) = (own + own_part, nobody + blocked, assigned + own_part + blocked);
            }
            stacks.clear();
        }
        (own as f64 / assigned as f64, nobody as f64 / assigned as f64)
    }

    #[test]
    fn a_thread_holds_the_signal_back_if_it_was_often_found_so() {
        let mut attribution = Attribution::default();
        assert!(!attribution.holds_back(), "nothing is known");
        attribution.overdue(true);
        assert!(attribution.holds_back());
        (0..6).for_each(|_| attribution.overdue(false));
        assert!(attribution.holds_back());
        (0..6).for_each(|_| attribution.overdue(false));
        assert!(!attribution.holds_back());
    }

    /// However rarely the sampler looks: each look may find a stack that has come just before.
    #[test]
    fn time_in_long_handlers_goes_to_nobody() {
        for gap in [1, 4, 5, 9, 30].map(|ms| ms * DELAY) {
            let (own, nobody) = shares(gap, |cpu| match cpu % 4_000_000 {
                0..20_000 => Doing::OwnCode,
                _ => Doing::Blocking,
            });
            assert!(nobody > 0.95, "{gap}: {own} {nobody}");
        }
    }

    #[test]
    fn own_code_between_handlers_keeps_its_time() {
        for gap in [1, 2, 5, 9, 30].map(|ms| ms * DELAY) {
            let (_, nobody) = shares(gap, |cpu| match cpu % 10_000_000 {
                0..5_000_000 => Doing::OwnCode,
                _ => Doing::Blocking,
            });
            assert!((nobody - 0.5).abs() < 0.08, "{gap}: {nobody}");
        }
    }

    #[test]
    fn calls_hold_nothing_back() {
        for gap in [1, 5, 30].map(|ms| ms * DELAY) {
            for in_calls in [100_000, 1_000_000, 9_900_000] {
                let (own, nobody) = shares(gap, |cpu| match cpu % 10_000_000 < in_calls {
                    true => Doing::Call,
                    false => Doing::OwnCode,
                });
                assert!(own == 1.0 && nobody == 0.0, "{gap} {in_calls}: {nobody}");
            }
        }
    }
}
