//! Counts by stack, thread and size class, and the sampled blocks that are alive.
//!
//! All allocations are counted by thread and size class, but only those whose stack was sampled have a group. Each stands for as many as its
//! sample does. At the end, the groups of a thread and size class are scaled to its exact numbers (post-stratification): stacks are estimates,
//! and all sums are exact, also if stacks were lost.

use super::functions::Function;
use foldhash::HashMap;
use stackglass_profile::{
    AllocationCounts, AllocationGroup, AllocationKind, AllocationSampling, ProcessIndex, SizeClass, StackId,
    ThreadNumber,
};

/// Most sampled blocks that are followed.
const MOST_BLOCKS: usize = 1 << 22;

/// A sampled block that is alive.
#[derive(Clone, Copy)]
struct Block {
    group: u32,
    size: u64,
    weight: u64,
    tid: u32,
    /// How many its thread had allocated before it.
    number: u64,
}

/// The counts of a group, and which peak `peak_count` and `peak_bytes` are of.
struct Group {
    key: (StackId, ThreadNumber, SizeClass),
    counts: AllocationCounts,
    peak: u64,
}

impl Group {
    /// The counts are about to change: what is alive now was alive at the last peak, unless they have changed since.
    fn before_change(&mut self, peak: u64) {
        if self.peak != peak {
            self.peak = peak;
            (self.counts.peak_count, self.counts.peak_bytes) =
                (self.counts.live_count(), self.counts.live_bytes());
        }
    }
}

/// All counts of a recording.
#[derive(Default)]
pub(super) struct Counts {
    /// Number and bytes of all allocations, whether sampled or not.
    exact: HashMap<(ThreadNumber, SizeClass), (u64, u64)>,
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
    groups: Vec<Group>,
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
        let class = SizeClass::from_size(new.size);
        let exact = self.exact.entry((new.thread, class)).or_default();
        *exact = (exact.0 + 1, exact.1.saturating_add(new.size));
        let number = self.numbers.entry(new.tid).or_default();
        *number += 1;
        let number = *number;
        let Some((stack, weight)) = new.sampled else { return };
        self.sampled += 1;
        let key = (stack, new.thread, class);
        let next = self.groups.len() as u32;
        let group = *self.index.entry(key).or_insert(next);
        if group == next {
            self.groups.push(Group { key, counts: AllocationCounts::default(), peak: self.peaks });
        }
        let slot = &mut self.groups[group as usize];
        slot.before_change(self.peaks);
        let bytes = new.size.saturating_mul(weight);
        slot.counts.count += weight;
        slot.counts.bytes += bytes;
        let has_address = new.function != Function::PosixMemalign;
        self.without_address += u64::from(!has_address);
        if !has_address || self.blocks.len() >= MOST_BLOCKS {
            self.unfollowed += u64::from(has_address);
            slot.counts.freed_count += weight;
            slot.counts.freed_bytes += bytes;
            return;
        }
        self.blocks.insert(new.block, Block { group, size: new.size, weight, tid: new.tid, number });
        self.live_bytes += bytes;
        if self.live_bytes > self.peak_bytes {
            (self.peak_bytes, self.peak_at) = (self.live_bytes, new.at);
            self.peaks += 1;
        }
    }

    /// A block is gone. One that was not sampled, or is older than the recording, changes nothing.
    pub(super) fn free(&mut self, block: u64) {
        let Some(block) = self.blocks.remove(&block) else { return };
        let bytes = block.size.saturating_mul(block.weight);
        self.live_bytes -= bytes;
        let group = &mut self.groups[block.group as usize];
        group.before_change(self.peaks);
        group.counts.freed_count += block.weight;
        group.counts.freed_bytes += bytes;
        if self.numbers.get(&block.tid) == Some(&block.number) {
            group.counts.temporary_count += block.weight;
        }
    }

    /// Bytes that are alive, as far as the samples tell.
    pub(super) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Whether there was no allocation.
    pub(super) fn is_empty(&self) -> bool {
        self.exact.is_empty()
    }

    /// The groups, scaled to all allocations, and how they were recorded.
    pub(super) fn finish(mut self, process: ProcessIndex) -> (Vec<AllocationGroup>, AllocationSampling) {
        let mut sampled: HashMap<(ThreadNumber, SizeClass), (u64, u64)> = HashMap::default();
        for group in &mut self.groups {
            group.before_change(self.peaks);
            let sums = sampled.entry((group.key.1, group.key.2)).or_default();
            *sums = (sums.0 + group.counts.count, sums.1 + group.counts.bytes);
        }
        for ((thread, class), (count, bytes)) in &self.exact {
            if !sampled.contains_key(&(*thread, *class)) {
                // Not one stack was taken.
                let counts = AllocationCounts { count: *count, bytes: *bytes, ..AllocationCounts::default() };
                self.groups.push(Group { key: (StackId(0), *thread, *class), counts, peak: self.peaks });
            }
        }
        let all: u64 = self.exact.values().map(|(count, _)| count).sum();
        let sampling = match self.sampled == all {
            true => AllocationSampling::Every,
            false => AllocationSampling::ScaledRate(self.sampled as f64 / all.max(1) as f64),
        };
        let factor = |all: u64, sampled: u64| if sampled == 0 { 1.0 } else { all as f64 / sampled as f64 };
        let groups = self.groups.iter().map(|group| {
            let (stack, thread, size_class) = group.key;
            let stratum = (thread, size_class);
            let exact = self.exact.get(&stratum).copied().unwrap_or_default();
            let of_samples = sampled.get(&stratum).copied().unwrap_or(exact);
            let (by_count, by_bytes) = (factor(exact.0, of_samples.0), factor(exact.1, of_samples.1));
            let count = |n: u64| (n as f64 * by_count).round() as u64;
            let bytes = |n: u64| (n as f64 * by_bytes).round() as u64;
            let counts = AllocationCounts {
                count: count(group.counts.count),
                bytes: bytes(group.counts.bytes),
                freed_count: count(group.counts.freed_count),
                freed_bytes: bytes(group.counts.freed_bytes),
                temporary_count: count(group.counts.temporary_count),
                peak_count: count(group.counts.peak_count),
                peak_bytes: bytes(group.counts.peak_bytes),
                kept_count: 0,
                kept_bytes: 0,
            };
            AllocationGroup {
                stack,
                thread,
                process,
                task: 0,
                kind: AllocationKind::Block,
                size_class,
                counts,
            }
        });
        (groups.collect(), sampling)
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
        counts.allocate(new(0x9000, 100, 2, Some((7, 1))));
        counts.allocate(new(0x9100, 5000, 2, None));
        let (groups, sampling) = counts.finish(ProcessIndex(0));
        assert_eq!(sampling, AllocationSampling::ScaledRate(10.0 / 92.0));
        let of = |stack: u32| groups.iter().find(|group| group.stack == StackId(stack)).unwrap().counts;
        assert_eq!((of(1).count, of(1).bytes, of(2).count), (50, 3200, 40));
        assert_eq!((of(7).count, of(7).bytes), (1, 100), "another thread is not scaled");
        assert_eq!((of(0).count, of(0).bytes), (1, 5000), "without a stack");
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
