//! Keeps the samples out of step with the program.
//!
//! The kernel samples a thread in even steps of its CPU time. A program that repeats itself may be in step with that
//! for seconds, and is then always sampled at the same place (seen: with bursts of 0.1 ms, one function had a fifth
//! more stacks than its share of the time). So sampling pauses now and then for a fraction of a millisecond. Each
//! pause moves the next sample of a running thread to another place.

use super::events::Events;
use stackglass_sampling::Random;
use std::time::{Duration, Instant};

/// Length of a pause, ns.
const PAUSE: (f64, f64) = (30_000.0, 300_000.0);
/// Time to the first pause, ns: a starting program is not in step with anything.
const FIRST: u64 = 20_000_000;
/// Time between two pauses, ns: the minimum, and its multiple while no thread sleeps now and then.
const BETWEEN: (f64, f64) = (30_000_000.0, 70_000_000.0);
const BUSY: f64 = 4.0;
/// Cost of a pause, ns: an interruption for each event on a processor that runs a thread of the program, and our own
/// work for each event of each thread.
const INTERRUPT: f64 = 6_000.0;
const VISIT: f64 = 600.0;
/// Share of the time that interruptions and our own work may take.
const BUDGETS: (f64, f64) = (0.001, 0.01);

/// Facts about the threads that decide about pauses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threads {
    pub all: usize,
    /// Threads that were sampled lately.
    pub running: usize,
    /// Some of them slept in between.
    pub lively: bool,
    /// Sampling is on.
    pub sampled: bool,
}

/// The time of the next pause, and the length of all pauses so far.
pub(super) struct PhaseShift {
    began: u64,
    next: u64,
    paused: u64,
    /// Start the events once more at the next drain: those of a thread that was created meanwhile may have been
    /// missed.
    again: bool,
}

impl PhaseShift {
    /// Sampling begins at `now`.
    pub(super) fn new(now: u64) -> PhaseShift {
        PhaseShift { began: now, next: now + FIRST, paused: 0, again: false }
    }

    /// Pauses if it is time to.
    pub(super) fn shift(&mut self, now: u64, threads: Threads, events: &Events, random: &mut Random) {
        if std::mem::take(&mut self.again) && threads.sampled {
            events.set_sampling(true);
        }
        if threads.running == 0 || now < self.next {
            return;
        }
        let pause = Duration::from_nanos(random.between(PAUSE) as u64);
        let began = Instant::now();
        events.set_sampling(false);
        std::thread::sleep(pause);
        events.set_sampling(true);
        self.paused += began.elapsed().as_nanos() as u64;
        self.again = true;
        let between = random.between(BETWEEN) * if threads.lively { 1.0 } else { BUSY };
        self.next = now + between.max(least_time(events.processors(), threads)) as u64;
    }

    /// The time that a period stands for, pauses included.
    pub(super) fn with_pauses(&self, now: u64) -> f64 {
        let passed = now.saturating_sub(self.began).max(1_000_000_000);
        1.0 + self.paused as f64 / passed as f64
    }
}

/// Shortest time between two pauses, ns, given the cost of a pause.
fn least_time(processors: usize, threads: Threads) -> f64 {
    let interruptions = INTERRUPT * (processors * threads.running.min(processors)) as f64 / BUDGETS.0;
    interruptions.max(VISIT * (processors * threads.all) as f64 / BUDGETS.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_rare_where_they_are_dear() {
        let threads = |all, running| Threads { all, running, lively: true, sampled: true };
        assert!(least_time(2, threads(1, 1)) < BETWEEN.0);
        // 64 processors that all run the program, or 10 000 waiting threads.
        assert!(least_time(64, threads(64, 64)) > 10e9);
        assert!(least_time(2, threads(10_000, 1)) > 1e9);
    }
}
