//! Allocations: by type, site and other keys, over time, and as samples of other views.
//!
//! * `allocator_frames`: what of a stack is the program's own allocator;
//! * `site`: the frame that is the reason for an allocation;
//! * `table`: sums by a key;
//! * `memory`: live and resident bytes over time;
//! * `weighted`: a recording whose samples are allocations, for every other view.

pub(crate) mod allocator_frames;
pub(crate) mod memory;
pub(crate) mod site;
mod table;
mod weighted;

pub use site::site_frames;
pub use table::{AllocationKey, AllocationRow, AllocationTable};
pub use weighted::{TypeLeaf, weighted};

use stackglass_profile::{AllocationSampling, Allocations};

/// Whether every allocation of all processes was recorded, so that numbers have no sampling error.
pub fn are_exact(allocations: &Allocations) -> bool {
    allocations.processes.iter().all(|process| process.sampling == AllocationSampling::Every)
}

/// The largest sampling interval in bytes, if allocations were sampled by bytes.
pub(crate) fn byte_interval(allocations: &Allocations) -> Option<u64> {
    let intervals = allocations.processes.iter().filter_map(|process| match process.sampling {
        AllocationSampling::Bytes(n) => Some(n.max(1)),
        AllocationSampling::Every | AllocationSampling::Rate(_) => None,
    });
    intervals.max()
}

/// The relative standard error of an estimate of this many bytes, sampled once in each interval. It is exact for blocks much
/// smaller than the interval, and too large for others.
pub(crate) fn relative_error(bytes: u64, interval: u64) -> f64 {
    if bytes == 0 { 0.0 } else { (interval as f64 / bytes as f64).sqrt() }
}
