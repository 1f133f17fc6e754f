//! Async tasks: their names and where they were created.

use crate::{Nanos, ProcessIndex, TaskId};
use std::sync::Arc;

/// Number of bits of a task id that come from its process. The process index is in the bits above.
const OWN_BITS: u32 = 40;

/// Path of the pseudo module in stacks of waiting tasks, which have no code. Offset 0 is their leaf, [`WAITING`]. Other
/// offsets are task ids; tasks with the same name and place of creation share one.
/// [`Recording::name_tasks`](crate::Recording::name_tasks) creates the frames.
pub const TASKS_MODULE: &str = "[tasks]";

/// Function name of the leaf of a waiting task.
pub const WAITING: &str = "[waiting]";

/// A sampled async task. Tasks without an entry have no name.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its id in samples.
    pub id: TaskId,
    /// Its process.
    pub process: ProcessIndex,
    /// Its name in the program.
    pub name: Arc<str>,
    /// Source file in which it was created; empty if unknown.
    pub file: Arc<str>,
    /// Line in that file; 0 if unknown.
    pub line: u32,
    /// The longest observed time without a poll; 0 if it was not observed.
    pub waited: Nanos,
}

impl TaskId {
    /// The id in a recording of the task that its process calls `own`, of which the lower 40 bits are used.
    ///
    /// ```
    /// # use stackglass_profile::{ProcessIndex, TaskId};
    /// assert_eq!(TaskId::in_process(ProcessIndex(0), 7), TaskId(7));
    /// ```
    pub fn in_process(process: ProcessIndex, own: u64) -> TaskId {
        // Two bits remain free. The highest marks threads that are their own task.
        let process = u64::from(process.0) & ((1 << (62 - OWN_BITS)) - 1);
        TaskId(process << OWN_BITS | (own & ((1 << OWN_BITS) - 1)).max(1))
    }

    /// Its process.
    pub fn process(self) -> ProcessIndex {
        ProcessIndex((self.0 >> OWN_BITS) as u32 & ((1 << (62 - OWN_BITS)) - 1))
    }
}
