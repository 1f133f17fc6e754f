//! Allocations by slice of time: how the counts of each group changed from one moment to the next.
//!
//! The recorder reads the counters of the program while it runs, and stores what has changed. A recording has at most
//! [`MOST_SLICES`]: when there are more, neighbours merge, and later slices are twice as long. So memory is bounded, however long the
//! program runs. The sum of all slices is what the [groups](crate::AllocationGroup) have.

use crate::{AllocationKind, AllocationSampling, Nanos, ProcessIndex, SizeClass, StackId, ThreadNumber};

/// Most slices of a recording.
pub const MOST_SLICES: usize = 600;

/// The shortest slice. Only the last one of a recording may be shorter.
pub const SHORTEST_SLICE: Nanos = Nanos(50_000_000);

/// With more changes than this, and twice the number of keys, neighbours merge.
const MOST_CHANGES: usize = 1 << 19;

/// What the changes of slices refer to: the keys of groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SliceKey {
    /// The stack of the allocation, 0 if it is unknown.
    pub stack: StackId,
    /// The allocating thread, 0 if it is unknown.
    pub thread: ThreadNumber,
    /// The process of that thread.
    pub process: ProcessIndex,
    /// The async task that was being polled, 0 for none.
    pub task: u64,
    /// Block or mapping.
    pub kind: AllocationKind,
    /// Class of the requested sizes.
    pub size_class: SizeClass,
}

/// How the counts of a key changed in a slice. Estimates may go down as well. All sums wrap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SliceChange {
    /// Number of the key.
    pub key: u32,
    /// Number of allocations.
    pub count: i64,
    /// Their bytes.
    pub bytes: i64,
    /// Number of blocks that were freed, whenever they were allocated.
    pub freed_count: i64,
    /// Their bytes.
    pub freed_bytes: i64,
    /// Number of those that were freed before their thread allocated again.
    pub temporary_count: i64,
}

impl SliceChange {
    /// Adds a change of the same key.
    pub fn add(&mut self, other: &SliceChange) {
        self.count = self.count.wrapping_add(other.count);
        self.bytes = self.bytes.wrapping_add(other.bytes);
        self.freed_count = self.freed_count.wrapping_add(other.freed_count);
        self.freed_bytes = self.freed_bytes.wrapping_add(other.freed_bytes);
        self.temporary_count = self.temporary_count.wrapping_add(other.temporary_count);
    }

    /// By how much the number of live blocks has grown.
    pub fn live_count(&self) -> i64 {
        self.count.wrapping_sub(self.freed_count)
    }

    /// By how much live bytes have grown.
    pub fn live_bytes(&self) -> i64 {
        self.bytes.wrapping_sub(self.freed_bytes)
    }

    /// Whether nothing has changed.
    pub fn is_none(&self) -> bool {
        *self == SliceChange { key: self.key, ..SliceChange::default() }
    }
}

/// What changed from one moment to another.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AllocationSlice {
    /// CLOCK_MONOTONIC.
    pub begin: Nanos,
    /// CLOCK_MONOTONIC.
    pub end: Nanos,
    /// The keys whose counts changed. A key may occur several times.
    pub changes: Vec<SliceChange>,
}

impl AllocationSlice {
    /// Its length.
    pub fn length(&self) -> Nanos {
        Nanos(self.end.0.saturating_sub(self.begin.0))
    }

    /// The moment in its middle.
    pub fn middle(&self) -> Nanos {
        Nanos(self.begin.0.saturating_add(self.length().0 / 2))
    }

    fn absorb(&mut self, later: AllocationSlice) {
        self.begin = self.begin.min(later.begin);
        self.end = self.end.max(later.end);
        self.changes.extend(later.changes);
    }

    /// Makes one change of all of a key.
    fn sum_up(&mut self) {
        self.changes.sort_unstable_by_key(|change| change.key);
        self.changes.dedup_by(|later, first| {
            let same = later.key == first.key;
            if same {
                first.add(later);
            }
            same
        });
        self.changes.shrink_to_fit();
    }
}

/// A process whose slices are recorded.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SlicedProcess {
    /// The process.
    pub process: ProcessIndex,
    /// When the recording of its allocations began.
    pub begin: Nanos,
    /// Which allocations are recorded.
    pub sampling: AllocationSampling,
}

/// The slices of a recording, in order of time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AllocationSlices {
    processes: Vec<SlicedProcess>,
    keys: Vec<SliceKey>,
    slices: Vec<AllocationSlice>,
    /// Slices before this one are written to the file.
    settled: usize,
    /// Changes in all slices.
    changes: usize,
    /// Shorter slices merge with the next one.
    length: Nanos,
    /// How often all slices were forgotten.
    generation: u32,
}

impl AllocationSlices {
    /// The processes that slices tell of.
    pub fn processes(&self) -> &[SlicedProcess] {
        &self.processes
    }

    /// What changes refer to.
    pub fn keys(&self) -> &[SliceKey] {
        &self.keys
    }

    /// The slices, in order of time.
    pub fn slices(&self) -> &[AllocationSlice] {
        &self.slices
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }

    /// The least length of the next slice.
    pub fn length(&self) -> Nanos {
        self.length.max(SHORTEST_SLICE)
    }

    /// How often all slices were [forgotten](AllocationSlices::forget).
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Adds a process.
    pub fn add_process(&mut self, process: SlicedProcess) {
        self.processes.push(process);
    }

