//! The sampling period of new processes and threads.
//!
//! The kernel takes the first sample of a process after one period, and none of a shorter process. So periods are shorter while
//! many processes begin. They are random, so that processes which do the same are not all sampled at the same place. A
//! hit stands for the period of its own thread.
//!
//! Only the period of the program's first thread can be changed. While that computes and is alone, its period varies, so that a loop is
//! not in step with it.

use stackglass_sampling::Random;

/// Threads that begin less than this number of delays apart are mostly short.
const MANY: u64 = 4;
/// Range of periods, in delays.
const USUAL: (f64, f64) = (0.97, 1.03);
/// Range of the first thread's periods while it computes, in first periods. Their mean number in a second is that of the first period,
/// since its samples keep telling that one.
const VARIED: (f64, f64) = (0.76, 1.28);
/// Range of periods where many threads are short, in delays.
const SHORTER: (f64, f64) = (0.1, 1.0);
/// New threads after which their rate is computed again.
const ENOUGH: u64 = 16;
/// Time after which their rate is computed again, ns.
const LONG: u64 = 100_000_000;

/// Chooses periods by how fast threads and processes begin.
pub(super) struct PeriodChoice {
    delay: u64,
    /// The period of the first thread at its start.
    first: u64,
    /// Threads and processes that had begun at the last drain.
    latest: u64,
    /// The same, when the rate was last computed.
    counted: u64,
    /// When the rate was last computed.
    since: u64,
    are_many: bool,
}

impl PeriodChoice {
    /// For a recording that starts at `now` with this delay, ns.
    pub(super) fn new(delay: u64, now: u64) -> PeriodChoice {
        PeriodChoice { delay, first: delay, latest: 0, counted: 0, since: now, are_many: false }
    }

    /// The period of the program, ns. A program that repeats itself in a round time would be sampled at the same places each
    /// time with a round period.
    pub(super) fn first(&mut self, random: &mut Random) -> u64 {
        self.first = self.period(random);
        self.first
    }

    /// A new period, ns, for a first thread that computes.
    pub(super) fn varied(&self, random: &mut Random) -> u64 {
        (self.first as f64 * random.between(VARIED)) as u64
    }

    /// A new period, ns, if threads or processes have begun since the last drain; `forks` have begun so far. It is for those
    /// that begin from now on, so processes that begin between two drains have the same period.
    pub(super) fn next(&mut self, forks: u64, now: u64, random: &mut Random) -> Option<u64> {
        if forks == self.latest {
            return None;
        }
        self.latest = forks;
        let (new, passed) = (forks - self.counted, now.saturating_sub(self.since));
        if new >= ENOUGH || passed >= LONG {
            self.are_many = passed / new.max(1) < MANY * self.delay;
            (self.counted, self.since) = (forks, now);
        }
        Some(self.period(random))
    }

    fn period(&self, random: &mut Random) -> u64 {
        (self.delay as f64 * random.between(if self.are_many { SHORTER } else { USUAL })) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_follow_the_rate_of_forks() {
        let (mut choice, mut random) = (PeriodChoice::new(1_000_000, 0), Random::new(0));
        // A compiler's driver starts three programs at once, every 30 ms.
        for file in 1..=20 {
            let period = choice.next(file * 3, file * 30_000_000, &mut random);
            assert!(period.is_some_and(|ns| (970_000..=1_030_000).contains(&ns)), "{period:?}");
        }
        // Then a process every 1.2 ms.
        let mut next =
            |process: u64| choice.next(60 + process, 600_000_000 + process * 1_200_000, &mut random);
        assert!((1..=100).all(|process| next(process).is_some()));
        let periods: Vec<u64> = (101..=200).filter_map(next).collect();
        assert!(periods.iter().all(|ns| (100_000..=1_000_000).contains(ns)));
        assert!(periods.iter().filter(|ns| **ns < 900_000).count() > 50, "{periods:?}");
        assert_eq!(choice.next(260, 900_000_000, &mut random), None, "no new thread");
    }
}
