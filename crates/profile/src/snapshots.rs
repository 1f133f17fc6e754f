//! Conversion of time to counts: how many snapshots each sample of a recording stands for.
//!
//! A late tick must not make a thread look idle, so ticks are not counted. Samples of one [kind](crate::SampleKind) share
//! `time / delay` snapshots, rounded. The remainder is carried to the next kind of the thread. As a result:
//!
//! * the counts of a thread sum to its recorded time, however uneven the ticks were;
//! * no kind is wrong by a whole delay;
//! * merging samples while reading does not change the counts.
//!
//! Reports, word buffers and all files with counts use this module. Nothing else converts time to counts.

use crate::{Nanos, Recording, Sample, SampleKind};
use foldhash::HashMap;

/// Snapshots of each sample, in the order of [`Recording::samples`].
///
/// With a delay of 0 every sample counts its hits.
pub fn snapshots(recording: &Recording) -> Vec<u64> {
    let mut kinds = Vec::with_capacity(recording.samples.len());
    let mut snapshots = Snapshots::numbered(recording, |kind| kinds.push(kind));
    let kinds = kinds.into_iter().rev();
    match snapshots.delay {
        0 => recording.samples.iter().map(|sample| u64::from(sample.hits)).collect(),
        _ => recording.samples.iter().zip(kinds).map(|(sample, kind)| snapshots.take(kind, sample)).collect(),
    }
}

/// The snapshots of a recording, returned sample by sample.
///
/// ```
/// use stackglass_profile::{Nanos, Recording, Sample, Snapshots, StackId, State, ThreadNumber};
///
/// let sample = |stack, time| Sample {
///     stack: StackId(stack),
///     thread: ThreadNumber(1),
///     task: 0,
///     clock: Nanos(0),
///     state: State::Awake,
///     cut: None,
///     hits: 1,
///     time: Nanos(time),
/// };
/// let mut recording = Recording::default();
/// recording.info.delay = Nanos(10);
/// recording.samples = vec![sample(1, 8), sample(2, 30), sample(1, 8)];
///
/// let mut snapshots = Snapshots::of(&recording);
/// let counts: Vec<u64> = recording.samples.iter().map(|sample| snapshots.count(sample)).collect();
/// assert_eq!(counts, [1, 3, 1], "stack 1 had 16 of 46 ns: two of five snapshots");
/// ```
#[derive(Clone, Debug)]
pub struct Snapshots {
    delay: u64,
    numbers: HashMap<SampleKind, u32>,
    /// By kind number. The kind of the last sample has number 0.
    shares: Vec<Share>,
}

/// Time and snapshots of the samples of a kind that were not counted yet.
#[derive(Clone, Copy, Debug)]
struct Share {
    time: u128,
    snapshots: u64,
}

impl Snapshots {
    /// Computes the snapshots of a recording. Its samples may be merged: only the sum of each kind and the order of their
    /// last samples matter.
    pub fn of(recording: &Recording) -> Snapshots {
        Snapshots::numbered(recording, |_| ())
    }

    /// As [`Snapshots::of`]. Passes the kind number of each sample to `tell`, from the last sample to the first.
    fn numbered(recording: &Recording, mut tell: impl FnMut(u32)) -> Snapshots {
        let delay = recording.info.delay;
        let mut snapshots = Snapshots { delay: delay.0, numbers: HashMap::default(), shares: Vec::new() };
        if delay.0 == 0 {
            return snapshots;
        }
        let mut threads = Vec::new();
        for sample in recording.samples.iter().rev() {
            let next = snapshots.shares.len() as u32;
            let number = *snapshots.numbers.entry(sample.kind()).or_insert_with(|| {
                snapshots.shares.push(Share { time: 0, snapshots: 0 });
                threads.push(sample.thread.0);
                next
            });
            snapshots.shares[number as usize].time += u128::from(sample.time.0);
            tell(number);
        }
        let mut counter = Counter::new(delay);
        for (share, thread) in snapshots.shares.iter_mut().zip(threads) {
            share.snapshots = counter.count(thread, share.time);
        }
        snapshots
    }

    /// Returns the snapshots of the next sample. Samples must come once each, in the order of the recording. Samples that
    /// were merged there may come separately.
    ///
    /// The newest samples of a kind get its snapshots first, so that the last sample of a kind is counted where it was seen.
    pub fn count(&mut self, sample: &Sample) -> u64 {
        if self.delay == 0 {
            return u64::from(sample.hits);
        }
        let Some(number) = self.numbers.get(&sample.kind()) else { return 0 };
        self.take(*number, sample)
    }