    /// Adds a key and returns its number.
    pub fn add_key(&mut self, key: SliceKey) -> u32 {
        self.keys.push(key);
        self.keys.len() as u32 - 1
    }

    /// Adds the next slice. It becomes a part of the last one if that one or the new one is too short, or if both end together.
    pub fn push(&mut self, slice: AllocationSlice) {
        self.changes += slice.changes.len();
        let may_grow = self.slices.len() > self.settled;
        let length = self.length();
        match self.slices.last_mut().filter(|_| may_grow) {
            Some(last)
                if last.length() < length || slice.length() < SHORTEST_SLICE || last.end == slice.end =>
            {
                last.absorb(slice)
            }
            _ => self.slices.push(slice),
        }
        self.keep_bounds();
    }

    /// All slices so far were written. They do not merge with later ones.
    pub fn settle(&mut self) {
        self.settled = self.slices.len();
        self.keep_bounds();
    }

    /// Forgets all slices.
    pub fn forget(&mut self) {
        *self = AllocationSlices { generation: self.generation + 1, ..AllocationSlices::default() };
    }

    /// Merges neighbours if there are too many slices or changes.
    fn keep_bounds(&mut self) {
        let bound = MOST_CHANGES + 2 * self.keys.len();
        if self.slices.len() <= MOST_SLICES && self.changes <= bound {
            return;
        }
        // Each change is read once for each halving, so that hostile files need no more time than others.
        loop {
            let can_merge = self.settled > 1 || self.slices.len() - self.settled > 1;
            self.merge_neighbours();
            let few = self.slices.len() <= MOST_SLICES && self.changes <= bound / 2;
            if few || !can_merge {
                return;
            }
        }
    }

    fn merge_neighbours(&mut self) {
        let later = self.slices.split_off(self.settled);
        let written = std::mem::take(&mut self.slices);
        self.slices = in_pairs(written);
        self.settled = self.slices.len();
        self.slices.extend(in_pairs(later));
        self.changes = self.slices.iter().map(|slice| slice.changes.len()).sum();
        self.length = Nanos(self.length().0.saturating_mul(2));
    }
}

fn in_pairs(slices: Vec<AllocationSlice>) -> Vec<AllocationSlice> {
    let mut pairs: Vec<AllocationSlice> = Vec::with_capacity(slices.len().div_ceil(2));
    for (index, slice) in slices.into_iter().enumerate() {
        match pairs.last_mut().filter(|_| index % 2 == 1) {
            Some(first) => first.absorb(slice),
            None => pairs.push(slice),
        }
    }
    pairs.iter_mut().for_each(AllocationSlice::sum_up);
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slices(count: u64, length: u64) -> impl Iterator<Item = AllocationSlice> {
        (0..count).map(move |number| AllocationSlice {
            begin: Nanos(number * length),
            end: Nanos((number + 1) * length),
            changes: vec![SliceChange {
                key: (number % 7) as u32,
                count: 1,
                bytes: 8,
                ..SliceChange::default()
            }],
        })
    }

    fn sum(slices: &AllocationSlices) -> i64 {
        slices.slices.iter().flat_map(|slice| &slice.changes).map(|change| change.bytes).sum()
    }

    #[test]
    fn neighbours_merge_when_there_are_too_many() {
        for settles in [false, true] {
            let mut all = AllocationSlices::default();
            for slice in slices(5000, SHORTEST_SLICE.0) {
                all.push(slice);
                if settles {
                    all.settle();
                }
                assert!(all.slices.len() <= MOST_SLICES);
            }
            assert_eq!(sum(&all), 8 * 5000);
            assert!(all.slices.len() >= MOST_SLICES / 2, "{}", all.slices.len());
            assert!(all.slices.windows(2).all(|pair| pair[0].end == pair[1].begin));
            assert_eq!(all.slices[0].begin.0, 0);
            assert_eq!(all.slices.last().unwrap().end.0, 5000 * SHORTEST_SLICE.0);
        }
    }

    #[test]
    fn many_changes_make_slices_longer() {
        let mut all = AllocationSlices::default();
        let keys = 100_000;
        for key in 0..keys {
            all.add_key(SliceKey {
                stack: StackId(key),
                thread: ThreadNumber(1),
                process: ProcessIndex(0),
                task: 0,
                kind: AllocationKind::Block,
                size_class: SizeClass(1),
            });
        }
        for slice in slices(40, SHORTEST_SLICE.0) {
            let changes =
                (0..keys).map(|key| SliceChange { key, count: 1, bytes: 8, ..SliceChange::default() });
            all.push(AllocationSlice { changes: changes.collect(), ..slice });
            assert!(all.changes <= MOST_CHANGES + 3 * keys as usize);
        }
        assert_eq!(sum(&all), 8 * 40 * i64::from(keys));
    }

    #[test]
    fn the_rest_at_the_end_belongs_to_the_last_slice() {
        let mut all = AllocationSlices::default();
        slices(3, SHORTEST_SLICE.0).for_each(|slice| all.push(slice));
        let end = 3 * SHORTEST_SLICE.0;
        let rest = |n: u64| AllocationSlice { begin: Nanos(end), end: Nanos(end + n), changes: Vec::new() };
        all.push(rest(5));
        assert_eq!((all.slices.len(), all.slices[2].end.0), (3, end + 5));
        all.settle();
        all.push(AllocationSlice { begin: Nanos(end + 5), ..rest(9) });
        assert_eq!(all.slices.len(), 4, "what is written does not change");
    }
}
