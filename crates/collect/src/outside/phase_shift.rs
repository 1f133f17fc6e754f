//! Stacks out of step with the program.
//!
//! The kernel takes the stacks of a thread in even steps of the time that it runs. A program that does the same again and
//! again may be in step with that for seconds, and is then met at the same place each time (seen: bursts of 0.1 ms, a fifth
//! more stacks than their time in one function). So sampling pauses now and then for some fraction of a millisecond: each
//! pause moves the next stack of a running thread to another place.

use super::Random;
use super::events::Events;
use std::time::Duration;

/// Length of a pause, ns.
const PAUSE: (f64, f64) = (30_000.0, 300_000.0);
/// Time from one pause to the next, ns: at least, and so many times that where no thread sleeps now and then.
const BETWEEN: (f64, f64) = (30_000_000.0, 70_000_000.0);
const BUSY: f64 = 4.0;
/// What a pause may cost: it interrupts each processor that runs a thread of the program, twice for each event of it.
const INTERRUPT: f64 = 3_000.0;
/// The part of the time that these interruptions may take.
const BUDGET: f64 = 0.001;

/// When the next pause comes, and how long all were.
pub(super) struct PhaseShift {
    began: u64,
    next: u64,
    paused: u64,
}

impl PhaseShift {
    /// Sampling begins at `now`.
    pub(super) fn new(now: u64) -> PhaseShift {
        PhaseShift { began: now, next: now, paused: 0 }
    }

    /// Pauses, where it is time to. `running` threads were sampled lately, and some slept in between (`lively`).
    pub(super) fn shift(
        &mut self,
        now: u64,
        running: usize,
        lively: bool,
        events: &Events,
        random: &mut Random,
    ) {
        if running == 0 || now < self.next {
            return;
        }
        let pause = random.between(PAUSE) as u64;
        events.set_sampling(false);
        std::thread::sleep(Duration::from_nanos(pause));
        events.set_sampling(true);
        self.paused += pause;
        let processors = events.processors();
        let cost = INTERRUPT * 2.0 * (processors * running.min(processors)) as f64 / BUDGET;
        let between = random.between(BETWEEN) * if lively { 1.0 } else { BUSY };
        self.next = now + between.max(cost) as u64;
    }

    /// What a period stands for, where pauses are counted in.
    pub(super) fn with_pauses(&self, now: u64) -> f64 {
        let passed = now.saturating_sub(self.began).max(1_000_000_000);
        1.0 + self.paused as f64 / passed as f64
    }
}
