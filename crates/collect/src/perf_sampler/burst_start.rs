//! The first microseconds of CPU bursts, in which samples come late.
//!
//! Inherited events run only while their thread runs. A timer that expires while the kernel switches threads fires after the
//! switch. A timer that is set for a very near moment also fires late, by up to 30 µs on virtual machines. So stacks that were due
//! in the kernel fall on the code that runs next.
//! The stacks in a thread's own code cannot stand for more time than the thread ran. If those at the start of bursts do, the
//! surplus is dropped evenly, and its time is assigned to the kernel. Without this rule, the function at the start of each
//! burst of 60 µs got 1.07 to 1.11 times its true time, and functions in bursts of 15 µs got 1.2 times theirs.

use std::ops::Range;

/// The start of a burst, ns since the switch. Before it the thread is still in the kernel.
const START: Range<u64> = 16_000..40_000;
/// Periods that are added to both sides of the share, because few stacks prove nothing.
const PRIOR: u64 = 16;

/// How long a thread ran in the starts of its bursts, and how much time its stacks there stand for, ns.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct BurstStart {
    ran: u64,
    sampled: u64,
    /// The fraction of a stack that is still to be dropped.
    to_drop: f64,
}

impl BurstStart {
    /// A burst of this length has ended.
    pub(super) fn add_burst(&mut self, len: u64) {
        self.ran += len.clamp(START.start, START.end) - START.start;
    }

    /// A stack of the thread's own code was taken `since` ns after the switch. Whether that is in the start.
    pub(super) fn add_hit(&mut self, since: u64, period: u64) -> bool {
        let inside = START.contains(&since);
        if inside {
            self.sampled += period;
        }
        inside
    }

    /// Whether a stack that was taken in the start is surplus.
    pub(super) fn is_surplus(&mut self, period: u64) -> bool {
        let prior = (PRIOR * period) as f64;
        self.to_drop += (1.0 - (self.ran as f64 + prior) / (self.sampled as f64 + prior)).max(0.0);
        let surplus = self.to_drop >= 1.0;
        if surplus {
            self.to_drop -= 1.0;
        }
        surplus
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates 20 000 bursts of 60 µs. One burst in `every` has a stack in its start, which stands for 1 ms. Returns the
    /// number of these stacks, and how many remain if all are judged at the end.
    fn remaining(every: usize) -> (usize, usize) {
        let (mut start, mut hits) = (BurstStart::default(), 0);
        for i in 0..20_000 {
            start.add_burst(60_000);
            if i % every == 0 {
                assert!(start.add_hit(30_000, 1_000_000));
                hits += 1;
            }
        }
        (hits, (0..hits).filter(|_| !start.is_surplus(1_000_000)).count())
    }

    #[test]
    fn the_start_of_bursts_has_no_more_than_they_ran() {
        // They ran there for 480 ms.
        let (all, remain) = remaining(32);
        assert!(all == 625 && (480..=490).contains(&remain), "{remain}");
        assert_eq!(remaining(50), (400, 400));
        assert_eq!(remaining(1000), (20, 20));
    }

    #[test]
    fn few_stacks_and_long_bursts_are_left_alone() {
        let mut start = BurstStart::default();
        assert!(!start.add_hit(15_999, 1) && !start.add_hit(40_000, 1));
        start.add_burst(20_000);
        assert!(start.add_hit(17_000, 1_000_000));
        assert!(!start.is_surplus(1_000_000));
        assert_eq!(start.ran, 4000);
    }
}
