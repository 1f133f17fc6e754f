//! Reads the tables of one process: nodes become stacks, counters become groups.
//!
//! The tables are input from a program: numbers are checked before they are used as indices.

use stackglass_profile::{
    AllocatingProcess, AllocationCounts, AllocationGroup, AllocationKind, AllocationSampling, Allocations,
    MemoryPoint, Nanos, ProcessIndex, Recorder, SizeClass, SliceKey, StackId, ThreadNumber,
};
use stackglass_wire::heap::{self, CounterEntry, HeapSampling, HeapTables, MAX_COUNTERS};
use std::sync::atomic::Ordering::*;

mod followed;
mod identities;
mod modules;

pub use followed::Followed;
pub use identities::Identities;

/// What counts are if each allocation was recorded with a probability.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RateCounts {
    /// Those of the recorded allocations, as in Julia. Recordings with different rates add up.
    OfRecorded,
    /// Estimates for all allocations.
    OfAll,
}

/// Adds the allocations of a process to the recording. `end` is when its recording ended.
pub fn add(
    tables: &HeapTables,
    rate_counts: RateCounts,
    end: Nanos,
    memory: Vec<MemoryPoint>,
    recorder: &mut Recorder,
) -> Identities {
    let mut identities = Identities::default();
    add_known(tables, rate_counts, end, memory, recorder, &mut identities, &mut |_, _, _, _| ());
    identities
}

/// As [`add`], with what is known of the process already. `each` gets the recording, and the key and counts of each counter.
fn add_known(
    tables: &HeapTables,
    rate_counts: RateCounts,
    end: Nanos,
    mut memory: Vec<MemoryPoint>,
    recorder: &mut Recorder,
    identities: &mut Identities,
    each: &mut dyn FnMut(u32, &mut Allocations, SliceKey, &AllocationCounts),
) {
    let page = tables.page();
    let begin = Nanos(page.begin_ns.load(Relaxed));
    let Some(process) = identities.read_all(tables, recorder) else { return };
    let sampling = sampling_of(tables, rate_counts);
    let scale = Scale::from_sampling(sampling);
    let last_peak = page.peak_number().load(Acquire);
    let counters = page.counters().load(Acquire).min(MAX_COUNTERS as u32);
    let allocations = &mut recorder.recording_mut().allocations;
    let first = allocations.groups.len();
    for number in 1..counters {
        let entry = tables.counter(number);
        let counts = counts(entry, last_peak, &scale);
        if counts.count == 0 {
            continue;
        }
        let key = key_of(entry, process, identities.of(entry));
        each(number, allocations, key, &counts);
        let SliceKey { stack, thread, process, task, kind, size_class } = key;
        allocations.groups.push(AllocationGroup { stack, thread, process, task, kind, size_class, counts });
    }
    let (end, mut peak_at) = (end.max(begin), Nanos(page.peak_at_ns().load(Relaxed)).max(begin));
    if end_is_peak(&mut allocations.groups[first..]) {
        peak_at = end;
    }
    memory.iter_mut().for_each(|point| point.live_bytes = scale.bytes(point.live_bytes));
    allocations.processes.push(AllocatingProcess {
        process,
        begin,
        end,
        sampling,
        peak_at,
        lost: page.lost().load(Relaxed),
        without_stack: page.without_stack().load(Relaxed),
        memory,
    });
}

/// What a counter counts.
fn key_of(entry: &CounterEntry, process: ProcessIndex, (stack, thread): (StackId, ThreadNumber)) -> SliceKey {
    let class = entry.class.load(Relaxed);
    SliceKey {
        stack,
        thread,
        process,
        task: entry.task.load(Relaxed),
        kind: if heap::is_mapping_class(class) { AllocationKind::Mapping } else { AllocationKind::Block },
        size_class: SizeClass(class as u8),
    }
}

/// If more is alive at the end than at the peak, the end is the peak: threads keep the last small changes to themselves, and
/// scaled counts are estimates. Returns whether it is.
pub fn end_is_peak(groups: &mut [AllocationGroup]) -> bool {
    let blocks = |group: &&AllocationGroup| group.kind == AllocationKind::Block;
    let sum = |of: fn(&AllocationCounts) -> u64| -> u64 {
        groups.iter().filter(blocks).map(|group| of(&group.counts)).fold(0, u64::saturating_add)
    };
    if sum(AllocationCounts::live_bytes) <= sum(|counts| counts.peak_bytes) {
        return false;
    }
    for group in groups {
        let counts = &mut group.counts;
        (counts.peak_count, counts.peak_bytes) = (counts.live_count(), counts.live_bytes());
    }
    true
}

