//! The sampling periods of events that sample whole CPUs.
//!
//! A timer that expires on an idle CPU also ends the sleeps that are due within the kernel's tolerance (50 µs by default): the program
//! runs just after it. With one timer per CPU, no such stretch is sampled before a period has passed: bursts of 60 µs between sleeps
//! had 0.84 to 0.90 of their stacks. With several timers of longer periods, another one may expire at any moment. Four of
//! them give 0.99.
//!
//! A program that repeats itself may also keep in step with a fixed period, and is then sampled at the same place each time. So
//! periods differ, and change some thirty times a second, at random within a range that is wider than a delay. A stack stands for
//! the mean time between two stacks at that moment.
//!
//! A CPU on which the program has not run for seconds is sampled at a quarter of the rate, for the sake of others.

use super::events::{Events, TIMERS};
use stackglass_perf::attributes::{PERIODS, SHORTEST_PERIOD};
use stackglass_procfs::clock::monotonic;
use stackglass_sampling::Random;
use std::time::Duration;

/// Delays until a timer that has started gets a period within the range: the first one expires once in them.
const START: u64 = 2;
/// Steps of this part of a range spread evenly over it.
const GOLDEN: f64 = 0.618_034;
/// Time from one change of a CPU's periods to the next, ns.
const BETWEEN: (f64, f64) = (20_000_000.0, 40_000_000.0);
/// The same in delays.
const BETWEEN_DELAYS: (f64, f64) = (20.0, 40.0);
/// A CPU on which the program has not run for this time, ns, is sampled less often.
const UNUSED: u64 = 3_000_000_000;
/// How much longer the periods of such CPUs are.
const LONGER: f64 = 4.0;

/// One timer of a CPU.
#[derive(Clone, Copy, Debug)]
struct Timer {
    period: u64,
    /// When the next change is due.
    next: u64,
}

/// The timers of one CPU.
#[derive(Clone, Copy, Debug)]
struct Cpu {
    timers: [Timer; TIMERS],
    /// What a stack stands for, ns.
    worth: u64,
    /// The same before the last change.
    before: u64,
    /// The moment of the last change.
    since: u64,
    /// When the program last ran on this CPU.
    used: u64,
    /// The program has not run on it for long.
    unused: bool,
    /// When sampling began.
    began: u64,
    /// What the changes have left out, ns.
    left_out: u64,
    /// Place of the last period within the range: 0 to 1.
    place: f64,
}

/// The periods of all timers.
pub(super) struct CpuPeriods {
    delay: u64,
    cpus: Vec<Cpu>,
}

impl CpuPeriods {
    /// For events that were opened with these periods.
    pub(super) fn new(delay: u64, periods: [u64; TIMERS], cpus: usize, now: u64) -> CpuPeriods {
        let mut one = Cpu {
            timers: std::array::from_fn(|index| Timer {
                period: periods[index],
                next: now + START * delay + soon(index),
            }),
            worth: delay,
            before: delay,
            since: 0,
            used: now,
            unused: false,
            began: now,
            left_out: 0,
            place: (now % 1000) as f64 / 1000.0,
        };
        one.worth = one.worth_now();
        one.before = one.worth;
        CpuPeriods { delay, cpus: vec![one; cpus] }
    }

    /// Periods for the start. One after the other, the timers expire for the first time.
    pub(super) fn first(delay: u64, random: &mut Random) -> [u64; TIMERS] {
        std::array::from_fn(|index| first(delay, index, random))
    }

    /// The time until the first change, before it: the first timer of each CPU has a short period until then.
    pub(super) fn first_change(&self) -> Option<Duration> {
        let has_begun = self.cpus.iter().any(|cpu| cpu.since > 0);
        (!has_begun).then(|| Duration::from_nanos(START * self.delay))
    }

