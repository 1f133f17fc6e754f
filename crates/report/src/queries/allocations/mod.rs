//! Allocations: by type, site and other keys, over time, and as samples of other views.
//!
//! * `allocator_frames`: what of a stack is the program's own allocator;
//! * `site`: the frame that is the reason for an allocation;
//! * `origins`: the rows to which allocations belong, and the stacks that are shown of them;
//! * `table`: sums by a key;
//! * `of_type`: the allocations of one type;
//! * `memory`: live and resident bytes over time;
//! * `weighted`: a recording whose samples are allocations, for every other view.

pub(crate) mod allocator_frames;
pub(crate) mod memory;
mod of_type;
mod origins;
pub(crate) mod site;
mod table;
mod weighted;

pub use of_type::{NamedTypes, callers_of_types, keep_types, types_named};
pub(crate) use origins::process_name;
pub use origins::{AllocationOrigin, AllocationOrigins, AllocationSource};
pub use site::site_frames;
pub use table::{AllocationKey, AllocationRow, AllocationTable};
pub use weighted::{TypeLeaf, weighted};

use foldhash::HashMap;
use stackglass_profile::{
    AllocationGroup, AllocationKind, AllocationSampling, Allocations, ProcessIndex, SizeClass, ThreadNumber,
};

/// Whether every allocation of all processes was recorded, so that numbers have no sampling error.
pub fn are_exact(allocations: &Allocations) -> bool {
    allocations.processes.iter().all(|process| process.sampling == AllocationSampling::Every)
}

/// Whether numbers are estimates for all allocations.
pub(crate) fn are_estimates(allocations: &Allocations) -> bool {
    use AllocationSampling::{Bytes, ScaledRate, Stacks};
    let is_estimate = |sampling| matches!(sampling, ScaledRate(_) | Stacks(_) | Bytes(_));
    allocations.processes.iter().any(|process| is_estimate(process.sampling))
}

/// How sure the sums of a recording are whose allocations were sampled.
pub(crate) struct Errors {
    /// By process: how its allocations were recorded.
    samplings: HashMap<ProcessIndex, AllocationSampling>,
    /// Exact numbers of allocations, where only stacks were sampled.
    strata: HashMap<Stratum, u64>,
}

/// Allocations of which is known how many there were.
type Stratum = (ProcessIndex, ThreadNumber, SizeClass);

/// The variance of a sum of groups.
#[derive(Default)]
pub(crate) struct Variance {
    /// Of groups that were sampled independently of each other.
    independent: f64,
    /// Number and bytes of the others, which share the exact number of their stratum.
    shares: HashMap<Stratum, (f64, f64)>,
}

impl Errors {
    pub(crate) fn from_allocations(allocations: &Allocations) -> Errors {
        let samplings = allocations.processes.iter().map(|process| (process.process, process.sampling));
        let mut errors = Errors { samplings: samplings.collect(), strata: HashMap::default() };
        for group in &allocations.groups {
            if group.kind == AllocationKind::Block
                && let Some(AllocationSampling::Stacks(_)) = errors.samplings.get(&group.process)
            {
                *errors.strata.entry(stratum(group)).or_default() += group.counts.count;
            }
        }
        errors
    }

    /// Adds a group to a sum. The variance of its bytes is exact for blocks of one size that are much smaller than the sampling
    /// interval, and too large for larger ones.
    pub(crate) fn add(&self, variance: &mut Variance, group: &AllocationGroup) {
        let (count, bytes) = (group.counts.count as f64, group.counts.bytes as f64);
        match self.samplings.get(&group.process) {
            Some(AllocationSampling::ScaledRate(rate)) => {
                variance.independent += of_rate(count, bytes, *rate);
            }
            Some(AllocationSampling::Bytes(interval)) => {
                variance.independent += bytes * (*interval).max(1) as f64;
            }
            Some(AllocationSampling::Stacks(_)) => {
                let share = variance.shares.entry(stratum(group)).or_default();
                (share.0, share.1) = (share.0 + count, share.1 + bytes);
            }
            _ => {}
        }
    }

