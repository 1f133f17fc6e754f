//! Counts by stack, thread and size class, and the sampled blocks that are alive.
//!
//! All allocations and frees are counted by thread and size class, but only those whose stack was sampled have a group. Each stands for as
//! many as its sample does. At the end, the groups of a thread and size class are scaled to its exact numbers (post-stratification): stacks
//! are estimates, and all sums are exact, also if stacks were lost. So are the peak and its time.

use super::functions::Function;
use foldhash::HashMap;
use stackglass_profile::{
    AllocationCounts, AllocationGroup, AllocationKind, AllocationSampling, ProcessIndex, SizeClass, StackId,
    ThreadNumber,
};

/// Most blocks that are followed.
const MOST_BLOCKS: usize = 1 << 22;

/// A thread, and a class of sizes.
type Stratum = (ThreadNumber, SizeClass);

/// A block that is alive.
#[derive(Clone, Copy)]
struct Block {
    stratum: Stratum,
    /// Its group, and for how many it stands, if it was sampled.
    sampled: Option<(u32, u64)>,
    size: u64,
    tid: u32,
    /// How many its thread had allocated before it.
    number: u64,
}

/// Counts, and which peak `peak_count` and `peak_bytes` are of.
#[derive(Clone, Copy)]
struct AtPeak {
    counts: AllocationCounts,
    peak: u64,
}

impl AtPeak {
    /// Nothing yet: nor was anything alive at the last peak.
    fn new(peak: u64) -> AtPeak {
        AtPeak { counts: AllocationCounts::default(), peak }
    }

    /// Counts that are about to change. What is alive now was alive at the last peak, unless they have changed since.
    fn before_change(&mut self, peak: u64) -> &mut AllocationCounts {
        if self.peak != peak {
            self.peak = peak;
            (self.counts.peak_count, self.counts.peak_bytes) =
                (self.counts.live_count(), self.counts.live_bytes());
        }
        &mut self.counts
    }
}

/// All counts of a recording.
#[derive(Default)]
pub(super) struct Counts {
    /// All allocations and frees, whether sampled or not.
    exact: HashMap<Stratum, AtPeak>,
    /// Allocations whose stack was taken.
    sampled: u64,
    /// Sampled blocks that could not be followed.
    pub unfollowed: u64,
    /// Allocations whose frees cannot be seen.
    pub without_address: u64,
    live_bytes: u64,
    peak_bytes: u64,
    peaks: u64,
    /// When the last peak began, ns.
    pub peak_at: u64,
    groups: Vec<((StackId, ThreadNumber, SizeClass), AtPeak)>,
    index: HashMap<(StackId, ThreadNumber, SizeClass), u32>,
    blocks: HashMap<u64, Block>,
    /// How many blocks each thread has allocated.
    numbers: HashMap<u32, u64>,
}

/// An allocation.
pub(super) struct Allocation {
    pub at: u64,
    pub tid: u32,
    pub block: u64,
    pub size: u64,
    pub replaces: u64,
    pub function: Function,
    pub thread: ThreadNumber,
    /// The stack, and for how many allocations it stands.
    pub sampled: Option<(StackId, u64)>,
}

impl Counts {
    pub(super) fn allocate(&mut self, new: Allocation) {
        self.free(new.replaces);
        // One that was freed unseen.
        self.free(new.block);
        let number = self.numbers.entry(new.tid).or_default();
        *number += 1;
        let number = *number;
        let class = SizeClass::from_size(new.size);
        let stratum = (new.thread, class);
        let exact = self.exact.entry(stratum).or_insert(AtPeak::new(self.peaks)).before_change(self.peaks);
        exact.count += 1;
        exact.bytes = exact.bytes.saturating_add(new.size);
        self.live_bytes = self.live_bytes.saturating_add(new.size);
        let sampled = new.sampled.map(|(stack, weight)| {
            self.sampled += 1;
            (self.add_to_group((stack, new.thread, class), new.size, weight), weight)
        });
        let has_address = new.function != Function::PosixMemalign;
        let block = Block { stratum, sampled, size: new.size, tid: new.tid, number };
        if !has_address || self.blocks.len() >= MOST_BLOCKS {
            self.without_address += u64::from(!has_address);
            self.unfollowed += u64::from(has_address);
            self.count_free(block, false);
            return;
        }
        self.blocks.insert(new.block, block);
        if self.live_bytes > self.peak_bytes {
            (self.peak_bytes, self.peak_at) = (self.live_bytes, new.at);
            self.peaks += 1;
        }
    }