    /// The program ran on a CPU.
    pub(super) fn used(&mut self, cpu: usize, at: u64) {
        if let Some(cpu) = self.cpus.get_mut(cpu) {
            cpu.used = cpu.used.max(at);
            if cpu.unused {
                cpu.timers.iter_mut().for_each(|timer| timer.next = 0);
            }
        }
    }

    /// What a stack that was taken on a CPU at this moment stands for, ns.
    pub(super) fn worth(&self, cpu: usize, at: u64) -> u64 {
        let Some(cpu) = self.cpus.get(cpu) else { return self.delay };
        let worth = if at <= cpu.since { cpu.before } else { cpu.worth };
        match cpu.since.saturating_sub(cpu.began) {
            0 => worth,
            passed => {
                worth + (u128::from(worth) * u128::from(cpu.left_out.min(passed)) / u128::from(passed)) as u64
            }
        }
    }

    /// Changes the periods that are due.
    pub(super) fn renew(&mut self, now: u64, events: &Events, random: &mut Random) {
        for (number, cpu) in self.cpus.iter_mut().enumerate() {
            let set = |timer, period| events.set_period_of(number, timer, period);
            if cpu.renew(self.delay, now, random, set) {
                cpu.since = monotonic();
            }
        }
    }
}

/// A period for a timer that starts together with those before it, so that one of them expires about once per delay.
fn first(delay: u64, index: usize, random: &mut Random) -> u64 {
    let from = index as f64 + 0.55;
    (delay as f64 * random.between((from, from + 1.0))) as u64
}

/// How much later than the first one a timer that has started gets a period within the range, ns.
fn soon(index: usize) -> u64 {
    index as u64 * BETWEEN.0 as u64
}

impl Cpu {
    /// What a stack stands for now: any of the timers would have taken it.
    fn worth_now(&self) -> u64 {
        (1.0 / self.timers.iter().map(|timer| 1.0 / timer.period as f64).sum::<f64>()) as u64
    }

    /// Changes the periods that are due, by `set`. Returns whether there were any.
    fn renew(&mut self, delay: u64, now: u64, random: &mut Random, set: impl Fn(usize, u64)) -> bool {
        if self.timers.iter().all(|timer| timer.next > now) {
            return false;
        }
        let was_unused = std::mem::replace(&mut self.unused, now.saturating_sub(self.used) > UNUSED);
        self.before = self.worth;
        for index in 0..TIMERS {
            if self.timers[index].next > now {
                continue;
            }
            // On average, half a period of this timer has passed and is lost.
            self.left_out += self.before / 2;
            let mean = delay as f64 * TIMERS as f64 * if self.unused { LONGER } else { 1.0 };
            let between = random.between(BETWEEN).max(random.between(BETWEEN_DELAYS) * delay as f64);
            let (period, next) = match (self.unused, was_unused) {
                (false, true) => (first(delay, index, random), now + START * delay + soon(index)),
                (false, false) => {
                    ((mean * self.next_factor(random)) as u64, now + (between * TIMERS as f64) as u64)
                }
                (true, _) => ((mean * self.next_factor(random)) as u64, u64::MAX),
            };
            let period = period.max(SHORTEST_PERIOD);
            self.timers[index] = Timer { period, next };
            set(index, period);
        }
        self.worth = self.worth_now();
        true
    }