    /// The variance of the bytes of a sum. A sum of whole strata has none.
    pub(crate) fn of_sum(&self, variance: &Variance) -> f64 {
        let of_share = |(stratum, (count, bytes)): (&Stratum, &(f64, f64))| {
            let Some(AllocationSampling::Stacks(rate)) = self.samplings.get(&stratum.0) else { return 0.0 };
            let all = self.strata.get(stratum).copied().unwrap_or(0) as f64;
            of_rate(*count, *bytes, *rate) * (1.0 - count / all.max(1.0)).max(0.0)
        };
        variance.independent + variance.shares.iter().map(of_share).sum::<f64>()
    }

    /// Of that many blocks of a group, those that were recorded.
    pub(crate) fn recorded(&self, group: &AllocationGroup, blocks: u64) -> u64 {
        let part = match self.samplings.get(&group.process) {
            Some(AllocationSampling::ScaledRate(rate) | AllocationSampling::Stacks(rate)) => {
                blocks as f64 * rate
            }
            // Of estimated blocks, only one in each interval of bytes was seen.
            Some(AllocationSampling::Bytes(interval)) => {
                let average = group.counts.bytes as f64 / group.counts.count.max(1) as f64;
                blocks as f64 * average / (*interval).max(1) as f64
            }
            _ => return blocks,
        };
        (part.round() as u64).clamp(1, blocks.max(1))
    }
}

fn stratum(group: &AllocationGroup) -> Stratum {
    (group.process, group.thread, group.size_class)
}

/// The variance of bytes of allocations that are recorded with a probability (Horvitz and Thompson): of count × rate recorded ones, each stands
/// for mean ÷ rate bytes, and is recorded or not.
fn of_rate(count: f64, bytes: f64, rate: f64) -> f64 {
    if count > 0.0 { bytes * bytes / count * (1.0 - rate) / rate.max(f64::MIN_POSITIVE) } else { 0.0 }
}

/// The relative standard error of an estimate of this many bytes with this variance.
pub(crate) fn relative_error(bytes: u64, variance: f64) -> f64 {
    if bytes == 0 { 0.0 } else { variance.sqrt() / bytes as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_profile::{AllocatingProcess, AllocationCounts, Nanos, StackId};

    /// All of a thread's blocks of one size are counted. How many of them a stack has is known from one in ten.
    #[test]
    fn exact_sums_have_no_error_and_their_parts_have() {
        let group = |stack, thread, count| AllocationGroup {
            stack: StackId(stack),
            thread: ThreadNumber(thread),
            process: ProcessIndex(0),
            task: 0,
            kind: AllocationKind::Block,
            size_class: SizeClass::from_size(8),
            counts: AllocationCounts { count, bytes: 8 * count, ..AllocationCounts::default() },
        };
        let process = AllocatingProcess {
            process: ProcessIndex(0),
            begin: Nanos(0),
            end: Nanos(1),
            sampling: AllocationSampling::Stacks(0.1),
            peak_at: Nanos(0),
            lost: 0,
            without_stack: 0,
            memory: Vec::new(),
        };
        let groups = vec![group(1, 1, 300), group(2, 1, 700), group(1, 2, 50)];
        let allocations = Allocations { groups, processes: vec![process], ..Allocations::default() };
        let errors = Errors::from_allocations(&allocations);
        let of = |groups: &[usize]| {
            let (mut variance, mut bytes) = (Variance::default(), 0);
            for &index in groups {
                errors.add(&mut variance, &allocations.groups[index]);
                bytes += allocations.groups[index].counts.bytes;
            }
            relative_error(bytes, errors.of_sum(&variance))
        };
        assert_eq!((of(&[0, 1, 2]), of(&[0, 1]), of(&[2])), (0.0, 0.0, 0.0));
        // Of 1000 blocks, 100 were drawn, and 30 % of them are of stack 1: a binomial share, of a finite number.
        let expected = (0.3 * 0.7 / 100.0 * 0.9f64).sqrt() / 0.3;
        assert!((of(&[0]) / expected - 1.0).abs() < 1e-9 && (of(&[0, 2]) - of(&[0])).abs() < 0.03);
        assert!((of(&[1]) / (0.3 * 0.7 / 100.0 * 0.9f64).sqrt() * 0.7 - 1.0).abs() < 1e-9);
    }
}
