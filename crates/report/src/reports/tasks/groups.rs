//! Tasks with equal await stacks.

use stackglass_profile::Nanos;
use stackglass_profile::runtimes::is_of_library;
use stackglass_profile::task_dump::{
    AwaitFrame, AwaitPoint, AwaitSource, DumpedTask, PollingThread, TaskDump, TaskState,
};
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
    /// How their stacks were found.
    pub source: AwaitSource,
    /// The thread that polls one of them. Threads of a group have equal stacks.
    pub thread: Option<&'a PollingThread>,
    /// The longest wait of one of them, as far as it is known.
    pub waited: Option<Nanos>,
    /// How long all of them were not polled at least. `None` if that is not known of one of them.
    pub unpolled: Option<Nanos>,
    /// The tasks, by index.
    pub tasks: Vec<usize>,
}

/// What tasks of a group have in common.
type Key<'a> = (TaskState, &'a str, &'a [AwaitFrame], AwaitSource, Option<ThreadKey<'a>>);

/// Functions and lines of a thread's stack, and what is known of its poll: is it one poll, is it a long one, was it seen again?
type ThreadKey<'a> = (Vec<(&'a str, i64)>, [bool; 3]);

/// Groups tasks; the largest group comes first. A task that holds what others wait for is as important as they are.
pub fn groups(dump: &TaskDump) -> Vec<TaskGroup<'_>> {
    let mut found: BTreeMap<Key<'_>, TaskGroup<'_>> = BTreeMap::new();
    for (index, task) in dump.tasks.iter().enumerate() {
        let DumpedTask { state, name, stack, source, waited, unpolled, .. } = task;
        let thread = task.thread.as_ref();
        let new = || TaskGroup {
            state: *state,
            name: name.clone(),
            stack,
            source: *source,
            thread,
            waited: None,
            unpolled: *unpolled,
            tasks: Vec::new(),
        };
        let of_thread = thread.map(key_of);
        let group = found.entry((*state, name, stack, *source, of_thread)).or_insert_with(new);
        group.waited = group.waited.max(*waited);
        group.unpolled = group.unpolled.min(*unpolled);
        group.tasks.push(index);
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

fn key_of(thread: &PollingThread) -> ThreadKey<'_> {
    let frames = thread.stack.iter().map(|frame| (&*frame.func, frame.line)).collect();
    let is_long = thread.polled_for.is_some_and(|time| time >= PollingThread::BLOCKS);
    (frames, [thread.polled_for.is_some(), is_long, thread.seen_again])
}

/// Whether a frame is of a library: its source is not the user's.
pub(super) fn is_library(frame: &AwaitFrame) -> bool {
    match &frame.point {
        AwaitPoint::Await(Some((file, _))) => {
            file.contains("/registry/src/") || file.contains("/git/checkouts/") || file.starts_with("/rustc/")
        }
        // Without a file, the crate decides.
        AwaitPoint::Await(None) | AwaitPoint::NotStarted | AwaitPoint::Finished => {
            is_of_library(&frame.function)
        }
        AwaitPoint::Leaf | AwaitPoint::Lost(_) => false,
    }
}