    /// The next factor within the range. Few of them already have the mean of all.
    fn next_factor(&mut self, random: &mut Random) -> f64 {
        self.place = (self.place + GOLDEN + random.between((-0.05, 0.05))).rem_euclid(1.0);
        PERIODS.0 + (PERIODS.1 - PERIODS.0) * self.place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    const MS: u64 = 1_000_000;

    fn one_cpu(random: &mut Random) -> CpuPeriods {
        CpuPeriods::new(MS, CpuPeriods::first(MS, random), 1, 0)
    }

    /// The moments at which a CPU is sampled in a second, and what each stack stands for. Drains are 20 ms apart, but for the first.
    fn stacks(random: &mut Random) -> Vec<(u64, u64)> {
        let mut periods = one_cpu(random);
        let due = RefCell::new(periods.cpus[0].timers.map(|timer| timer.period));
        let mut stacks: Vec<(u64, u64)> = Vec::new();
        let drains: Vec<u64> =
            [0, START].into_iter().chain((20..=1000).step_by(20)).map(|ms| ms * MS).collect();
        for (now, end) in drains.iter().copied().zip(drains[1..].iter().copied()) {
            let cpu = &mut periods.cpus[0];
            cpu.used = now;
            if cpu.renew(MS, now, random, |timer, period| due.borrow_mut()[timer] = now + period) {
                cpu.since = now;
            }
            for (due, timer) in due.borrow_mut().iter_mut().zip(cpu.timers) {
                while *due < end {
                    stacks.push((*due, 0));
                    *due += timer.period;
                }
            }
            // They are read before the next change.
            stacks
                .iter_mut()
                .filter(|(.., worth)| *worth == 0)
                .for_each(|(at, worth)| *worth = periods.worth(0, *at));
        }
        stacks
    }

    #[test]
    fn a_stack_is_worth_the_time_in_which_one_was_due() {
        let mut periods = one_cpu(&mut Random::new(1));
        let cpu = &mut periods.cpus[0];
        (cpu.before, cpu.worth, cpu.since, cpu.left_out) = (700_000, MS, 1000 * MS, 0);
        assert_eq!((periods.worth(0, 1000 * MS), periods.worth(0, 1000 * MS + 1)), (700_000, MS));
        assert_eq!(periods.worth(7, 5), MS, "no such CPU");
        // The changes of a second leave out 10 ms.
        periods.cpus[0].left_out = 10 * MS;
        assert_eq!((periods.worth(0, 1000 * MS), periods.worth(0, 1000 * MS + 1)), (707_000, 1_010_000));
    }

    #[test]
    fn a_second_has_a_stack_for_each_delay() {
        let (mut random, mut number, mut all) = (Random::new(3), 0, 0);
        for _ in 0..200 {
            let stacks = stacks(&mut random);
            assert!((850..=1150).contains(&stacks.len()), "{} stacks", stacks.len());
            number += stacks.len() as u64;
            all += stacks.iter().map(|(_, worth)| worth).sum::<u64>();
        }
        let (number, all) = (number as f64 / 200_000.0, all as f64 / (200_000.0 * MS as f64));
        assert!((0.97..=1.03).contains(&number), "{number} of the stacks");
        assert!((0.99..=1.01).contains(&all), "{all} of the time");
    }

    #[test]
    fn a_loop_of_any_length_is_sampled_evenly() {
        let mut random = Random::new(5);
        for length in [0.25, 0.3333, 0.5, 0.75, 1.0, 1.003, 1.1, 1.5, 2.0, 4.0] {
            let length = length * MS as f64;
            let (mut outside, mut sigmas) = (0, 0.0);
            for _ in 0..200 {
                // One second of a function that has the first 30 % of each turn.
                let phase = random.between((0.0, length));
                let (mut inside, mut all) = (0.0, 0.0);
                for (at, worth) in stacks(&mut random) {
                    all += worth as f64;
                    inside += if (at as f64 + phase) % length < 0.3 * length { worth as f64 } else { 0.0 };
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
        let mut periods = one_cpu(&mut random);
        let cpu = &mut periods.cpus[0];
        assert!(cpu.renew(MS, UNUSED + 1, &mut random, |_, _| ()));
        assert!(cpu.worth > 2 * MS, "{}", cpu.worth);
        assert!(!cpu.renew(MS, 1000 * UNUSED, &mut random, |_, _| ()), "nothing is due");
        periods.used(0, 1000 * UNUSED + 5);
        let cpu = &mut periods.cpus[0];
        assert!(cpu.renew(MS, 1000 * UNUSED + 6, &mut random, |_, _| ()));
        assert!(cpu.worth < MS && cpu.timers.iter().all(|timer| timer.next < 1001 * UNUSED));
    }
}
