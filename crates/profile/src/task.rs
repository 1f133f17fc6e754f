//! Async tasks: what they are called and where they were made.

use crate::{Nanos, ProcessIndex, TaskId};
use std::sync::Arc;

/// Bits of a task's id that its own process gave it; the process's index stands above them.
const OWN_BITS: u32 = 40;

/// Path of the module that stands in stacks of waiting tasks: they have no code. Offset 0 is their leaf, [`WAITING`]; other
/// offsets are ids of tasks, of which those that have name and place in common share one. [`Recording::name_tasks`] makes
/// the frames.
pub const TASKS_MODULE: &str = "[tasks]";

/// Function name of the leaf of a waiting task. What it waits for would stand above it.
pub const WAITING: &str = "[waiting]";

/// An async task that was sampled. Samples may also be of tasks that are not listed: those have no name.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its id in samples.
    pub id: TaskId,
    /// Its process.
    pub process: ProcessIndex,
    /// What the program calls it.
    pub name: Arc<str>,
    /// Source file of the place where it was made; empty if not known.
    pub file: Arc<str>,
    /// Line there, 0 if not known.
    pub line: u32,
    /// The longest that it was seen to wait without being polled; zero where nobody looked.
    pub waited: Nanos,
}

impl TaskId {
    /// The id in a recording of the task that the process itself calls `own` (its lower 40 bits count).
    ///
    /// ```
    /// # use stackglass_profile::{ProcessIndex, TaskId};
    /// assert_eq!(TaskId::in_process(ProcessIndex(0), 7), TaskId(7));
    /// ```
    pub fn in_process(process: ProcessIndex, own: u64) -> TaskId {
        // Two bits remain free: the highest marks threads that are their own task.
        let process = u64::from(process.0) & ((1 << (62 - OWN_BITS)) - 1);
        TaskId(process << OWN_BITS | (own & ((1 << OWN_BITS) - 1)).max(1))
    }

    /// Its process.
    pub(crate) fn process(self) -> ProcessIndex {
        ProcessIndex((self.0 >> OWN_BITS) as u32 & ((1 << (62 - OWN_BITS)) - 1))
    }
}
