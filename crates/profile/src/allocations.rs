//! Allocations: how much was allocated at each stack, how much of it was freed, and what was alive at the peak.
//!
//! The profiled program counts; single allocations are not kept. A recording therefore grows with the number of distinct
//! stacks, not with the number of allocations, and no record is lost when the program allocates fast.

use crate::{AllocationSlices, CountedSlices, Nanos, NotSliced, ProcessIndex, StackId, ThreadNumber};
use std::ops::RangeInclusive;

/// The type of blocks whose type is unknown, in all reports.
pub const UNKNOWN_TYPE: &str = "(unknown)";

/// The name of blocks of unknown type that differ from others in what they begin with.
///
/// ```
/// use stackglass_profile::{is_unknown_type, unknown_that};
///
/// assert_eq!(unknown_that("begins with text"), "(unknown), begins with text");
/// assert!(is_unknown_type("(unknown), begins with text") && is_unknown_type("(unknown)"));
/// ```
pub fn unknown_that(does: &str) -> String {
    format!("{UNKNOWN_TYPE}, {does}")
}

/// The name of blocks of unknown type that begin with text.
pub const UNKNOWN_TEXT: &str = "(unknown), begins with text";

/// Whether a name is that of blocks of unknown type, with or without what they begin with.
pub fn is_unknown_type(name: &str) -> bool {
    name.strip_prefix(UNKNOWN_TYPE).is_some_and(|rest| rest.is_empty() || rest.starts_with(", "))
}

/// The allocations of all processes of a recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allocations {
    /// The processes whose allocations were recorded.
    pub processes: Vec<AllocatingProcess>,
    /// Counts by stack, thread, task, kind and size class. Several groups may have equal keys.
    pub groups: Vec<AllocationGroup>,
    /// The same by slice of time; empty if counters were read at the end only.
    pub slices: AllocationSlices,
    /// If they are those of a part of the time: which one.
    pub part: Option<CountedSlices>,
    /// If nothing is left in a part of the time: why not.
    pub not_sliced: Option<NotSliced>,
}

impl Allocations {
    /// Whether allocations were recorded at all, even if there were none.
    pub fn were_recorded(&self) -> bool {
        !self.processes.is_empty()
    }

    /// The sum of all groups of one kind.
    pub fn total(&self, kind: AllocationKind) -> AllocationCounts {
        let mut total = AllocationCounts::default();
        self.groups.iter().filter(|group| group.kind == kind).for_each(|group| total.add(&group.counts));
        total
    }
}

/// How the allocations of a process were recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct AllocatingProcess {
    /// The process.
    pub process: ProcessIndex,
    /// When the recording of allocations began. Blocks that are older have no record.
    pub begin: Nanos,
    /// When it ended.
    pub end: Nanos,
    /// Which allocations were recorded.
    pub sampling: AllocationSampling,
    /// When the recorded live bytes were highest.
    pub peak_at: Nanos,
    /// Allocations that were not recorded although they should have been, for lack of memory.
    pub lost: u64,
    /// Allocations that were counted without their stack, for lack of memory. Their stack is empty.
    pub without_stack: u64,
    /// Live and resident bytes over time, in order of time.
    pub memory: Vec<MemoryPoint>,
}

/// Which allocations are recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AllocationSampling {
    /// Every allocation.
    Every,
    /// Each allocation with this probability. Counts and bytes are those of recorded allocations, as in Julia.
    Rate(f64),
    /// Each allocation with this probability. Counts and bytes are unbiased estimates for all allocations.
    ScaledRate(f64),
    /// Every allocation, and the stacks of this share of them. Sums by thread and size class are exact. What each stack has of them is an
    /// unbiased estimate.
    Stacks(f64),
    /// One sample in this many bytes on average. Counts and bytes are unbiased estimates for all allocations.
    Bytes(u64),
}

/// Memory of a process at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryPoint {
    /// CLOCK_MONOTONIC.
    pub clock: Nanos,
    /// Bytes of recorded blocks that are alive.
    pub live_bytes: u64,
    /// Resident set size in bytes, as the kernel counts it; 0 if unknown.
    pub resident_bytes: u64,
}

/// What was allocated at one stack by one thread and task, in blocks of similar size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationGroup {
    /// The stack of the allocation. Its innermost frame is the caller of the allocator. 0 if it is unknown.
    pub stack: StackId,
    /// The allocating thread. 0 if it is unknown.
    pub thread: ThreadNumber,
    /// The process of that thread.
    pub process: ProcessIndex,
    /// The async task that was being polled, 0 for none.
    pub task: u64,
    /// Block or mapping.
    pub kind: AllocationKind,
    /// Class of the requested sizes.
    pub size_class: SizeClass,
    /// How much.
    pub counts: AllocationCounts,
}

