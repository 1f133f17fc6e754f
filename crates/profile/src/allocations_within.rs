//! The allocations of a part of the time, and of a recording whose end is missing: sums of [slices](crate::AllocationSlices).

use crate::{
    AllocatingProcess, AllocationCounts, AllocationGroup, AllocationKind, AllocationSlice, Allocations,
    MemoryPoint, Nanos, ProcessIndex, RecordingInfo, TimeRange,
};
use foldhash::HashMap;
use std::fmt;
use std::ops::Range;

/// The slices that a range counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CountedSlices {
    /// Start of the recording, CLOCK_MONOTONIC.
    pub start: Nanos,
    /// Begin of the first slice, CLOCK_MONOTONIC.
    pub begin: Nanos,
    /// End of the last one.
    pub end: Nanos,
    /// Their number.
    pub slices: usize,
}

impl CountedSlices {
    /// From when to when they last, relative to the start of the recording.
    pub fn bounds(&self) -> (Nanos, Nanos) {
        let relative = |moment: Nanos| Nanos(moment.0.saturating_sub(self.start.0));
        (relative(self.begin), relative(self.end))
    }
}

/// Why the allocations of a range are not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotSliced {
    /// Counters were read at the end only.
    NoSlices,
    /// No slice has its middle in the range. The slices last from one moment to the other.
    Outside(Nanos, Nanos),
    /// The range lies within slices that are longer.
    Between {
        /// Length of a slice there.
        slice: Nanos,
    },
}

impl fmt::Display for NotSliced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotSliced::NoSlices => f.write_str(
                "its allocations have no times: the counters were read at the end only. `stackglass record --allocs -- PROGRAM` stores them by time",
            ),
            NotSliced::Outside(..) => f.write_str("no allocations were recorded in this range"),
            NotSliced::Between { slice } => write!(
                f,
                "the range is too short: allocations are known by slices of {} ms there, which count if their middle lies in the range",
                slice.0 / 1_000_000
            ),
        }
    }
}

impl std::error::Error for NotSliced {}

/// Sums of a key, each modulo 2^64.
#[derive(Clone, Copy, Default)]
struct Sums {
    older: (i64, i64),
    count: i64,
    bytes: i64,
    freed: (i64, i64),
    temporary: i64,
    peak: (i64, i64),
}

impl Allocations {
    /// Keeps the slices whose middle lies in a range, and counts them as a whole. The bounds of these slices are in
    /// [`Allocations::part`] then.
    ///
    /// Groups then have what was allocated and freed in these slices. Blocks that were alive before are
    /// [older](AllocationCounts::older_count). What is alive is so at the end of the last slice. The peak is that of the ends of slices.
    /// Nothing is known of what holds blocks then.
    ///
    /// # Errors
    /// [`NotSliced`], and nothing is changed.
    pub fn keep(&mut self, range: TimeRange, info: &RecordingInfo) -> Result<CountedSlices, NotSliced> {
        let (from, to) = range.moments(info);
        let slices = self.slices.slices();
        let (Some(first), Some(last)) = (slices.first(), slices.last()) else {
            return Err(NotSliced::NoSlices);
        };
        let begin = slices.partition_point(|slice| slice.middle() < from);
        let end = slices.partition_point(|slice| slice.middle() < to).max(begin);
        if begin == end {
            let at = slices.get(begin).filter(|_| from < last.end && to > first.begin);
            return Err(match at.or(Some(last)).filter(|_| from < last.end && to > first.begin) {
                Some(at) => NotSliced::Between { slice: at.length() },
                None => NotSliced::Outside(first.begin, last.end),
            });
        }
        let counted = CountedSlices {
            start: info.start,
            begin: slices[begin].begin,
            end: slices[end - 1].end,
            slices: end - begin,
        };
        let peaks = self.sum_slices(begin..end);
        for process in &mut self.processes {
            process.memory.retain(|point| (counted.begin..=counted.end).contains(&point.clock));
            process.peak_at = peaks.get(&process.process).map_or(counted.begin, |peak| peak.0);
            process.end = counted.end.min(process.end);
        }
        self.slices = Default::default();
        self.part = Some(counted);
        Ok(counted)
    }

