//! The sampler's clock: when the next tick comes, how late this one is, and how long this thread itself ran.

use stackglass_host::system;
use stackglass_sampling::TickSchedule;

/// The ticks, counted.
pub(crate) struct Schedule {
    ticks: TickSchedule,
    /// Time between two ticks, ns.
    pub(crate) delay: u64,
    /// When the next tick is due.
    pub(crate) next: u64,
    /// Number of this tick, including the missed ones.
    pub(crate) tick: u64,
    /// CPU time that the sampler's thread used from the last tick to this one.
    pub(crate) own_turn: u64,
    own_cpu: u64,
}

/// How a tick came.
pub(crate) struct Lateness {
    /// Time after the planned moment, ns.
    pub(crate) late: u64,
    /// Ticks before it that never came.
    pub(crate) missed: u64,
}

impl Schedule {
    /// A schedule whose first tick is due now.
    pub(crate) fn new(delay: u64) -> Schedule {
        let now = system::now();
        let ticks = TickSchedule::new(delay, now);
        Schedule { ticks, delay, next: now, tick: 0, own_turn: 0, own_cpu: 0 }
    }

    /// Starts over at `now`, with another delay or after a pause.
    pub(crate) fn restart(&mut self, delay: u64, now: u64) {
        self.delay = delay;
        self.ticks = TickSchedule::new(delay, now);
        self.next = self.ticks.next(now).0;
    }

    /// The tick that was due has come at `now`.
    pub(crate) fn advance(&mut self, now: u64) -> Lateness {
        let late = now.saturating_sub(self.next);
        let (next, missed) = self.ticks.next(now);
        self.next = next;
        self.tick += 1 + missed;
        let own_cpu = system::own_cpu();
        self.own_turn = own_cpu.saturating_sub(self.own_cpu);
        self.own_cpu = own_cpu;
        Lateness { late, missed }
    }
}