    fn take(&mut self, kind: u32, sample: &Sample) -> u64 {
        let share = &mut self.shares[kind as usize];
        share.time = share.time.saturating_sub(u128::from(sample.time.0));
        let left = match u64::try_from(share.time) {
            Ok(time) => time.div_ceil(self.delay),
            Err(_) => u64::try_from(share.time.div_ceil(u128::from(self.delay))).unwrap_or(u64::MAX),
        };
        let left = left.min(share.snapshots);
        std::mem::replace(&mut share.snapshots, left) - left
    }
}

/// Rounds times to snapshots and carries the remainder per thread.
#[derive(Debug)]
struct Counter {
    delay: u64,
    /// By thread number: nanoseconds not yet counted; negative if too many were counted.
    owed: HashMap<u32, i64>,
}

impl Counter {
    fn new(delay: Nanos) -> Counter {
        Counter { delay: delay.0.max(1), owed: HashMap::default() }
    }

    fn count(&mut self, thread: u32, time: u128) -> u64 {
        let owed = self.owed.entry(thread).or_default();
        let delay = i128::from(self.delay);
        let total = i128::try_from(time).unwrap_or(i128::MAX / 2) + i128::from(*owed);
        // Not negative: at most half a delay was counted too much.
        let snapshots = (total + delay / 2).div_euclid(delay).max(0);
        *owed = (total - snapshots * delay) as i64;
        u64::try_from(snapshots).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{StackId, State, ThreadNumber};

    /// Of (thread, stack, time).
    fn recording(delay: u64, samples: &[(u32, u32, u64)]) -> Recording {
        let mut recording = Recording::default();
        recording.info.delay = Nanos(delay);
        recording.samples = samples
            .iter()
            .map(|(thread, stack, time)| Sample {
                stack: StackId(*stack),
                thread: ThreadNumber(*thread),
                task: 0,
                clock: Nanos(0),
                state: State::Awake,
                cut: None,
                hits: 7,
                time: Nanos(*time),
            })
            .collect();
        recording
    }

    #[test]
    fn remainders_are_carried_from_kind_to_kind() {
        let samples: Vec<_> = (0..10).map(|stack| (1, stack, 300_000)).collect();
        let counts = snapshots(&recording(1_000_000, &samples));
        assert_eq!(counts, [0, 1, 0, 0, 0, 1, 0, 0, 1, 0], "the newest first");
    }

    #[test]
    fn a_kind_has_its_time_however_it_was_cut_up() {
        let mut samples = vec![(1, 5, 2_500_000)];
        samples.extend((0..10).flat_map(|_| [(1, 1, 300_000), (1, 2, 700_000)]));
        let counts = snapshots(&recording(1_000_000, &samples));
        let of = |stack| samples.iter().zip(&counts).filter(move |(s, _)| s.1 == stack).map(|(_, c)| *c);
        assert_eq!((of(5).sum::<u64>(), of(1).sum::<u64>(), of(2).sum::<u64>()), (3, 3, 7));
        assert_eq!(of(1).collect::<Vec<_>>(), [0, 0, 0, 1, 0, 0, 1, 0, 0, 1], "the newest has one");
    }

    #[test]
    fn threads_do_not_share_remainders() {
        assert_eq!(snapshots(&recording(10, &[(1, 1, 4), (2, 1, 4)])), [0, 0]);
        assert_eq!(snapshots(&recording(10, &[(1, 1, 4), (1, 2, 4), (2, 1, 4), (2, 2, 16)])), [1, 0, 0, 2]);
    }

    #[test]
    fn without_a_delay_hits_count() {
        assert_eq!(snapshots(&recording(0, &[(1, 1, 4), (1, 1, 0)])), [7, 7]);
    }

    #[test]
    fn absurd_times_do_not_overflow() {
        let all = u64::MAX;
        assert_eq!(snapshots(&recording(1, &[(1, 1, all)])), [all]);
        assert_eq!(snapshots(&recording(1, &[(1, 1, all), (1, 1, all), (9, 1, 0)])), [0, all, 0]);
        let counts = snapshots(&recording(all, &[(1, 1, all / 2), (1, 2, all / 2), (1, 3, all / 2)]));
        assert_eq!(counts.iter().sum::<u64>(), 1);
        // A sample that the recording does not have.
        let mut known = Snapshots::of(&recording(10, &[(1, 1, 40)]));
        let stranger = recording(10, &[(all as u32, 1, all), (1, 1, all)]);
        assert_eq!(stranger.samples.iter().map(|sample| known.count(sample)).collect::<Vec<_>>(), [0, 4]);
    }
}
