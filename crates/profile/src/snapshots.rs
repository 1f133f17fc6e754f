//! From time to counts: how many snapshots each sample of a recording stands for.
//!
//! A late tick must not make a thread look idle, so reports do not count ticks. They count
//! `time / delay`, rounded, with the remainder carried from sample to sample of a thread: the counts
//! of a thread then sum to its recorded time however uneven the ticks were.

use crate::{Nanos, Recording};

/// Snapshots of each sample, in the order of [`Recording::samples`].
///
/// With a delay of 0 every sample counts its hits.
pub fn snapshots(recording: &Recording) -> Vec<u64> {
    let mut counter = SnapshotCounter::new(recording.about.delay, recording.threads.len());
    let count = |sample: &crate::Sample| {
        if recording.about.delay.0 == 0 {
            u64::from(sample.hits)
        } else {
            counter.count(sample.thread.0 as usize, sample.time)
        }
    };
    recording.samples.iter().map(count).collect()
}

/// Rounds times to snapshots, carrying what rounding left over, per thread.
#[derive(Debug)]
pub(crate) struct SnapshotCounter {
    delay: u64,
    /// Per thread number: nanoseconds not yet counted (negative: counted ahead).
    owed: Vec<i64>,
}

impl SnapshotCounter {
    pub(crate) fn new(delay: Nanos, threads: usize) -> SnapshotCounter {
        SnapshotCounter { delay: delay.0.max(1), owed: vec![0; threads + 1] }
    }

    pub(crate) fn count(&mut self, thread: usize, time: Nanos) -> u64 {
        if self.owed.len() <= thread {
            self.owed.resize(thread + 1, 0);
        }
        let total = i128::from(time.0) + i128::from(self.owed[thread]);
        let delay = i128::from(self.delay);
        // Dividing 128 bits takes longer than all else about a sample, and is hardly ever needed.
        let snapshots = match (i64::try_from(total + delay / 2), i64::try_from(delay)) {
            (Ok(total), Ok(delay)) => i128::from(total.div_euclid(delay)),
            _ => (total + delay / 2).div_euclid(delay),
        };
        let snapshots = snapshots.max(0);
        self.owed[thread] = (total - snapshots * delay) as i64;
        snapshots as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remainders_are_carried() {
        let mut counter = SnapshotCounter::new(Nanos(1_000_000), 1);
        let counts: Vec<u64> = (0..10).map(|_| counter.count(1, Nanos(300_000))).collect();
        assert_eq!(counts, [0, 1, 0, 0, 1, 0, 0, 0, 1, 0]);
        assert_eq!(counter.count(1, Nanos(2_500_000)), 3, "3.0 + 2.5 ms, of which three were counted");
    }

    #[test]
    fn threads_do_not_share_remainders() {
        let mut counter = SnapshotCounter::new(Nanos(10), 2);
        assert_eq!((counter.count(1, Nanos(4)), counter.count(2, Nanos(4))), (0, 0));
        assert_eq!((counter.count(1, Nanos(4)), counter.count(2, Nanos(16))), (1, 2));
    }

    #[test]
    fn absurd_times_do_not_overflow() {
        let mut counter = SnapshotCounter::new(Nanos(1), 1);
        assert_eq!(counter.count(1, Nanos(u64::MAX)), u64::MAX);
        let mut counter = SnapshotCounter::new(Nanos(u64::MAX), 1);
        for _ in 0..4 {
            counter.count(1, Nanos(u64::MAX / 2));
        }
    }
}
