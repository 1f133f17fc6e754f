//! A task snapshot: which tasks there are at one moment, and what each of them does.
//!
//! Each live task has the time of the snapshot, whatever it does: a second of a hundred tasks is a hundred task-seconds. A future of
//! `block_on` is a task of its thread, and so is a function of `spawn_blocking` that runs. If there is no task, it has threads instead.

use super::names::Names;
use super::types::{Polled, Root, Seen, Types};
use crate::task_stacks::flatten::{self, frame};
use crate::task_stacks::{AwaitStack, Code, TaskFrame, polled};
use stackglass_awaits::SeenTask;
use stackglass_profile::task_dump::TaskState;
use stackglass_profile::{AwaitKind, AwaitLocation};
use std::sync::Arc;

/// Most tasks of a snapshot.
const MOST: usize = 256;
/// Ids of tasks without one begin here; the runtime counts from 1.
const BLOCK_ON: u64 = 1 << 39;
const BLOCKING: u64 = 1 << 38;
const NAMED: u64 = 1 << 37;

/// A task, as the recording names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskName {
    /// Its id in the process.
    pub id: u64,
    /// Its name.
    pub name: Arc<str>,
}

/// What a task does.
#[derive(Clone, Debug)]
enum State {
    /// It waits.
    Waiting(Vec<AwaitStack>),
    /// A thread polls it, or runs its function: the stack up to the function that polls.
    Polled { codes: Vec<Code>, is_blocking: bool },
    /// It is the future of a `block_on`, which the thread polls if its function is on the stack.
    Root { codes: Vec<Code>, waiting: Vec<AwaitStack> },
    /// A thread polls it, somewhere on this stack.
    PolledWithin(Vec<Code>),
    /// There is no task, but a thread.
    Thread(Vec<Code>),
}

/// A task in a snapshot.
#[derive(Clone, Debug)]
struct Entry {
    task: Option<TaskName>,
    tid: u32,
    /// How many tasks it stands for.
    weight: f64,
    state: State,
}

/// A stack, and for how many tasks it stands in the time since the last snapshot.
#[derive(Clone, Debug)]
pub struct SeenStack {
    /// The task; `None` if there is none, but a thread.
    pub task: Option<TaskName>,
    /// The thread that polls the task, or else the main thread.
    pub tid: u32,
    /// For how many tasks it stands.
    pub share: f64,
    /// Innermost first.
    pub frames: Vec<TaskFrame>,
}

/// What all tasks do at one moment, before all names are known.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskSnapshot {
    entries: Vec<Entry>,
    /// The function of each.
    functions: Vec<Arc<str>>,
    /// Addresses whose names it needs.
    codes: Vec<Code>,
}

impl TaskSnapshot {
    /// Takes a snapshot of a process that does not run.
    pub(super) fn take(
        seen: &Seen<'_>,
        types: &mut Types,
        below: &mut dyn FnMut(usize) -> usize,
    ) -> TaskSnapshot {
        let (read, roots) = types.read_tasks(seen, MOST, below);
        let polled: Vec<Option<Polled>> = seen.frames.iter().map(|frames| types.polled(frames)).collect();
        let codes =
            |thread: usize, last: usize| types.codes(&seen.view.modules, &seen.frames[thread][..=last]);
        let main = seen.view.image.pid;
        let mut entries = Vec::new();
        let of_runtimes = read.tasks.len();
        for SeenTask { task, polled: found } in read.tasks {
            let name = task.given_name.clone().unwrap_or_else(|| task.name.clone());
            let id = task.id;
            let (tid, state) = match task.state {
                TaskState::Waiting | TaskState::Ready => (main, State::Waiting(flatten::stacks(&task))),
                TaskState::Running => match found {
                    Some((thread, frame)) => {
                        let codes = codes(thread, frame);
                        (seen.tids[thread], State::Polled { codes, is_blocking: false })
                    }
                    None => (main, State::Waiting(vec![between(&task.name)])),
                },
                _ => continue,
            };
            // A given name is for people; stacks are cut at the function.
            let function = task.name;
            entries.push((Entry { task: Some(TaskName { id, name }), tid, weight: 1.0, state }, function));
        }
        // Those that have ended meanwhile do not count.
        let factor = read.alive as f64 / of_runtimes.max(1) as f64;
        entries.iter_mut().for_each(|(entry, _)| entry.weight = factor);
        let factor = read.wrapped.alive as f64 / read.wrapped.tasks.len().max(1) as f64;
        for (id, task) in read.wrapped.tasks {
            let name = task.given_name.clone().unwrap_or_else(|| task.name.clone());
            let polling = task.thread.as_ref().map(|thread| thread.tid);
            let thread = polling.and_then(|polling| seen.tids.iter().position(|tid| *tid == polling));
            let (tid, state) = match (task.state, thread) {
                (TaskState::Waiting, _) => (main, State::Waiting(flatten::stacks(&task))),
                (TaskState::Running, Some(thread)) => {
                    let codes = types.codes(&seen.view.modules, &seen.frames[thread]);
                    (seen.tids[thread], State::PolledWithin(codes))
                }
                (TaskState::Running, None) => (main, State::Waiting(vec![between(&task.name)])),
                _ => continue,
            };
            let task_name = Some(TaskName { id: NAMED | id & (NAMED - 1), name });
            entries.push((Entry { task: task_name, tid, weight: factor, state }, task.name));
        }
        for (thread, polled) in polled.iter().enumerate() {
            let Some(Polled { frame, blocking: Some(name), .. }) = polled else { continue };
            let tid = seen.tids[thread];
            let task = Some(TaskName { id: BLOCKING | u64::from(tid), name: name.clone() });
            let state = State::Polled { codes: codes(thread, *frame), is_blocking: true };
            entries.push((Entry { task, tid, weight: 1.0, state }, name.clone()));
        }
        for (Root { thread, frame, name, .. }, task) in roots.into_iter().zip(read.roots) {
            let tid = seen.tids[thread];
            let polls_other = polled[thread].as_ref().is_some_and(|polled| polled.frame < frame);
            let waiting = task.as_ref().map(flatten::stacks).unwrap_or_default();
            let state = match polls_other {
                true => State::Waiting(waiting),
                false => State::Root { codes: codes(thread, frame), waiting },
            };
            let of_root = Some(TaskName { id: BLOCK_ON | u64::from(tid), name: name.clone() });
            entries.push((Entry { task: of_root, tid, weight: 1.0, state }, name));
        }
        if entries.is_empty() {
            for (thread, frames) in seen.frames.iter().enumerate() {
                let state = State::Thread(types.codes(&seen.view.modules, frames));
                let tid = seen.tids[thread];
                entries.push((Entry { task: None, tid, weight: 1.0, state }, "".into()));
            }
        }
        TaskSnapshot::from_entries(entries)
    }