/// What was allocated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[repr(u8)]
pub enum AllocationKind {
    /// A block of an allocator.
    Block = 0,
    /// An anonymous mapping that the program itself requested from the kernel. It is no part of the totals of blocks.
    Mapping = 1,
}

/// Numbers of allocations. Sizes are those requested, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocationCounts {
    /// Number of allocations. A reallocation is one allocation of the new size.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Number of those that were freed, or ended by a reallocation.
    pub freed_count: u64,
    /// Their bytes.
    pub freed_bytes: u64,
    /// Number of those that were freed before their thread allocated again.
    pub temporary_count: u64,
    /// Number of those that were alive when the process had the most live bytes.
    pub peak_count: u64,
    /// Their bytes.
    pub peak_bytes: u64,
    /// Number of blocks that were alive when the range began, if these are the counts of a part of the time
    /// ([`Allocations::keep`]). Those that were freed may be among them.
    pub older_count: u64,
    /// Their bytes.
    pub older_bytes: u64,
    /// Number of those alive at the end that something still holds, as a heap snapshot of that moment tells
    /// ([`Recording::set_reached`](crate::Recording::set_reached)); 0 if that is unknown.
    pub kept_count: u64,
    /// Their bytes.
    pub kept_bytes: u64,
}

impl AllocationCounts {
    /// Number of allocations that are alive at the end of the recording.
    pub fn live_count(&self) -> u64 {
        self.count.saturating_add(self.older_count).saturating_sub(self.freed_count)
    }

    /// Their bytes.
    pub fn live_bytes(&self) -> u64 {
        self.bytes.saturating_add(self.older_bytes).saturating_sub(self.freed_bytes)
    }

    /// Number of allocations that are alive at the end and that nothing holds, as far as that is known.
    pub fn leaked_count(&self) -> u64 {
        self.live_count().saturating_sub(self.kept_count)
    }

    /// Their bytes.
    pub fn leaked_bytes(&self) -> u64 {
        self.live_bytes().saturating_sub(self.kept_bytes)
    }

    /// Adds other counts.
    pub fn add(&mut self, other: &AllocationCounts) {
        let add = |here: &mut u64, n: u64| *here = here.saturating_add(n);
        add(&mut self.count, other.count);
        add(&mut self.bytes, other.bytes);
        add(&mut self.freed_count, other.freed_count);
        add(&mut self.freed_bytes, other.freed_bytes);
        add(&mut self.temporary_count, other.temporary_count);
        add(&mut self.peak_count, other.peak_count);
        add(&mut self.peak_bytes, other.peak_bytes);
        add(&mut self.older_count, other.older_count);
        add(&mut self.older_bytes, other.older_bytes);
        add(&mut self.kept_count, other.kept_count);
        add(&mut self.kept_bytes, other.kept_bytes);
    }
}

/// A range of block sizes: steps of 8 bytes up to 128, then four steps for each doubling.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Default)]
pub struct SizeClass(pub u8);

impl SizeClass {
    /// The class of a size in bytes.
    ///
    /// ```
    /// use stackglass_profile::SizeClass;
    ///
    /// assert_eq!(SizeClass::from_size(0).sizes(), 0..=0);
    /// assert_eq!(SizeClass::from_size(24).sizes(), 17..=24);
    /// assert_eq!(SizeClass::from_size(129).sizes(), 129..=160);
    /// ```
    pub fn from_size(size: u64) -> SizeClass {
        if size <= 128 {
            return SizeClass(size.div_ceil(8) as u8);
        }
        let below = size - 1;
        let doubling = 63 - below.leading_zeros();
        let quarter = below >> (doubling - 2) & 3;
        SizeClass((17 + (doubling - 7) * 4 + quarter as u32) as u8)
    }

    /// The sizes of this class in bytes.
    pub fn sizes(self) -> RangeInclusive<u64> {
        let class = u64::from(self.0);
        match class {
            0 => 0..=0,
            1..=16 => (class - 1) * 8 + 1..=class * 8,
            _ => {
                let (doubling, quarter) = ((class - 17) / 4 + 7, (class - 17) % 4);
                let step = 1u128 << (doubling - 2);
                let low = (4 + u128::from(quarter)) * step;
                let clamp = |n: u128| u64::try_from(n).unwrap_or(u64::MAX);
                clamp(low + 1)..=clamp(low + step)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_in_one_class() {
        let mut next = 0;
        for class in 0..=SizeClass::from_size(u64::MAX).0 {
            let sizes = SizeClass(class).sizes();
            assert_eq!(*sizes.start(), next, "class {class}");
            assert_eq!(SizeClass::from_size(*sizes.start()), SizeClass(class));
            assert_eq!(SizeClass::from_size(*sizes.end()), SizeClass(class));
            next = sizes.end().wrapping_add(1);
        }
        assert_eq!(next, 0, "the last class ends with the largest number");
    }
}
