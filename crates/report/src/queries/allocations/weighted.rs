//! Allocations as samples, so that every view of time also shows allocations.
//!
//! Views count the time of samples. Here the "time" of a sample is the value of a [`Metric`], and its delay is 1: each
//! byte or allocation is one snapshot. No view needs to know where its weights come from.

use super::Errors;
use super::allocator_frames::Outside;
use crate::Metric;
use foldhash::HashMap;
use stackglass_profile::{
    AllocationKind, Frame, Location, LocationId, Nanos, Recording, Sample, StackId, State, Thread,
    ThreadNumber, UNKNOWN_TYPE,
};
use std::sync::Arc;

/// Whether stacks end with the allocated type, as in flame graphs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TypeLeaf {
    /// Stacks end with the caller of the allocator.
    Without,
    /// The innermost frame is the type.
    With,
}

/// All values together are at most this, so that no sum overflows.
const MOST: u64 = i64::MAX as u64 / 2;

/// The recording with its allocations in the place of its samples. With [`Metric::Time`] it is returned as it is.
///
/// The times of the samples are values of the metric, and the delay is 1. Hits are the numbers of independent events:
/// allocations, or samples of bytes. Mappings are left out, and the frames of an allocator that the program itself provides
/// (`#[global_allocator]`). How each process was recorded is kept.
///
/// ```
/// use stackglass_profile::Recording;
/// use stackglass_report::Metric;
/// use stackglass_report::allocation_queries::{TypeLeaf, weighted};
///
/// let bytes = weighted(Recording::default(), Metric::Bytes, TypeLeaf::Without);
/// assert!(bytes.samples.is_empty());
/// ```
pub fn weighted(mut recording: Recording, metric: Metric, leaf: TypeLeaf) -> Recording {
    if metric == Metric::Time {
        return recording;
    }
    recording.samples.clear();
    recording.info.delay = Nanos(1);
    recording.info.kernel_cpu = None;
    let groups = std::mem::take(&mut recording.allocations.groups);
    let errors = Errors::from_allocations(&recording.allocations);
    let mut leaves = Leaves { locations: HashMap::default(), foreign: !recording.has_rust() };
    let mut outside = Outside::from_recording(&recording);
    let mut unknown_thread = None;
    let mut room = MOST;
    for group in groups.iter().filter(|group| group.kind == AllocationKind::Block) {
        let value = metric.of(&group.counts).min(room);
        if value == 0 {
            continue;
        }
        room -= value;
        let blocks = metric.blocks(&group.counts).max(1);
        let hits = errors.recorded(group, blocks);
        let thread = match group.thread {
            ThreadNumber(0) => *unknown_thread.get_or_insert_with(|| {
                recording.threads.push(Thread {
                    process: group.process,
                    tid: 0,
                    name: "unknown".into(),
                    start: Nanos(0),
                    end: None,
                    cpu: Nanos(0),
                    blocked_signal: false,
                });
                ThreadNumber(recording.threads.len() as u32)
            }),
            thread => thread,
        };
        let mut stack = outside.stack(&mut recording, group.stack);
        if leaf == TypeLeaf::With {
            stack = leaves.extended(&mut recording, group.stack, stack);
        }
        recording.push(Sample {
            stack,
            thread,
            task: group.task,
            clock: Nanos(0),
            state: State::Awake,
            cut: None,
            hits: u32::try_from(hits).unwrap_or(u32::MAX),
            time: Nanos(value),
            spread: Nanos(0),
        });
    }
    recording
}

/// Addresses of types, in no module. Programs have no code there.
const TYPES: u64 = u64::MAX / 2;

/// Stacks with types as leaves.
struct Leaves {
    locations: HashMap<Arc<str>, LocationId>,
    /// Types of a program without Rust are foreign frames, as all its other frames are.
    foreign: bool,
}

impl Leaves {
    /// The stack `shown`, with the type of `allocated` as its leaf.
    fn extended(&mut self, recording: &mut Recording, allocated: StackId, shown: StackId) -> StackId {
        let name: Arc<str> = match recording.symbols.allocated_type(allocated) {
            Some(name) => name.clone(),
            None => UNKNOWN_TYPE.into(),
        };
        let (next, foreign) = (self.locations.len() as u64, self.foreign);
        let location = *self.locations.entry(name).or_insert_with_key(|name| {
            let location = Location { module: None, offset: TYPES - next };
            let location = recording.stacks.intern_location(location);
            let frame = Frame { func: name.clone(), line: 0, foreign, ..Frame::unknown(0) };
            recording.symbols.set(location, [frame]);
            location
        });
        recording.stacks.extend(shown, location)
    }
}