    fn from_entries(entries: Vec<(Entry, Arc<str>)>) -> TaskSnapshot {
        let mut snapshot = TaskSnapshot::default();
        for (entry, function) in entries {
            if let State::Polled { codes, .. } | State::Root { codes, .. } | State::PolledWithin(codes) =
                &entry.state
            {
                snapshot.codes.extend(codes);
            }
            snapshot.entries.push(entry);
            snapshot.functions.push(function);
        }
        snapshot
    }

    /// Requests the names that it needs. Returns whether they are known.
    pub(super) fn want(&self, names: &mut Names) -> bool {
        self.codes.iter().fold(true, |known, code| names.want(*code) & known)
    }

    /// Its stacks. Names that are not known yet are missing.
    pub(super) fn stacks(&self, names: &Names) -> Vec<SeenStack> {
        let mut found = Vec::new();
        for (entry, function) in self.entries.iter().zip(&self.functions) {
            let native = |codes: &[Code]| codes.iter().copied().map(TaskFrame::Code).collect::<Vec<_>>();
            let stacks: Vec<(Vec<TaskFrame>, f64)> = match &entry.state {
                State::Waiting(stacks) => of_await(stacks),
                State::Polled { codes, is_blocking } => {
                    let stack = polled::stack(codes, function, *is_blocking, names.known());
                    vec![(stack.unwrap_or_else(|| native(codes)), 1.0)]
                }
                State::Root { codes, waiting } => match polled::of_function(codes, function, names.known()) {
                    Some(stack) => vec![(stack, 1.0)],
                    None => of_await(waiting),
                },
                State::PolledWithin(codes) => match polled::of_named(codes, function, names.known()) {
                    Some(stack) => vec![(stack, 1.0)],
                    None => of_await(&[between(function)]),
                },
                State::Thread(codes) => vec![(native(codes), 1.0)],
            };
            for (frames, share) in stacks {
                let (task, tid, share) = (entry.task.clone(), entry.tid, share * entry.weight);
                found.push(SeenStack { task, tid, share, frames });
            }
        }
        found
    }
}

fn of_await(stacks: &[AwaitStack]) -> Vec<(Vec<TaskFrame>, f64)> {
    let of = |stack: &AwaitStack| {
        (stack.frames.iter().cloned().map(TaskFrame::Await).collect::<Vec<_>>(), stack.share)
    };
    stacks.iter().map(of).collect()
}

/// The stack of a task that a thread is about to poll, or has just polled.
fn between(name: &str) -> AwaitStack {
    let leaf = AwaitLocation { kind: AwaitKind::Polled, ..frame("[polled]") };
    AwaitStack { frames: vec![leaf, frame(name)], share: 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time of all tasks with a name in a snapshot.
    fn time(snapshot: &TaskSnapshot, name: &str) -> f64 {
        let stacks = snapshot.stacks(&Names::new());
        let has_name = |seen: &&SeenStack| seen.task.as_ref().is_some_and(|task| &*task.name == name);
        stacks.iter().filter(has_name).map(|seen| seen.share).sum()
    }

    #[test]
    fn a_busy_moment_counts_as_many_tasks_as_it_has() {
        let snapshot = |requests: u64| {
            let names = std::iter::once("accept").chain((0..requests).map(|_| "request"));
            let entry = |(id, name): (usize, &str)| {
                let task = Some(TaskName { id: id as u64 + 1, name: name.into() });
                let state = State::Waiting(vec![AwaitStack { frames: vec![frame(name)], share: 1.0 }]);
                (Entry { task, tid: 1, weight: 1.0, state }, Arc::from(name))
            };
            TaskSnapshot::from_entries(names.enumerate().map(entry).collect())
        };
        let (busy, idle) = (snapshot(200), snapshot(0));
        // A tenth of the time is busy.
        let requests = 0.1 * time(&busy, "request") + 0.9 * time(&idle, "request");
        let accept = 0.1 * time(&busy, "accept") + 0.9 * time(&idle, "accept");
        assert!((requests - 20.0).abs() < 1e-9 && (accept - 1.0).abs() < 1e-9, "{requests} {accept}");
    }
}
