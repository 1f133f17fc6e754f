//! What is alike is shown once: a server makes a task for each request and has a pool of threads that all
//! sleep in one place. A report with a group for each of them is one that nobody reads.

use foldhash::HashMap;
use stackglass_profile::{Recording, Sample, StackId, State, TaskId, ThreadNumber};
use std::collections::BTreeMap;

/// The recording with tasks of one name and place made one task, and threads that did nothing but sleep on one
/// stack made one thread. Their names say so.
pub(super) fn merged(recording: &Recording) -> Recording {
    let mut merged = recording.clone();
    merge_tasks(&mut merged);
    merge_sleepers(&mut merged);
    merged
}

fn merge_tasks(recording: &mut Recording) {
    let seen: HashMap<u64, ()> = recording.samples.iter().map(|sample| (sample.task, ())).collect();
    // By process, name, file and line: the first task of its kind, and all of them.
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
        // No number is told. These are the tasks that some sample met; one that was polled for less than the time
        // between two looks mostly met none, and the heading stands below one thread while they were polled by all:
        // of thousands of requests it would say dozens, on each thread.
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