    /// As [`Allocations::keep`], for a part of a recording. Nothing is left of allocations without slices, so that numbers of the whole time
    /// never stand beside those of a part: [`Allocations::not_sliced`] says why.
    pub fn become_part(&mut self, range: TimeRange, info: &RecordingInfo) {
        // The end of the recording may be missing.
        self.sum_up_slices();
        if !self.were_recorded() || self.part.is_some() {
            return;
        }
        if let Err(reason) = self.keep(range, info) {
            *self = Allocations { not_sliced: Some(reason), ..Allocations::default() };
        }
    }

    /// Fills in processes and groups from the slices, if the end of the recording is missing, where they are stored.
    pub fn sum_up_slices(&mut self) {
        if self.were_recorded() || self.slices.is_empty() {
            return;
        }
        let peaks = self.sum_slices(0..self.slices.slices().len());
        let mut memory = self.live_bytes_over_time();
        let end = self.slices.slices().last().map_or(Nanos(0), |slice| slice.end);
        self.processes = self
            .slices
            .processes()
            .iter()
            .map(|known| AllocatingProcess {
                process: known.process,
                begin: known.begin,
                end: end.max(known.begin),
                sampling: known.sampling,
                peak_at: peaks.get(&known.process).map_or(known.begin, |peak| peak.0),
                lost: 0,
                without_stack: 0,
                memory: memory.remove(&known.process).unwrap_or_default(),
            })
            .collect();
    }

    /// Makes the groups those of a range of slices. Returns when each process had the most live bytes, and how many.
    fn sum_slices(&mut self, range: Range<usize>) -> HashMap<ProcessIndex, (Nanos, i64)> {
        let peaks = self.peaks(range.clone());
        let (keys, slices) = (self.slices.keys(), self.slices.slices());
        let mut sums = vec![Sums::default(); keys.len()];
        for (index, slice) in slices[..range.end].iter().enumerate() {
            for change in &slice.changes {
                let Some(key) = keys.get(change.key as usize) else { continue };
                let sums = &mut sums[change.key as usize];
                let live = (change.live_count(), change.live_bytes());
                if peaks.get(&key.process).is_some_and(|peak| slice.end <= peak.0) {
                    add(&mut sums.peak, live);
                }
                if index < range.start {
                    add(&mut sums.older, live);
                    continue;
                }
                sums.count = sums.count.wrapping_add(change.count);
                sums.bytes = sums.bytes.wrapping_add(change.bytes);
                sums.temporary = sums.temporary.wrapping_add(change.temporary_count);
                add(&mut sums.freed, (change.freed_count, change.freed_bytes));
            }
        }
        self.groups.clear();
        for (key, sums) in keys.iter().zip(sums) {
            let positive = |n: i64| u64::try_from(n).unwrap_or(0);
            let counts = AllocationCounts {
                count: positive(sums.count),
                bytes: positive(sums.bytes),
                freed_count: positive(sums.freed.0),
                freed_bytes: positive(sums.freed.1),
                temporary_count: positive(sums.temporary),
                peak_count: positive(sums.peak.0),
                peak_bytes: positive(sums.peak.1),
                older_count: positive(sums.older.0),
                older_bytes: positive(sums.older.1),
                ..AllocationCounts::default()
            };
            if counts != AllocationCounts::default() {
                self.groups.push(AllocationGroup {
                    stack: key.stack,
                    thread: key.thread,
                    process: key.process,
                    task: key.task,
                    kind: key.kind,
                    size_class: key.size_class,
                    counts,
                });
            }
        }
        peaks
    }

    /// When each process had the most live bytes, at ends of slices of this range, and how many.
    fn peaks(&self, range: Range<usize>) -> HashMap<ProcessIndex, (Nanos, i64)> {
        let mut peaks: HashMap<ProcessIndex, (Nanos, i64)> = HashMap::default();
        let mut live: HashMap<ProcessIndex, i64> = HashMap::default();
        for (index, slice) in self.slices.slices()[..range.end].iter().enumerate() {
            for (process, bytes) in self.growth(slice) {
                let live = live.entry(process).or_default();
                *live = live.wrapping_add(bytes);
                if index >= range.start && *live > peaks.get(&process).map_or(i64::MIN, |peak| peak.1) {
                    peaks.insert(process, (slice.end, *live));
                }
            }
            // Processes without a change in the first slice have then what they had before.
            if index == range.start {
                for (process, live) in &live {
                    peaks.entry(*process).or_insert((slice.end, *live));
                }
            }
        }
        peaks
    }

