//! Tasks with equal await stacks.

use stackglass_profile::task_dump::{AwaitFrame, AwaitPoint, DumpedTask, TaskDump, TaskState};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Tasks with equal states and await stacks.
#[derive(Clone, Debug)]
pub struct TaskGroup<'a> {
    /// Their state.
    pub state: TaskState,
    /// Their function.
    pub name: Arc<str>,
    /// Their stack.
    pub stack: &'a [AwaitFrame],
    /// The tasks, by index.
    pub tasks: Vec<usize>,
}

/// Groups tasks; the largest group comes first. A task that holds what others wait for is as important as they are.
pub fn groups(dump: &TaskDump) -> Vec<TaskGroup<'_>> {
    let mut found: BTreeMap<(TaskState, &str, &[AwaitFrame]), TaskGroup<'_>> = BTreeMap::new();
    for (index, task) in dump.tasks.iter().enumerate() {
        let DumpedTask { state, name, stack, .. } = task;
        let new = || TaskGroup { state: *state, name: name.clone(), stack, tasks: Vec::new() };
        found.entry((*state, name, stack)).or_insert_with(new).tasks.push(index);
    }
    let mut groups: Vec<TaskGroup<'_>> = found.into_values().collect();
    let mut waiters = vec![0; dump.tasks.len()];
    for lock in &dump.locks {
        for holder in &lock.holders {
            waiters[holder.task] += lock.waiters.len();
        }
    }
    groups.sort_by_key(|group| {
        let of_holder = group.tasks.iter().map(|task| waiters[*task]).max().unwrap_or(0);
        std::cmp::Reverse((group.tasks.len().max(of_holder), group.tasks.len()))
    });
    groups
}

/// A word for a state.
pub(super) fn state_word(state: TaskState) -> &'static str {
    match state {
        TaskState::Waiting => "waiting",
        TaskState::Ready => "ready",
        TaskState::Running => "running",
        TaskState::Finished => "finished",
        TaskState::Blocking => "blocking",
        TaskState::BlockOn(_) => "block_on",
    }
}

/// Whether a frame is of a library: its source is not the user's.
pub(super) fn is_library(frame: &AwaitFrame) -> bool {
    match &frame.point {
        AwaitPoint::Await(Some((file, _))) => {
            file.contains("/registry/src/") || file.contains("/git/checkouts/") || file.starts_with("/rustc/")
        }
        AwaitPoint::Await(None) | AwaitPoint::NotStarted | AwaitPoint::Finished => {
            is_library_name(&frame.function)
        }
        AwaitPoint::Leaf | AwaitPoint::Lost(_) => false,
    }
}

/// Without a file, the crate decides.
fn is_library_name(function: &str) -> bool {
    let first = function.trim_start_matches('<').split("::").next().unwrap_or(function);
    ["tokio", "core", "std", "alloc", "hyper", "hyper_util", "axum", "tower", "futures_util"].contains(&first)
}