/// How the allocations of a process are recorded.
pub fn sampling_of(tables: &HeapTables, rate_counts: RateCounts) -> AllocationSampling {
    let page = tables.page();
    match HeapSampling::from_number(page.sampling.load(Relaxed)) {
        HeapSampling::Rate => {
            let rate = f64::from_bits(page.parameter.load(Relaxed)).clamp(0.0, 1.0);
            match rate_counts {
                RateCounts::OfRecorded => AllocationSampling::Rate(rate),
                RateCounts::OfAll => AllocationSampling::ScaledRate(rate),
            }
        }
        HeapSampling::Bytes => AllocationSampling::Bytes(page.parameter.load(Relaxed)),
        HeapSampling::Every | HeapSampling::Off => AllocationSampling::Every,
    }
}

/// A smaller rate records nothing in a lifetime; the numbers of a page may be anything.
const LEAST_RATE: f64 = 1e-12;

/// What a number of recorded allocations or bytes stands for.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    count: f64,
    bytes: f64,
}

impl Scale {
    /// For allocations that were recorded in this way.
    pub fn from_sampling(sampling: AllocationSampling) -> Scale {
        match sampling {
            AllocationSampling::Every | AllocationSampling::Rate(_) | AllocationSampling::Stacks(_) => {
                Scale { count: 1.0, bytes: 1.0 }
            }
            // Horvitz and Thompson: each recorded one stands for those that were left out as well.
            AllocationSampling::ScaledRate(rate) => {
                let factor = 1.0 / rate.max(LEAST_RATE);
                Scale { count: factor, bytes: factor }
            }
            // The recorder has weighted them.
            AllocationSampling::Bytes(_) => Scale { count: 1.0 / heap::COUNT_SCALE as f64, bytes: 1.0 },
        }
    }

    /// That many allocations, in units of the recorder.
    pub fn count(&self, n: u64) -> u64 {
        scaled(n, self.count)
    }

    /// That many bytes, in units of the recorder.
    pub fn bytes(&self, n: u64) -> u64 {
        scaled(n, self.bytes)
    }
}

fn scaled(n: u64, factor: f64) -> u64 {
    if factor == 1.0 || n == 0 { n } else { (n as f64 * factor).round() as u64 }
}

fn counts(entry: &CounterEntry, last_peak: u32, scale: &Scale) -> AllocationCounts {
    let (count, bytes) = (entry.count.load(Relaxed), entry.bytes.load(Relaxed));
    let (freed, freed_bytes) = (entry.freed_count.load(Relaxed), entry.freed_bytes.load(Relaxed));
    let (others, others_bytes) = (entry.others_count.load(Relaxed), entry.others_bytes.load(Relaxed));
    let own_peak = if entry.saved_for.load(Relaxed) == last_peak {
        (entry.peak_count.load(Relaxed), entry.peak_bytes.load(Relaxed))
    } else {
        (count.wrapping_sub(freed) as i64, bytes.wrapping_sub(freed_bytes) as i64)
    };
    let others_peak = if entry.others_saved_for.load(Relaxed) == last_peak {
        (entry.others_peak_count.load(Relaxed), entry.others_peak_bytes.load(Relaxed))
    } else {
        (others as i64, others_bytes as i64)
    };
    let not_negative = |n: i64| u64::try_from(n).unwrap_or(0);
    let all = if count == 0 { 0 } else { scale.count(count).max(1) };
    let live = scale.count(count.saturating_sub(freed.saturating_add(others))).min(all);
    let all_bytes = scale.bytes(bytes);
    AllocationCounts {
        count: all,
        bytes: all_bytes,
        freed_count: all - live,
        freed_bytes: scale.bytes(freed_bytes.saturating_add(others_bytes).min(bytes)).min(all_bytes),
        temporary_count: scale.count(entry.temporary_count.load(Relaxed)).min(all - live),
        peak_count: scale.count(not_negative(own_peak.0.wrapping_sub(others_peak.0))).min(all),
        peak_bytes: scale.bytes(not_negative(own_peak.1.wrapping_sub(others_peak.1))).min(all_bytes),
        ..AllocationCounts::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The program stores numbers of classes; the recording reads them as its own.
    #[test]
    fn programs_and_recordings_have_the_same_size_classes() {
        let powers = (0..38).flat_map(|bits| (0..9).map(move |n| (1u64 << bits) + n * (1 << bits) / 9));
        for size in (0..2000).chain(powers).flat_map(|size| [size.saturating_sub(1), size, size + 1]) {
            assert_eq!(heap::size_class(size), u32::from(SizeClass::from_size(size).0), "{size}");
        }
    }
}