    fn add_to_group(&mut self, key: (StackId, ThreadNumber, SizeClass), size: u64, weight: u64) -> u32 {
        let next = self.groups.len() as u32;
        let group = *self.index.entry(key).or_insert(next);
        if group == next {
            self.groups.push((key, AtPeak::new(self.peaks)));
        }
        let counts = self.groups[group as usize].1.before_change(self.peaks);
        counts.count += weight;
        counts.bytes = counts.bytes.saturating_add(size.saturating_mul(weight));
        group
    }

    /// A block is gone. One that is older than the recording changes nothing.
    pub(super) fn free(&mut self, block: u64) {
        if let Some(block) = self.blocks.remove(&block) {
            let is_temporary = self.numbers.get(&block.tid) == Some(&block.number);
            self.count_free(block, is_temporary);
        }
    }

    fn count_free(&mut self, block: Block, is_temporary: bool) {
        let exact =
            self.exact.entry(block.stratum).or_insert(AtPeak::new(self.peaks)).before_change(self.peaks);
        exact.freed_count += 1;
        exact.freed_bytes = exact.freed_bytes.saturating_add(block.size);
        self.live_bytes = self.live_bytes.saturating_sub(block.size);
        let Some((group, weight)) = block.sampled else { return };
        let counts = self.groups[group as usize].1.before_change(self.peaks);
        counts.freed_count += weight;
        counts.freed_bytes = counts.freed_bytes.saturating_add(block.size.saturating_mul(weight));
        if is_temporary {
            counts.temporary_count += weight;
        }
    }

    /// Bytes of all blocks that are alive.
    pub(super) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Whether there was no allocation.
    pub(super) fn is_empty(&self) -> bool {
        self.exact.is_empty()
    }

    /// The groups, scaled to all allocations, and how they were recorded.
    pub(super) fn finish(mut self, process: ProcessIndex) -> (Vec<AllocationGroup>, AllocationSampling) {
        let peaks = self.peaks;
        let mut sampled: HashMap<Stratum, AllocationCounts> = HashMap::default();
        for ((_, thread, class), group) in &mut self.groups {
            sampled.entry((*thread, *class)).or_default().add(group.before_change(peaks));
        }
        for ((thread, class), exact) in &mut self.exact {
            exact.before_change(peaks);
            if !sampled.contains_key(&(*thread, *class)) {
                // Not one stack was taken.
                self.groups.push(((StackId(0), *thread, *class), *exact));
            }
        }
        let all: u64 = self.exact.values().map(|exact| exact.counts.count).sum();
        let sampling = match self.sampled == all {
            true => AllocationSampling::Every,
            false => AllocationSampling::Stacks(self.sampled as f64 / all.max(1) as f64),
        };
        let groups = self.groups.iter().map(|((stack, thread, size_class), group)| {
            let stratum = (*thread, *size_class);
            let exact = self.exact.get(&stratum).map(|exact| exact.counts).unwrap_or_default();
            let of_samples = sampled.get(&stratum).copied().unwrap_or(exact);
            let counts = scaled(&group.counts, &of_samples, &exact);
            AllocationGroup {
                stack: *stack,
                thread: *thread,
                process,
                task: 0,
                kind: AllocationKind::Block,
                size_class: *size_class,
                counts,
            }
        });
        (groups.collect(), sampling)
    }
}