    /// By how much the live bytes of each process grew in a slice.
    fn growth(&self, slice: &AllocationSlice) -> HashMap<ProcessIndex, i64> {
        let mut growth: HashMap<ProcessIndex, i64> = HashMap::default();
        for change in &slice.changes {
            let key = self.slices.keys().get(change.key as usize);
            if let Some(key) = key.filter(|key| key.kind == AllocationKind::Block) {
                let bytes = growth.entry(key.process).or_default();
                *bytes = bytes.wrapping_add(change.live_bytes());
            }
        }
        growth
    }

    /// Live bytes of all processes at the end of each slice.
    pub fn live_bytes_by_slice(&self) -> Vec<u64> {
        let mut live = 0i64;
        let slices = self.slices.slices().iter();
        let after = slices.map(|slice| {
            live = self.growth(slice).values().fold(live, |live, bytes| live.wrapping_add(*bytes));
            u64::try_from(live).unwrap_or(0)
        });
        after.collect()
    }

    fn live_bytes_over_time(&self) -> HashMap<ProcessIndex, Vec<MemoryPoint>> {
        let mut points: HashMap<ProcessIndex, (i64, Vec<MemoryPoint>)> = HashMap::default();
        for slice in self.slices.slices() {
            for (process, bytes) in self.growth(slice) {
                let (live, points) = points.entry(process).or_default();
                *live = live.wrapping_add(bytes);
                points.push(MemoryPoint {
                    clock: slice.end,
                    live_bytes: u64::try_from(*live).unwrap_or(0),
                    resident_bytes: 0,
                });
            }
        }
        points.into_iter().map(|(process, (_, points))| (process, points)).collect()
    }
}

