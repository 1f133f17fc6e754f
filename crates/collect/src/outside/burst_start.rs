//! Corrects the stacks of the first microseconds of CPU bursts, which come late.
//!
//! A timer that expires while the kernel switches threads fires afterwards, and one that is set for a very near
//! moment fires late, by up to 30 µs on virtual machines. So stacks that were due in the kernel pile up in the code
//! that runs next. But a thread's own code never runs longer than the thread. Where the stacks at the start of bursts
//! stand for more time than that, the surplus is left out evenly, and its time goes to the kernel. (Measured without
//! this: with bursts of 60 µs, the function at the start of each burst had 1.07 to 1.11 of its true time; with bursts
//! of 15 µs, all functions had 1.2.)

use std::ops::Range;

/// The start of a burst, ns since its beginning. Earlier, the thread is still in the kernel.
const START: Range<u64> = 16_000..40_000;
/// Periods that are added to both sides of the ratio: few stacks prove nothing.
const PRIOR: u64 = 16;

/// CPU time of a thread at the start of its bursts, and the time that its stacks there stand for, ns.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct BurstStart {
    ran: u64,
    sampled: u64,
    /// The part of a stack that should have been left out so far: less than one.
    left_out: f64,
}

impl BurstStart {
    /// A burst of this length has ended.
    pub(super) fn add_burst(&mut self, len: u64) {
        self.ran += len.clamp(START.start, START.end) - START.start;
    }

    /// A stack of the thread's own code was taken at this time after the beginning of a burst. Returns whether that
    /// is the start of the burst.
    pub(super) fn add_hit(&mut self, since: u64, period: u64) -> bool {
        let inside = START.contains(&since);
        if inside {
            self.sampled += period;
        }
        inside
    }

    /// Whether a stack from the start of a burst is surplus.
    pub(super) fn is_surplus(&mut self, period: u64) -> bool {
        let prior = (PRIOR * period) as f64;
        self.left_out += (1.0 - (self.ran as f64 + prior) / (self.sampled as f64 + prior)).max(0.0);
        let surplus = self.left_out >= 1.0;
        if surplus {
            self.left_out -= 1.0;
        }
        surplus
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 20 000 bursts of 60 µs, one in so many has a stack of 1 ms in its start. Returns the number of stacks, and
    /// how many remain if all are judged at the end.
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
        // The thread ran there for 480 ms.
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
