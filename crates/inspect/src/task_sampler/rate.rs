//! When the next snapshot comes: at a random moment, and so that all snapshots together cost the program little.
//!
//! A snapshot stands for the time since the last one. So that time must not depend on what the last one saw. A snapshot of a
//! program that runs costs more, and the next one must not come later for it. Costs are means of many snapshots.

use stackglass_sampling::Random;
use std::collections::VecDeque;
use std::time::Duration;

/// The part of a CPU that the program may lose by what is counted here. It loses half as much again by what is not: caches that
/// are cold after a stop.
const SHARE: f64 = 0.015;
/// On a busy machine a stop lasts long, since this process waits for a CPU meanwhile. Before snapshots are rarer than [`RARE`], they
/// may take this part.
const SHARE_OF_RARE: f64 = 0.05;
/// Seconds.
const RARE: f64 = 1.0;
/// The part of a CPU that this process may use.
const OWN_SHARE: f64 = 0.1;
/// Least weight of the last snapshot in the mean.
const WEIGHT: f64 = 1.0 / 128.0;
/// Number of snapshots whose shortest pause counts: others are longer because this process waits for a CPU.
const PAUSES: usize = 8;
/// Snapshots are not closer.
const CLOSEST: Duration = Duration::from_millis(10);

/// What a snapshot has cost.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Cost {
    /// How long the program stood still while it would have run.
    pub pause: Duration,
    /// CPU time of this process.
    pub own: Duration,
}

/// Chooses the moments of snapshots.
pub(super) struct SnapshotRate {
    random: Random,
    /// The last pauses, seconds.
    pauses: VecDeque<f64>,
    /// Mean cost of a snapshot to this process, seconds.
    own: f64,
    /// The part of the snapshots that stop the program.
    stops: f64,
    /// Number of snapshots that were counted.
    counted: u32,
    delay: Duration,
}

impl SnapshotRate {
    pub(super) fn new(delay: Duration, seed: u64) -> SnapshotRate {
        SnapshotRate {
            random: Random::new(seed),
            pauses: VecDeque::new(),
            own: 0.0,
            stops: 1.0,
            counted: 0,
            delay,
        }
    }

    /// A snapshot has been taken.
    pub(super) fn count(&mut self, cost: Cost) {
        self.counted = self.counted.saturating_add(1);
        let weight = WEIGHT.max(1.0 / f64::from(self.counted));
        let mean = |before: f64, now: f64| before + (now - before) * weight;
        self.own = mean(self.own, cost.own.as_secs_f64());
        // A snapshot of a program that sleeps does not stop it.
        self.stops = mean(self.stops, f64::from(u8::from(!cost.pause.is_zero())));
        if !cost.pause.is_zero() {
            self.pauses.push_back(cost.pause.as_secs_f64());
            self.pauses.drain(..self.pauses.len().saturating_sub(PAUSES));
        }
    }

    /// Mean time between two snapshots.
    pub(super) fn mean(&self) -> Duration {
        let pause = self.pauses.iter().copied().reduce(f64::min).unwrap_or(0.0) * self.stops;
        let seconds =
            (pause / SHARE).min(RARE.max(pause / SHARE_OF_RARE)).max(self.own / OWN_SHARE).min(60.0);
        Duration::from_secs_f64(seconds).max(CLOSEST).max(self.delay)
    }

    /// Time until the next snapshot. It varies, so that snapshots do not keep step with the program.
    pub(super) fn next(&mut self) -> Duration {
        self.mean().mul_f64(self.random.between((0.5, 1.5)))
    }

    /// A random number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.random.below(end as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_take_a_small_part_of_the_time() {
        let millis = Duration::from_millis;
        let mut rate = SnapshotRate::new(millis(1), 7);
        assert_eq!(rate.mean(), CLOSEST);
        for _ in 0..50 {
            rate.count(Cost { pause: millis(2), own: millis(3) });
        }
        assert!(rate.mean().abs_diff(millis(133)) < millis(1), "{:?}", rate.mean());
        let times: Vec<Duration> = (0..1000).map(|_| rate.next()).collect();
        assert!(times.iter().all(|time| (millis(66)..millis(201)).contains(time)));
        let mean = times.iter().sum::<Duration>() / 1000;
        assert!(mean.abs_diff(millis(133)) < millis(7), "{mean:?}");
        for _ in 0..2000 {
            rate.count(Cost { pause: millis(1), own: millis(20) });
        }
        assert!(rate.mean().abs_diff(millis(200)) < millis(3), "{:?}", rate.mean());
        // Long stops, and very long ones.
        let after = |pause| {
            let mut rate = SnapshotRate::new(millis(1), 7);
            (0..50).for_each(|_| rate.count(Cost { pause: millis(pause), own: millis(3) }));
            rate.mean()
        };
        assert_eq!([after(12), after(40), after(100)], [millis(800), millis(1000), millis(2000)]);
        // One snapshot that costs more hardly changes it.
        let before = rate.mean();
        rate.count(Cost { pause: millis(1), own: millis(200) });
        assert!(rate.mean() < before.mul_f64(1.1), "{:?}", rate.mean());
    }
}
