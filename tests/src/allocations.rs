//! Sums over the allocations of a recording, for assertions.

use stackglass_profile::{AllocationCounts, Recording};

/// The allocations of all stacks that contain this function.
pub fn allocations_below(recording: &Recording, function: &str) -> AllocationCounts {
    let mut total = AllocationCounts::default();
    for group in &recording.allocations.groups {
        let mut locations = recording.stacks.walk(group.stack);
        if locations.any(|at| recording.symbols.frames_of(at).any(|frame| &*frame.func == function)) {
            total.add(&group.counts);
        }
    }
    total
}
