//! Which samples a report counts: by state, thread, task and frame.
//!
//! Verbs select first and report then, so that the same flags count the same samples in every report.

use crate::Pick;
use crate::state_filter::StateFilter;
use stackglass_profile::{Frame, LocationId, Nanos, Recording, Sample};
use std::fmt;

/// A selection of samples.
///
/// ```
/// use stackglass_profile::Recording;
/// use stackglass_report::Selection;
/// use stackglass_report::call_tree::StateFilter;
///
/// let mut recording = Recording::default();
/// Selection::new(StateFilter::Awake).threads(2).keep_in(&mut recording);
/// assert!(recording.samples.is_empty());
/// ```
#[derive(Default)]
pub struct Selection {
    states: StateFilter,
    threads: Pick,
    tasks: Pick,
    frame: Option<Test>,
}

/// A predicate on frames.
type Test = Box<dyn Fn(&Frame) -> bool>;

impl Selection {
    /// All samples in these states.
    pub fn new(states: StateFilter) -> Selection {
        Selection { states, ..Selection::default() }
    }

    /// Only samples of these threads, by number.
    pub fn threads(self, threads: impl Into<Pick>) -> Selection {
        Selection { threads: threads.into(), ..self }
    }

    /// Only samples of these tasks, by id.
    pub fn tasks(self, tasks: impl Into<Pick>) -> Selection {
        Selection { tasks: tasks.into(), ..self }
    }

    /// Only samples with such a frame on their stack.
    pub fn with_frame(self, test: impl Fn(&Frame) -> bool + 'static) -> Selection {
        Selection { frame: Some(Box::new(test)), ..self }
    }

    /// Removes all other samples from a recording.
    pub fn keep_in(&self, recording: &mut Recording) {
        let stacks = self.frame.as_ref().map(|test| stacks_with(recording, test));
        let kept: Vec<Sample> = recording
            .samples
            .iter()
            .filter(|sample| {
                self.states.has_state(sample.state)
                    && self.threads.has(sample.thread.0.into())
                    && (self.tasks == Pick::All || self.tasks.has(recording.task_of(sample).0))
                    && stacks.as_ref().is_none_or(|stacks| stacks[sample.stack.0 as usize])
            })
            .copied()
            .collect();
        recording.samples = kept;
    }
}

/// Makes reports on counts count time in this unit: with a delay of one nanosecond, each sample counts its exact time.
/// Returns false, and changes nothing, if samples have no times.
pub fn count_time(recording: &mut Recording, unit: Nanos) -> bool {
    let timed = recording.info.delay.0 > 0;
    if timed {
        recording.info.delay = unit;
    }
    timed
}

/// By stack: whether it has a frame that passes the test.
fn stacks_with(recording: &Recording, test: &Test) -> Vec<bool> {
    let frames: Vec<bool> = recording.symbols.frames().iter().map(test).collect();
    let has_frame = |location: LocationId| {
        recording.symbols.frame_indices(location).iter().any(|frame| frames[*frame as usize])
    };
    let mut stacks = vec![false; recording.stacks.nodes().len() + 1];
    for (index, (caller, location)) in recording.stacks.nodes().iter().enumerate() {
        stacks[index + 1] = stacks[caller.0 as usize] || has_frame(*location);
    }
    stacks
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selection")
            .field("states", &self.states)
            .field("threads", &self.threads)
            .field("tasks", &self.tasks)
            .finish_non_exhaustive()
    }
}
