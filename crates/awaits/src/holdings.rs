//! What futures and tasks hold, as far as it is described, and what drops them.

use crate::ends::End;
use crate::needs::Needs;
use stackglass_profile::task_dump::SharedKind;
use std::sync::Arc;

/// A guard of a lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Held {
    pub kind: SharedKind,
    /// Address of the lock's semaphore.
    pub address: u64,
    /// Address of the guard.
    pub guard: u64,
    /// The `.await` during which the guard is held.
    pub line: Option<(Arc<str>, u32)>,
}

/// A file and a line.
pub(crate) type Line = Option<(Arc<str>, u32)>;

/// What a future holds.
#[derive(Default)]
pub(crate) struct Holdings {
    /// Guards.
    pub guards: Vec<Held>,
    /// Ends of channels.
    pub ends: Vec<End>,
    /// Words that belong to no variable of a coroutine with a hidden variable, and its line. One of them may be a guard.
    pub hidden: Vec<(u64, Line)>,
}

/// What is known of a task besides its stack.
pub(crate) struct TaskHoldings {
    /// Index of the task.
    pub task: usize,
    /// What its future holds.
    pub holdings: Holdings,
    /// The function that frees the task, and the task's address.
    pub drop: Option<(u64, u64)>,
    /// What it needs to go on.
    pub needs: Needs,
}