fn add(sum: &mut (i64, i64), more: (i64, i64)) {
    *sum = (sum.0.wrapping_add(more.0), sum.1.wrapping_add(more.1));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        AllocationSampling, SHORTEST_SLICE, SizeClass, SliceChange, SliceKey, SlicedProcess, StackId,
        ThreadNumber,
    };

    const LENGTH: u64 = SHORTEST_SLICE.0;
    const START: u64 = 10 * LENGTH;

    fn change(key: u32, blocks: i64, freed: i64) -> SliceChange {
        SliceChange {
            key,
            count: blocks,
            bytes: 10 * blocks,
            freed_count: freed,
            freed_bytes: 10 * freed,
            temporary_count: freed / 2,
        }
    }

    /// Slices of equal length from the start of the recording on.
    fn allocations(slices: &[&[SliceChange]]) -> Allocations {
        let mut allocations = Allocations::default();
        let (process, sampling) = (ProcessIndex(0), AllocationSampling::Every);
        allocations.slices.add_process(SlicedProcess { process, begin: Nanos(START), sampling });
        for (stack, kind) in
            [(1, AllocationKind::Block), (2, AllocationKind::Block), (3, AllocationKind::Mapping)]
        {
            allocations.slices.add_key(SliceKey {
                stack: StackId(stack),
                thread: ThreadNumber(1),
                process,
                task: 0,
                kind,
                size_class: SizeClass(2),
            });
        }
        for (changes, number) in slices.iter().zip(0..) {
            let begin = START + number * LENGTH;
            allocations.slices.push(AllocationSlice {
                begin: Nanos(begin),
                end: Nanos(begin + LENGTH),
                changes: changes.to_vec(),
            });
        }
        allocations
    }

    fn info() -> RecordingInfo {
        RecordingInfo { start: Nanos(START), ..RecordingInfo::default() }
    }

    fn range(from: u64, to: u64) -> TimeRange {
        TimeRange { from: Some(Nanos(from)), to: Some(Nanos(to)) }
    }

    /// Count, freed, alive, at the peak, by stack.
    fn counts(allocations: &Allocations) -> Vec<(u32, [u64; 4])> {
        let groups = allocations.groups.iter();
        let counts = groups.map(|group| {
            let counts = &group.counts;
            assert_eq!(
                (counts.live_bytes(), counts.peak_bytes),
                (10 * counts.live_count(), 10 * counts.peak_count)
            );
            (group.stack.0, [counts.count, counts.freed_count, counts.live_count(), counts.peak_count])
        });
        counts.collect()
    }

    fn four() -> Allocations {
        allocations(&[
            &[change(0, 8, 2)],
            &[change(0, 5, 0), change(1, 7, 0), change(2, 100, 0)],
            &[change(0, 0, 9)],
            &[change(1, 1, 0)],
        ])
    }

    #[test]
    fn slices_count_whole_if_their_middle_lies_in_the_range() {
        let half = LENGTH / 2;
        for (from, to, counted) in [
            (0, 4 * LENGTH, (0, 4)),
            (half, LENGTH + half, (0, 1)),
            (half + 1, LENGTH + half + 1, (1, 2)),
            (2 * LENGTH, 3 * LENGTH, (2, 3)),
            (3 * LENGTH, 900 * LENGTH, (3, 4)),
        ] {
            let part = four().keep(range(from, to), &info()).unwrap();
            let bounds = (Nanos(counted.0 * LENGTH), Nanos(counted.1 * LENGTH));
            assert_eq!((part.bounds(), part.slices as u64), (bounds, counted.1 - counted.0), "{from} {to}");
        }
    }

    #[test]
    fn a_part_has_what_was_allocated_and_freed_in_it_and_what_is_alive_at_its_end() {
        let mut part = four();
        part.keep(range(LENGTH, 3 * LENGTH), &info()).unwrap();
        // Six blocks of the first stack are older than the range. The peak of 18 blocks is after the second slice.
        assert_eq!(counts(&part), [(1, [5, 9, 2, 11]), (2, [7, 0, 7, 7]), (3, [100, 0, 100, 100])]);
        let mut last = four();
        last.keep(range(3 * LENGTH, 4 * LENGTH), &info()).unwrap();
        assert_eq!(counts(&last), [(1, [0, 0, 2, 2]), (2, [1, 0, 8, 8]), (3, [0, 0, 100, 100])]);
    }

    #[test]
    fn the_end_of_a_recording_that_has_none_is_the_sum_of_its_slices() {
        let mut all = four();
        all.sum_up_slices();
        assert_eq!(counts(&all), [(1, [13, 11, 2, 11]), (2, [8, 0, 8, 7]), (3, [100, 0, 100, 100])]);
        let [process] = &all.processes[..] else { panic!("{:?}", all.processes) };
        assert_eq!((process.end, process.peak_at), (Nanos(START + 4 * LENGTH), Nanos(START + 2 * LENGTH)));
        let live: Vec<u64> = process.memory.iter().map(|point| point.live_bytes).collect();
        assert_eq!(live, [60, 180, 90, 100]);
        assert_eq!(all.live_bytes_by_slice(), live);
    }

    #[test]
    fn what_no_slice_has_is_refused() {
        assert_eq!(Allocations::default().keep(range(0, 9), &info()), Err(NotSliced::NoSlices));
        let within = four().keep(range(LENGTH + 1, LENGTH + 2), &info());
        assert_eq!(within, Err(NotSliced::Between { slice: Nanos(LENGTH) }));
        let outside = NotSliced::Outside(Nanos(START), Nanos(START + 4 * LENGTH));
        assert_eq!(four().keep(range(5 * LENGTH, 6 * LENGTH), &info()), Err(outside));
        // Numbers of the whole time do not stand for a part of it.
        let mut unsliced = four();
        unsliced.sum_up_slices();
        unsliced.slices = Default::default();
        unsliced.become_part(range(0, LENGTH), &info());
        assert_eq!((unsliced.not_sliced, unsliced.groups.len()), (Some(NotSliced::NoSlices), 0));
    }
}
