//! How much time a snapshot stands for.
//!
//! Snapshots do not see all states alike: on a busy machine, this process gets a CPU when the program sleeps, and a stop takes longer
//! while it runs. So snapshots only tell where the time went. How much time threads ran, or were ready to, the kernel tells exactly.
//!
//! While types are read, there are no snapshots. That time is spread over the next snapshots: one alone would say little.

/// Time that no snapshot stands for yet.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    /// Wall time, ns.
    time: f64,
    /// Time of threads that ran or were ready to, ns.
    ran: f64,
    /// Mean number of such threads in snapshots that found some.
    running: f64,
    unseen: Unseen,
}

/// Time without snapshots that the next ones stand for.
#[derive(Clone, Debug, Default)]
struct Unseen {
    /// Wall time, ns.
    time: f64,
    /// Time in which threads ran or were ready to, ns.
    ran: f64,
}

/// Weight of the last snapshot in the mean.
const NEWEST: f64 = 1.0 / 16.0;

impl Weights {
    pub(super) fn new() -> Weights {
        Weights { time: 0.0, ran: 0.0, running: 1.0, unseen: Unseen::default() }
    }

    /// The time, ns, that a snapshot stands for. `time` has passed since the last one. `ran` is how long threads ran in it, or `None`
    /// if that is not known. `running` is how many threads the snapshot found running. In the first `unseen` ns, there could be none.
    pub(super) fn of_snapshot(&mut self, time: u64, unseen: u64, ran: Option<u64>, running: usize) -> u64 {
        let (time, unseen) = (time as f64, unseen.min(time) as f64);
        let unseen_ran = ran.map_or(0.0, |ran| if time > 0.0 { ran as f64 * unseen / time } else { 0.0 });
        self.unseen.time += unseen;
        self.unseen.ran += unseen_ran;
        // As much again as the snapshot stands for anyway.
        let seen = time - unseen;
        let part = if self.unseen.time > 0.0 { (seen / self.unseen.time).min(1.0) } else { 0.0 };
        self.time += seen + self.unseen.time * part;
        self.ran += self.unseen.ran * part;
        self.unseen.time *= 1.0 - part;
        self.unseen.ran *= 1.0 - part;
        let Some(ran) = ran else {
            self.ran = 0.0;
            return std::mem::take(&mut self.time) as u64;
        };
        self.ran += ran as f64 - unseen_ran;
        let weight = match running {
            // What ran is left to snapshots that find it.
            0 => (self.time - self.ran / self.running).max(0.0),
            _ => {
                let count = running as f64;
                self.running += (count - self.running) * NEWEST;
                let weight = (self.ran / count).min(self.time);
                self.ran -= weight * count;
                weight
            }
        };
        let weight = weight.floor();
        self.time -= weight;
        weight as u64
    }

    /// All that is left, ns.
    pub(super) fn rest(&mut self) -> u64 {
        self.ran = 0.0;
        let unseen = std::mem::take(&mut self.unseen);
        (std::mem::take(&mut self.time) + unseen.time) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The part of the time of snapshots that found threads running, in a program in which `busy` of `threads` run for 45 of 100 ms.
    /// Only one of `seen` snapshots of a running program finds it running.
    fn share(busy: usize, seen: usize) -> f64 {
        let mut weights = Weights::new();
        let (mut found, mut total) = (0, 0);
        for snapshot in 0..10_000usize {
            let time = 80_000_000 + (snapshot as u64 * 7919) % 40_000_000;
            let runs = (snapshot * 37) % 100 < 45;
            let running = if runs && snapshot % seen == 0 { busy } else { 0 };
            let weight = weights.of_snapshot(time, 0, Some(time * 45 / 100 * busy as u64), running);
            total += weight;
            found += if running > 0 { weight } else { 0 };
        }
        total += weights.rest();
        found as f64 / total as f64
    }

    #[test]
    fn time_is_what_the_kernel_tells() {
        for (busy, seen) in [(1, 1), (1, 3), (2, 1), (2, 5)] {
            let share = share(busy, seen);
            assert!((share - 0.45).abs() < 0.01, "{busy} {seen}: {share}");
        }
    }

    #[test]
    fn all_time_is_given() {
        let mut weights = Weights::new();
        assert_eq!(weights.of_snapshot(100, 0, None, 3), 100);
        // Threads that ran for a moment, which no snapshot has found.
        assert_eq!(weights.of_snapshot(100, 0, Some(30), 0), 70);
        assert_eq!(weights.of_snapshot(100, 0, Some(0), 0), 100);
        assert_eq!(weights.of_snapshot(10, 0, Some(10), 1), 40);
        assert_eq!(weights.of_snapshot(100, 0, Some(500), 2), 100);
        assert_eq!(weights.of_snapshot(100, 0, None, 0), 100);
        assert_eq!(weights.rest(), 0);
    }

    #[test]
    fn time_without_snapshots_is_spread() {
        let mut weights = Weights::new();
        assert_eq!(weights.of_snapshot(2100, 2000, Some(0), 0), 200);
        for _ in 0..19 {
            assert_eq!(weights.of_snapshot(100, 0, Some(0), 0), 200);
        }
        assert_eq!(weights.of_snapshot(100, 0, Some(0), 0), 100);
        // Also if it is not known how long threads ran.
        let mut weights = Weights::new();
        assert_eq!(weights.of_snapshot(2100, 2000, None, 1), 200);
        assert_eq!(weights.of_snapshot(100, 0, None, 1), 200);
        // What threads ran then is spread alike.
        let mut weights = Weights::new();
        let found: u64 = (0..21)
            .map(|snapshot| match snapshot {
                0 => weights.of_snapshot(2100, 2000, Some(1050), 1),
                _ => weights.of_snapshot(100, 0, Some(50), snapshot % 2),
            })
            .sum();
        assert!(found.abs_diff(4100) < 150, "{found}");
        // The end of the program leaves nothing.
        let mut weights = Weights::new();
        assert_eq!((weights.of_snapshot(2100, 2000, Some(0), 0), weights.rest()), (200, 1900));
    }
}
