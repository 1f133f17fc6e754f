//! The sampling period of one thread's perf event.
//!
//! A program that repeats itself may keep in step with a fixed period, and is then sampled at the same places each time: a loop of 1 ms
//! showed a function of 30 % with 3 % after four seconds. So the period changes every few delays, at random within a range that is
//! wider than a delay.
//!
//! The kernel begins a new period at a change. If changes came at certain places of a program, such as the start of a burst, stacks
//! would be rare behind them. So each tick that finds the thread running has the same chance of a change, and ticks come at random.

use super::perf_events::Event;
use stackglass_perf::attributes::{PERIODS, SHORTEST_PERIOD};
use stackglass_sampling::Random;

/// Ticks at which the thread runs, for each change.
const TICKS: u64 = 10;
/// The same if it has slept lately: ticks come late in its bursts, since sleeping threads are looked at less often, and so would changes.
const TICKS_OF_BURSTS: u64 = 50;
/// A thread has slept lately if it ran at no more ticks since.
const LATELY: u32 = 100;

/// The period of an event.
pub(crate) struct SamplingPeriod {
    delay: u64,
    period: u64,
    /// The last change, until the first sample after it.
    changed: Option<Change>,
    /// Ticks at which the thread ran since it slept.
    runs: u32,
}

/// A change of the period.
#[derive(Clone, Copy)]
struct Change {
    /// What the thread had run since the event was opened, ns.
    ran: u64,
    /// The period until then.
    before: u64,
}

impl SamplingPeriod {
    /// For a new event.
    pub(crate) fn new(delay: u64, random: &mut Random) -> SamplingPeriod {
        SamplingPeriod { delay, period: choose(delay, random), changed: None, runs: 0 }
    }

    /// The period now, ns.
    pub(crate) fn ns(&self) -> u64 {
        self.period
    }

    /// The thread sleeps.
    pub(crate) fn sleeps(&mut self) {
        self.runs = 0;
    }

    /// Changes the period of an event at some ticks. Its thread runs.
    pub(crate) fn renew(&mut self, event: &Event, random: &mut Random) {
        self.runs = self.runs.saturating_add(1);
        let ticks = if self.runs > LATELY { TICKS } else { TICKS_OF_BURSTS };
        if random.below(ticks) != 0 || self.changed.is_some() {
            return;
        }
        let Some(ran) = event.ran() else { return };
        self.changed = Some(Change { ran, before: self.period });
        self.period = choose(self.delay, random);
        event.set_period(self.period);
    }

    /// The part of the time from the last sample to this one for which this sample stands, ns. Both are given by what the thread had
    /// run. The kernel has left out the samples of the rest.
    pub(crate) fn worth(&mut self, last: u64, ran: u64) -> u64 {
        match self.changed {
            Some(change) if ran <= change.ran => change.before,
            Some(change) => {
                self.changed = None;
                self.period + change.ran.saturating_sub(last) % change.before
            }
            None => self.period,
        }
    }
}

fn choose(delay: u64, random: &mut Random) -> u64 {
    ((delay as f64 * random.between(PERIODS)) as u64).max(SHORTEST_PERIOD)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_sample_stands_for_the_time_since_the_last_one() {
        let mut period = SamplingPeriod::new(MS, &mut Random::new(3));
        assert!((550_000..1_650_000).contains(&period.ns()));
        let first = period.ns();
        assert_eq!(period.worth(0, first), first);
        // A change 0.3 ms after a sample. One that had been taken before is still to be read.
        (period.period, period.changed) = (700_000, Some(Change { ran: 2 * first + 300_000, before: first }));
        assert_eq!(period.worth(first, 2 * first), first);
        assert_eq!(period.worth(2 * first, 2 * first + 1_000_000), 1_000_000);
        assert_eq!(period.worth(2 * first + 1_000_000, 2 * first + 1_700_000), 700_000);
        // Two samples of the old period were left out before the change.
        period.changed = Some(Change { ran: 2 * first + 100, before: first });
        assert_eq!(period.worth(0, 2 * first + 100 + 700_000), 700_100);
    }

    #[test]
    fn stacks_are_as_many_as_delays() {
        let mut random = Random::new(5);
        let rates = (0..20_000).map(|_| MS as f64 / choose(MS, &mut random) as f64);
        let rate = rates.sum::<f64>() / 20_000.0;
        assert!((rate - 1.0).abs() < 0.02, "{rate}");
    }
}