/// The counts of a group, scaled by what its stratum has in all (`exact`) and in its samples. Blocks that are alive are scaled apart from
/// those that are gone.
fn scaled(
    counts: &AllocationCounts,
    sampled: &AllocationCounts,
    exact: &AllocationCounts,
) -> AllocationCounts {
    let scale = |n: u64, exact: u64, sampled: u64| match sampled {
        0 => 0,
        _ => (n as f64 * exact as f64 / sampled as f64).round() as u64,
    };
    // Where no sampled block is in this state, those that are have the stacks of the others.
    let part = |of: fn(&AllocationCounts) -> u64, whole: fn(&AllocationCounts) -> u64| match of(sampled) {
        0 => scale(whole(counts), of(exact), whole(sampled)),
        _ => scale(of(counts), of(exact), of(sampled)),
    };
    let freed_count = part(|counts| counts.freed_count, |counts| counts.count);
    let freed_bytes = part(|counts| counts.freed_bytes, |counts| counts.bytes);
    AllocationCounts {
        count: freed_count + part(AllocationCounts::live_count, |counts| counts.count),
        bytes: freed_bytes + part(AllocationCounts::live_bytes, |counts| counts.bytes),
        freed_count,
        freed_bytes,
        temporary_count: scale(counts.temporary_count, exact.freed_count, sampled.freed_count),
        peak_count: part(|counts| counts.peak_count, |counts| counts.count),
        peak_bytes: part(|counts| counts.peak_bytes, |counts| counts.bytes),
        ..AllocationCounts::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(block: u64, size: u64, thread: u32, sampled: Option<(u32, u64)>) -> Allocation {
        let sampled = sampled.map(|(stack, weight)| (StackId(stack), weight));
        let (function, thread) = (Function::Malloc, ThreadNumber(thread));
        Allocation { at: block, tid: thread.0, block, size, replaces: 0, function, thread, sampled }
    }

    #[test]
    fn sums_are_exact_by_thread_and_size_and_stacks_are_estimates() {
        let mut counts = Counts::default();
        for block in 0..90 {
            // Each tenth has a stack that stands for five: half of the stacks were lost.
            counts.allocate(new(
                0x1000 + block,
                64,
                1,
                (block % 10 == 0).then_some((1 + block as u32 % 20 / 10, 5)),
            ));
        }
        for block in 0..30 {
            counts.free(0x1000 + block * 3 + 1);
        }
        counts.allocate(new(0x9000, 100, 2, Some((7, 1))));
        counts.allocate(new(0x9100, 5000, 2, None));
        let (groups, sampling) = counts.finish(ProcessIndex(0));
        assert_eq!(sampling, AllocationSampling::Stacks(10.0 / 92.0));
        let of = |stack: u32| groups.iter().find(|group| group.stack == StackId(stack)).unwrap().counts;
        assert_eq!((of(1).count + of(2).count, of(1).bytes + of(2).bytes), (90, 5760));
        assert_eq!((of(7).count, of(7).bytes), (1, 100), "another thread is not scaled");
        assert_eq!((of(0).count, of(0).bytes), (1, 5000), "without a stack");
        assert_eq!(of(1).live_count() + of(2).live_count(), 60);
    }

    /// One block follows the other, so two are alive at most, although each sample stands for ten.
    #[test]
    fn the_peak_is_exact_where_few_stacks_are_taken() {
        let mut counts = Counts::default();
        for block in 0..100 {
            counts.allocate(new(0x1000 + block, 64, 1, (block % 10 == 0).then_some((1, 10))));
            if block > 0 {
                counts.free(0x1000 + block - 1);
            }
        }
        counts.allocate(new(0x9000, 1000, 1, None));
        counts.free(0x9000);
        assert_eq!((counts.live_bytes(), counts.peak_at), (64, 0x9000));
        let (groups, _) = counts.finish(ProcessIndex(0));
        let peak = |stack| {
            let group = groups.iter().find(|group| group.stack == StackId(stack)).unwrap();
            (group.counts.peak_count, group.counts.peak_bytes)
        };
        assert_eq!((peak(1), peak(0)), ((1, 64), (1, 1000)));
    }

    #[test]
    fn frees_and_the_peak_belong_to_their_groups() {
        let mut counts = Counts::default();
        counts.allocate(new(0x1000, 100, 1, Some((1, 1))));
        counts.allocate(new(0x2000, 200, 1, Some((2, 1))));
        counts.free(0x1000);
        counts.free(0x7000);
        counts.allocate(new(0x3000, 8, 1, Some((3, 1))));
        counts.free(0x3000);
        // The address of a block that was freed unseen.
        counts.allocate(new(0x2000, 50, 1, Some((3, 1))));
        assert_eq!((counts.live_bytes(), counts.peak_at), (50, 0x2000));
        let (groups, sampling) = counts.finish(ProcessIndex(0));
        assert_eq!(sampling, AllocationSampling::Every);
        let of = |stack: u32, size| {
            let class = SizeClass::from_size(size);
            groups
                .iter()
                .find(|group| (group.stack, group.size_class) == (StackId(stack), class))
                .unwrap()
                .counts
        };
        assert_eq!((of(1, 100).live_count(), of(1, 100).peak_bytes, of(1, 100).temporary_count), (0, 100, 0));
        assert_eq!((of(2, 200).live_count(), of(2, 200).peak_bytes), (0, 200));
        assert_eq!((of(3, 8).live_count(), of(3, 8).peak_bytes, of(3, 8).temporary_count), (0, 0, 1));
        assert_eq!((of(3, 50).live_count(), of(3, 50).peak_bytes), (1, 0));
    }
}
