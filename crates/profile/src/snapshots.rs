//! Conversion of time to counts: how many snapshots each sample of a recording stands for.
//!
//! A late tick must not make a thread look idle, so ticks are not counted. Samples of one [kind](crate::SampleKind) share
//! `time / delay` snapshots, rounded. What is left of a thread is carried to the next one. As a result:
//!
//! * the counts of all threads sum to their CPU time, up to a half, and so does other time;
//! * the counts of a thread sum to its recorded time, up to two, however uneven the ticks were;
//! * threads that ran for less than a delay have their share together;
//! * no kind is wrong by two delays;
//! * merging samples while reading does not change the counts.
//!
//! Reports, word buffers and all files with counts use this module. Nothing else converts time to counts.

use crate::{Recording, Sample, SampleKind};
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
///     spread: Nanos(0),
/// };
/// let mut recording = Recording::default();
/// recording.info.delay = Nanos(10);
/// recording.samples = vec![sample(1, 8), sample(2, 30), sample(1, 8)];
///
/// let mut snapshots = Snapshots::from_recording(&recording);
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
    pub fn from_recording(recording: &Recording) -> Snapshots {
        Snapshots::numbered(recording, |_| ())
    }

    /// As [`Snapshots::from_recording`]. Passes the kind number of each sample to `tell`, from the last sample to the first.
    fn numbered(recording: &Recording, mut tell: impl FnMut(u32)) -> Snapshots {
        let delay = recording.info.delay;
        let mut snapshots = Snapshots { delay: delay.0, numbers: HashMap::default(), shares: Vec::new() };
        if delay.0 == 0 {
            return snapshots;
        }
        let mut kinds = Vec::new();
        for sample in recording.samples.iter().rev() {
            let next = snapshots.shares.len() as u32;
            let number = *snapshots.numbers.entry(sample.kind()).or_insert_with(|| {
                snapshots.shares.push(Share { time: 0, snapshots: 0 });
                kinds.push((sample.state.uses_cpu(), sample.thread.0));
                next
            });
            snapshots.shares[number as usize].time += u128::from(sample.time.0);
            tell(number);
        }
        count(&mut snapshots.shares, &kinds, delay.0);
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

/// The golden ratio: multiples of it, without their whole parts, are spread evenly, whatever steps are taken.
const GOLDEN: f64 = 0.618_033_988_749_895;

/// Divides the snapshots of threads among their kinds. `kinds` says whether they use a CPU, and
/// their threads.
///
/// The snapshots of a thread are its time, rounded; what is left is carried to the next thread, for time on a CPU and other time apart.
/// So N lives of less than a delay have all of their time. A thread's snapshots lie at equal distances in its time, which its kinds
/// have one after the other. The first of these distances differs from thread to thread: else of equal short threads the same
/// kind would always be met.
fn count(shares: &mut [Share], kinds: &[(bool, u32)], delay: u64) {
    let delay = i128::from(delay);
    let mut threads: Vec<(bool, Vec<usize>)> = Vec::new();
    let mut places: HashMap<(bool, u32), usize> = HashMap::default();
    for (kind, of) in kinds.iter().enumerate() {
        let place = *places.entry(*of).or_insert_with(|| {
            threads.push((of.0, Vec::new()));
            threads.len() - 1
        });
        threads[place].1.push(kind);
    }
    let mut left = [(0, 0.5); 2];
    for (uses_cpu, kinds) in threads {
        let (owed, first) = &mut left[usize::from(uses_cpu)];
        let time: u128 = kinds.iter().map(|kind| shares[*kind].time).sum();
        let total = i128::try_from(time).unwrap_or(i128::MAX / 2) + *owed;
        // Not negative: at most half a delay was counted too much.
        let snapshots = (total + delay / 2).div_euclid(delay).max(0);
        *owed = total - snapshots * delay;
        let snapshots = u64::try_from(snapshots).unwrap_or(u64::MAX);
        let (mut until, mut counted) = (0, 0);
        for kind in kinds {
            let share = &mut shares[kind];
            until += share.time;
            let up_to_here = match until == time {
                true => snapshots,
                false => {
                    let place = until as f64 * snapshots as f64 / time as f64;
                    ((place - *first).floor() + 1.0).max(0.0) as u64
                }
            };
            let up_to_here = up_to_here.clamp(counted, snapshots);
            share.snapshots = up_to_here - counted;
            counted = up_to_here;
        }
        *first = (*first + GOLDEN).fract();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Nanos, StackId, State, ThreadNumber};

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
                spread: Nanos(0),
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

    /// N lives of which each has two stacks for a part of a delay.
    #[test]
    fn short_lives_have_their_time() {
        for (first, second) in
            [(500, 500), (300, 100), (50, 20), (600, 900), (450, 450), (1300, 1200), (7100, 200)]
        {
            let lives = (0..2000).flat_map(|life| [(life, 1, first), (life, 2, second)]);
            let samples: Vec<_> = lives.collect();
            let counts = snapshots(&recording(1000, &samples));
            for (stack, time) in [(1, first), (2, second)] {
                let of_stack = samples.iter().zip(&counts).filter(|(sample, _)| sample.1 == stack);
                let counted = of_stack.map(|(_, count)| *count).sum::<u64>() as f64;
                let expected = time as f64 * 2.0;
                let error = expected.sqrt() * 3.0;
                assert!((counted - expected).abs() <= error, "{first} {second}: {counted} of {expected}");
            }
            let all: u64 = counts.iter().sum();
            assert_eq!(all, (first + second) * 2, "up to one");
        }
    }

    #[test]
    fn a_thread_has_its_time() {
        let samples: Vec<_> = (0..50)
            .flat_map(|thread| (0..90).map(move |stack| (thread, stack, 7 + stack as u64 % 5)))
            .collect();
        let counts = snapshots(&recording(10, &samples));
        for thread in 0..50 {
            let of = || samples.iter().zip(&counts).filter(|(sample, _)| sample.0 == thread);
            let (time, counted) =
                (of().map(|(sample, _)| sample.2).sum::<u64>(), of().map(|(_, count)| count).sum::<u64>());
            assert!((time as i64 - counted as i64 * 10).abs() <= 10, "{time} {counted}");
        }
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
        let mut known = Snapshots::from_recording(&recording(10, &[(1, 1, 40)]));
        let stranger = recording(10, &[(all as u32, 1, all), (1, 1, all)]);
        assert_eq!(stranger.samples.iter().map(|sample| known.count(sample)).collect::<Vec<_>>(), [0, 4]);
    }
}
