//! Similar tasks and threads are merged for a peek.
//!
//! A server creates a task for each request and has a pool of threads that all sleep in one place. A report with a group
//! for each of them would be too long to read.

use foldhash::HashMap;
use stackglass_profile::{Recording, Sample, StackId, State, TaskId, ThreadNumber};
use std::collections::BTreeMap;

/// The recording with similar ones merged: tasks with the same name and place of creation, and threads with the same
/// name that only slept on one stack. Their names say so.
pub(super) fn merged(recording: &Recording) -> Recording {
    let mut merged = recording.clone();
    merge_tasks(&mut merged);
    merge_sleepers(&mut merged);
    merged
}

fn merge_tasks(recording: &mut Recording) {
    let seen: HashMap<u64, ()> = recording.samples.iter().map(|sample| (sample.task, ())).collect();
    // Indices of tasks by process, name, file and line.
    let mut kinds: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (index, task) in recording.tasks.iter().enumerate() {
        if seen.contains_key(&task.id.0) {
            let kind = (task.process, task.name.clone(), task.file.clone(), task.line);
            kinds.entry(kind).or_default().push(index);
        }
    }
    let mut one: HashMap<u64, TaskId> = HashMap::default();
    for tasks in kinds.into_values().filter(|tasks| tasks.len() > 1) {
        let first = recording.tasks[tasks[0]].id;
        for task in &tasks {
            one.insert(recording.tasks[*task].id.0, first);
        }
        // No count is shown. It would count only tasks with a sample, and a short task rarely has one. It would also
        // repeat below each thread that polled them: dozens on each thread instead of thousands of requests.
        let task = &mut recording.tasks[tasks[0]];
        task.name = format!("{}, all of this name", task.name).into();
    }
    for sample in &mut recording.samples {
        if let Some(first) = one.get(&sample.task) {
            sample.task = first.0;
        }
    }
}

fn merge_sleepers(recording: &mut Recording) {
    let mut only: HashMap<ThreadNumber, Option<StackId>> = HashMap::default();
    for sample in &recording.samples {
        let sleeps =
            |sample: &Sample| sample.state == State::Asleep && sample.task == 0 && sample.cut.is_none();
        let here = sleeps(sample).then_some(sample.stack);
        only.entry(sample.thread)
            .and_modify(|known| *known = known.filter(|_| *known == here))
            .or_insert(here);
    }
    let mut kinds: BTreeMap<_, Vec<ThreadNumber>> = BTreeMap::new();
    for (number, stack) in only {
        if let (Some(stack), Some(thread)) = (stack, recording.thread(number)) {
            kinds.entry((thread.process, thread.name.clone(), stack)).or_default().push(number);
        }
    }
    let mut one: HashMap<ThreadNumber, ThreadNumber> = HashMap::default();
    for mut threads in kinds.into_values().filter(|threads| threads.len() > 1) {
        threads.sort();
        one.extend(threads.iter().map(|thread| (*thread, threads[0])));
        let first = &mut recording.threads[threads[0].0 as usize - 1];
        first.name = format!("{}: {} threads", first.name, threads.len()).into();
    }
    for sample in &mut recording.samples {
        sample.thread = one.get(&sample.thread).copied().unwrap_or(sample.thread);
    }
}
