//! Allocations: by type, site and other keys, over time, and as samples of other views.
//!
//! * `allocator_frames`: what of a stack is the program's own allocator;
//! * `site`: the frame that is the reason for an allocation;
//! * `table`: sums by a key;
//! * `of_type`: the allocations of one type;
//! * `memory`: live and resident bytes over time;
//! * `weighted`: a recording whose samples are allocations, for every other view.

pub(crate) mod allocator_frames;
pub(crate) mod memory;
mod of_type;
pub(crate) mod site;
mod table;
mod weighted;

pub use of_type::{NamedTypes, callers_of_types, keep_types, types_named};
pub use site::site_frames;
pub use table::{AllocationKey, AllocationRow, AllocationTable};
pub use weighted::{TypeLeaf, weighted};

use foldhash::HashMap;
use stackglass_profile::{AllocationGroup, AllocationSampling, Allocations, ProcessIndex};

/// Whether every allocation of all processes was recorded, so that numbers have no sampling error.
pub fn are_exact(allocations: &Allocations) -> bool {
    allocations.processes.iter().all(|process| process.sampling == AllocationSampling::Every)
}

/// Whether numbers are estimates for all allocations.
pub(crate) fn are_estimates(allocations: &Allocations) -> bool {
    let is_estimate =
        |sampling| matches!(sampling, AllocationSampling::ScaledRate(_) | AllocationSampling::Bytes(_));
    allocations.processes.iter().any(|process| is_estimate(process.sampling))
}

/// How sure the sums of a recording are whose allocations were sampled.
pub(crate) struct Errors {
    /// By process: how its allocations were recorded.
    samplings: HashMap<ProcessIndex, AllocationSampling>,
}

impl Errors {
    pub(crate) fn from_allocations(allocations: &Allocations) -> Errors {
        let samplings = allocations.processes.iter().map(|process| (process.process, process.sampling));
        Errors { samplings: samplings.collect() }
    }

    /// The variance of the bytes of a group. It is exact for blocks of one size that are much smaller than the sampling
    /// interval, and too large for larger ones.
    pub(crate) fn variance(&self, group: &AllocationGroup) -> f64 {
        let (count, bytes) = (group.counts.count as f64, group.counts.bytes as f64);
        match self.samplings.get(&group.process) {
            // Of count × rate recorded ones, each stands for mean ÷ rate bytes, and is recorded or not (Horvitz and Thompson).
            Some(AllocationSampling::ScaledRate(rate)) if count > 0.0 => {
                bytes * bytes / count * (1.0 - rate) / rate.max(f64::MIN_POSITIVE)
            }
            Some(AllocationSampling::Bytes(interval)) => bytes * (*interval).max(1) as f64,
            _ => 0.0,
        }
    }

    /// Of that many blocks of a group, those that were recorded.
    pub(crate) fn recorded(&self, group: &AllocationGroup, blocks: u64) -> u64 {
        let part = match self.samplings.get(&group.process) {
            Some(AllocationSampling::ScaledRate(rate)) => blocks as f64 * rate,
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

/// The relative standard error of an estimate of this many bytes with this variance.
pub(crate) fn relative_error(bytes: u64, variance: f64) -> f64 {
    if bytes == 0 { 0.0 } else { variance.sqrt() / bytes as f64 }
}
