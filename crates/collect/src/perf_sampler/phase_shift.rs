//! Short pauses that keep sampling out of step with the program.
//!
//! The kernel takes a thread's stacks at equal steps of the time that the thread runs. A program that repeats itself may keep
//! in step with that for seconds, and is then sampled at the same place each time. With bursts of 0.1 ms, one
//! function had a fifth more stacks than its time. So sampling pauses now and then. Each pause moves the next stack of a running
//! thread to another place: to any place of a period if no thread sleeps, as in a loop whose rounds take as long as a period.
//! Where threads sleep, longer pauses would leave out whole bursts.

use super::events::Events;
use stackglass_sampling::Random;
use std::time::{Duration, Instant};

/// Length of a pause, ns. If no thread sleeps now and then, it is up to a delay, or as below.
const PAUSE: (f64, f64) = (30_000.0, 300_000.0);
/// The longest pause, ns: signals wait for its end.
const LONGEST: f64 = 20_000_000.0;
/// Time to the first pause, ns. A program that starts is not in step yet.
const FIRST: u64 = 20_000_000;
/// Shortest time from one pause to the next, ns.
const BETWEEN: (f64, f64) = (30_000_000.0, 70_000_000.0);
/// The same if no thread sleeps now and then, ns and delays: pauses cost a small part of the stacks.
const BETWEEN_BUSY: (f64, f64) = (15_000_000.0, 25_000_000.0);
const BETWEEN_DELAYS: (f64, f64) = (15.0, 25.0);
/// Shortest time until a pause for which a drain comes early, ns.
const SHORTEST: u64 = 2_000_000;
/// What a pause costs each CPU that runs a thread of the program, for each event: an interrupt, ns.
const INTERRUPT: f64 = 6_000.0;
/// What a pause costs the recording process for each event of each thread, ns.
const VISIT: f64 = 600.0;
/// Part of the time that interrupts may take.
const INTERRUPT_BUDGET: f64 = 0.001;
/// Part of the time that visits may take.
const VISIT_BUDGET: f64 = 0.01;

/// The threads on which the cost of a pause depends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threads {
    pub all: usize,
    /// Threads that ran lately.
    pub running: usize,
    /// Some of them slept in between.
    pub some_slept: bool,
    /// Sampling is on.
    pub sampled: bool,
}

/// When the next pause is due, and how long all pauses were.
pub(super) struct PhaseShift {
    delay: u64,
    began: u64,
    next: u64,
    paused: u64,
    /// At the last drain, threads ran and none slept.
    is_busy: bool,
    /// Events are enabled once more at the next drain, because those of a thread that started meanwhile may have been missed.
    again: bool,
}

impl PhaseShift {
    /// Sampling begins at `now`, with this delay, ns.
    pub(super) fn new(delay: u64, now: u64) -> PhaseShift {
        PhaseShift { delay, began: now, next: now + FIRST, paused: 0, is_busy: false, again: false }
    }

    /// Pauses, if a pause is due. Returns whether the period changes as well: the program is one thread that computes all the time.
    pub(super) fn shift(&mut self, now: u64, threads: Threads, events: &Events, random: &mut Random) -> bool {
        if std::mem::take(&mut self.again) && threads.sampled {
            events.set_sampling(true);
        }
        self.is_busy = threads.running > 0 && !threads.some_slept;
        if threads.running == 0 || now < self.next {
            return false;
        }
        let delay = self.delay as f64;
        let longest = if self.is_busy { PAUSE.1.max(delay.min(LONGEST)) } else { PAUSE.1 };
        let pause = Duration::from_nanos(random.between((PAUSE.0, longest)) as u64);
        let began = Instant::now();
        events.set_sampling(false);
        std::thread::sleep(pause);
        events.set_sampling(true);
        self.paused += began.elapsed().as_nanos() as u64;
        let varies = self.is_busy && threads.all == 1;
        if varies {
            // A new period begins, and half of one is lost on average.
            self.paused += self.delay / 2;
        }
        self.again = true;
        let between = match self.is_busy {
            true => random.between(BETWEEN_BUSY).max(random.between(BETWEEN_DELAYS) * delay),
            false => random.between(BETWEEN),
        };
        self.next = now + between.max(least_time(events.cpus(), threads)) as u64;
        varies
    }

    /// The time until the next pause, if the program is busy: then drains are rarer than pauses.
    pub(super) fn until_next(&self, now: u64) -> Option<Duration> {
        self.is_busy.then(|| Duration::from_nanos(self.next.saturating_sub(now).max(SHORTEST)))
    }

    /// What one period of the kernel stands for if pauses are included.
    pub(super) fn period_worth(&self, now: u64) -> f64 {
        let passed = now.saturating_sub(self.began).max(1_000_000_000);
        1.0 + self.paused as f64 / passed as f64
    }
}

/// The shortest time from one pause to the next, ns, given what a pause costs.
fn least_time(cpus: usize, threads: Threads) -> f64 {
    let interruptions = INTERRUPT * (cpus * threads.running.min(cpus)) as f64 / INTERRUPT_BUDGET;
    interruptions.max(VISIT * (cpus * threads.all) as f64 / VISIT_BUDGET)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_rare_where_they_cost_much() {
        let threads = |all, running| Threads { all, running, some_slept: true, sampled: true };
        assert!(least_time(2, threads(1, 1)) < BETWEEN.0);
        // 64 CPUs that all run the program, or 10 000 threads that wait.
        assert!(least_time(64, threads(64, 64)) > 10e9);
        assert!(least_time(2, threads(10_000, 1)) > 1e9);
    }
}
