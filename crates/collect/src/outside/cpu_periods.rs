//! The sampling periods of events that sample whole CPUs.
//!
//! A program that repeats itself may keep in step with a fixed period, and is then sampled at the same place each time. So the period
//! of each CPU changes some thirty times a second, at random within a range that is wider than a delay. Two stacks of one
//! stretch are then apart by any part of the program's own period with the same chance. A stack stands for the period in
//! which it was taken.
//!
//! A CPU on which the program has not run for seconds is sampled at a quarter of the rate, for the sake of others.

use super::events::Events;
use stackglass_procfs::clock::monotonic;
use stackglass_sampling::Random;

/// Range of periods, in delays. The mean number of stacks in a second is that of the delay.
const RANGE: (f64, f64) = (0.55, 1.65);
/// Shortest time from one change to the next, ns.
const BETWEEN: (f64, f64) = (20_000_000.0, 40_000_000.0);
/// The same in delays.
const BETWEEN_DELAYS: (f64, f64) = (20.0, 40.0);
/// The kernel's shortest period, ns.
const LEAST: u64 = 10_000;
/// A CPU on which the program has not run for this time, ns, is sampled less often.
const UNUSED: u64 = 3_000_000_000;
/// How much longer the periods of such CPUs are.
const LONGER: f64 = 4.0;

/// The period of one CPU.
#[derive(Clone, Copy, Debug)]
struct Current {
    period: u64,
    before: u64,
    /// Up to this moment, stacks were taken with the period before.
    since: u64,
    /// When the next change is due.
    next: u64,
    /// When the program last ran on this CPU.
    used: u64,
    /// The program has not run on it for long.
    unused: bool,
    /// When sampling began.
    began: u64,
    changes: u64,
}

/// The periods of all CPUs.
pub(super) struct CpuPeriods {
    delay: u64,
    cpus: Vec<Current>,
}

impl CpuPeriods {
    /// For events that were opened with this period.
    pub(super) fn new(delay: u64, period: u64, cpus: usize, now: u64) -> CpuPeriods {
        let one = Current {
            period,
            before: period,
            since: 0,
            next: now,
            used: now,
            unused: false,
            began: now,
            changes: 0,
        };
        CpuPeriods { delay, cpus: vec![one; cpus] }
    }

    /// A period for the start.
    pub(super) fn first(delay: u64, random: &mut Random) -> u64 {
        (delay as f64 * random.between(RANGE)) as u64
    }

    /// The program ran on a CPU.
    pub(super) fn used(&mut self, cpu: usize, at: u64) {
        if let Some(current) = self.cpus.get_mut(cpu) {
            current.used = current.used.max(at);
            if std::mem::take(&mut current.unused) {
                current.next = 0;
            }
        }
    }

    /// What a stack that was taken on a CPU at this moment stands for, ns.
    pub(super) fn worth(&self, cpu: usize, at: u64) -> u64 {
        let Some(current) = self.cpus.get(cpu) else { return self.delay };
        let period = if at <= current.since { current.before } else { current.period };
        // Each change starts the period again, half a period too late on average.
        let passed = current.since.saturating_sub(current.began);
        match passed {
            0 => period,
            _ => period + (period / 2 * current.changes).min(passed) * period / passed,
        }
    }

    /// Changes the periods that are due.
    pub(super) fn renew(&mut self, now: u64, events: &Events, random: &mut Random) {
        for (cpu, current) in self.cpus.iter_mut().enumerate().filter(|(_, current)| current.next <= now) {
            let period = current.renew(self.delay, now, random);
            events.set_period_of(cpu, period);
            current.since = monotonic();
        }
    }
}

impl Current {
    /// Chooses the next period, and the moment of the change after it.
    fn renew(&mut self, delay: u64, now: u64, random: &mut Random) -> u64 {
        self.unused = now.saturating_sub(self.used) > UNUSED;
        let period = delay as f64 * random.between(RANGE) * if self.unused { LONGER } else { 1.0 };
        let between = random.between(BETWEEN).max(random.between(BETWEEN_DELAYS) * delay as f64);
        self.next = if self.unused { u64::MAX } else { now + between as u64 };
        (self.before, self.period) = (self.period, (period as u64).max(LEAST));
        self.changes += 1;
        self.period
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn current() -> Current {
        CpuPeriods::new(MS, MS, 1, 0).cpus[0]
    }

    #[test]
    fn a_stack_is_worth_the_period_in_which_it_was_taken() {
        let mut periods = CpuPeriods::new(MS, 700_000, 2, 0);
        assert_eq!((periods.worth(0, 5), periods.worth(7, 5)), (700_000, MS));
        let current = &mut periods.cpus[0];
        (current.before, current.period, current.since, current.changes) = (700_000, MS, 1000 * MS, 20);
        // 20 changes in a second leave out half a period each.
        assert_eq!((periods.worth(0, 1000 * MS), periods.worth(0, 1000 * MS + 1)), (704_900, 1_010_000));
    }

    #[test]
    fn a_loop_of_any_length_is_sampled_evenly() {
        let mut random = Random::new(5);
        for length in [0.25, 0.3333, 0.5, 0.75, 1.0, 1.003, 1.1, 1.5, 2.0] {
            let length = length * MS as f64;
            let (mut outside, mut sigmas) = (0, 0.0);
            for _ in 0..200 {
                // One second of a function that has the first 30 % of each turn.
                let (mut current, mut at) = (current(), random.between((0.0, 1e9)));
                let (mut inside, mut all, end) = (0.0, 0.0, at + 1e9);
                while at < end {
                    current.renew(MS, at as u64, &mut random);
                    let until = current.next as f64;
                    current.used = until as u64;
                    while at + (current.period as f64) < until {
                        at += current.period as f64;
                        all += current.period as f64;
                        inside += if at % length < 0.3 * length { current.period as f64 } else { 0.0 };
                    }
                    at = until;
                }
                let sigma = (inside / all - 0.3) / (0.3f64 * 0.7 / 1000.0).sqrt();
                sigmas += sigma;
                outside += usize::from(sigma.abs() > 3.0);
            }
            assert!(outside <= 4, "{outside} of 200 runs, length {length}");
            assert!(
                (sigmas / 200.0).abs() < 4.0 / 200f64.sqrt(),
                "mean {} sigma, length {length}",
                sigmas / 200.0
            );
        }
    }

    #[test]
    fn a_cpu_without_the_program_is_sampled_less_often() {
        let mut random = Random::new(7);
        let mut periods = CpuPeriods::new(MS, MS, 1, 0);
        let period = periods.cpus[0].renew(MS, UNUSED + 1, &mut random);
        assert!(period > 2 * MS && periods.cpus[0].next == u64::MAX, "{period}");
        periods.used(0, UNUSED + 5);
        assert_eq!(periods.cpus[0].next, 0, "the next change is due");
        let period = periods.cpus[0].renew(MS, UNUSED + 6, &mut random);
        assert!(period < 2 * MS && periods.cpus[0].next < 2 * UNUSED);
    }
}
