//! Two recordings in one page: the earlier one is added to the later one, with processes and threads of its own.
//!
//! Functions are the same if their names are, in modules of the same file name: versions of a program often lie in different folders.

use serde::Serialize;
use stackglass_profile::{
    Frame, LocationId, ModuleIndex, Nanos, Process, ProcessIndex, Recording, Sample, StackId, TASKS_MODULE,
    Task, TaskId, Thread, ThreadNumber,
};

/// What the later recording is compared with.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Before {
    /// Its name.
    name: String,
    /// Threads with numbers above this are its own.
    threads_after: u32,
    /// The same of processes.
    processes_after: u32,
    /// Its wall time, ns.
    wall: u64,
    /// Whether both have allocations.
    allocations: bool,
}

impl Before {
    /// The name of the earlier recording.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether the process with this index is one of the earlier recording.
    pub(crate) fn has_process(&self, index: usize) -> bool {
        index >= self.processes_after as usize
    }
}

/// Where what an earlier recording has is in the later one.
pub(crate) struct Added {
    stacks: Vec<StackId>,
    shift: Shift,
    /// The number that stands for threads that are not known.
    nobody: ThreadNumber,
}

impl Added {
    /// The same stack.
    pub(crate) fn stack(&self, stack: StackId) -> StackId {
        self.stacks[stack.0 as usize]
    }

    /// The same thread. One that is not known has a number above all others: 0 is that of the later recording.
    pub(crate) fn thread(&self, thread: ThreadNumber) -> ThreadNumber {
        if thread.0 == 0 { self.nobody } else { self.shift.thread_number(thread) }
    }

    /// The index of the same process.
    pub(crate) fn process(&self, index: u32) -> u32 {
        self.shift.process_index(ProcessIndex(index)).0
    }
}

/// Adds an earlier recording to a later one, without its allocations. Both begin at the same moment then.
pub(crate) fn add(after: &mut Recording, before: &Recording, name: &str) -> (Before, Added) {
    let result = Before {
        allocations: after.allocations.were_recorded() && before.allocations.were_recorded(),
        name: name.to_owned(),
        threads_after: after.threads.len() as u32,
        processes_after: after.processes.len() as u32,
        wall: before.info.wall.0,
    };
    let shift = Shift {
        from: before.info.start,
        to: after.info.start,
        threads: result.threads_after,
        processes: result.processes_after,
    };
    after.processes.extend(before.processes.iter().map(|process| shift.process(process)));
    after.tasks.extend(before.tasks.iter().map(|task| Task {
        id: shift.task(task.id),
        process: shift.process_index(task.process),
        ..task.clone()
    }));
    after.threads.extend(before.threads.iter().map(|thread| shift.thread(thread)));
    let stacks = add_stacks(after, before, &shift);
    let nobody = ThreadNumber(after.threads.len() as u32 + 1);
    after.samples.extend(before.samples.iter().map(|sample| Sample {
        stack: stacks[sample.stack.0 as usize],
        thread: shift.thread_number(sample.thread),
        task: if sample.task == 0 { 0 } else { shift.task(TaskId(sample.task)).0 },
        clock: shift.moment(sample.clock),
        ..*sample
    }));
    (result, Added { stacks, shift, nobody })
}

/// What is added to clocks and numbers.
struct Shift {
    from: Nanos,
    to: Nanos,
    threads: u32,
    processes: u32,
}

impl Shift {
    fn moment(&self, moment: Nanos) -> Nanos {
        Nanos(moment.0.saturating_sub(self.from.0).saturating_add(self.to.0))
    }

    fn thread_number(&self, thread: ThreadNumber) -> ThreadNumber {
        // 0 is no thread.
        if thread.0 == 0 { thread } else { ThreadNumber(thread.0 + self.threads) }
    }

    fn process_index(&self, process: ProcessIndex) -> ProcessIndex {
        ProcessIndex(process.0 + self.processes)
    }

    fn task(&self, task: TaskId) -> TaskId {
        TaskId::in_process(self.process_index(task.process()), task.0)
    }

    fn process(&self, process: &Process) -> Process {
        Process {
            start: self.moment(process.start),
            end: process.end.map(|end| self.moment(end)),
            ..process.clone()
        }
    }

    fn thread(&self, thread: &Thread) -> Thread {
        Thread {
            process: self.process_index(thread.process),
            start: self.moment(thread.start),
            end: thread.end.map(|end| self.moment(end)),
            ..thread.clone()
        }
    }
}

/// Adds the stacks, with the names of their frames. Returns the new id of each.
fn add_stacks(after: &mut Recording, before: &Recording, shift: &Shift) -> Vec<StackId> {
    // Modules are not shared: at the same offset of another version is other code.
    let first = after.modules.len() as u32;
    after.modules.extend(before.modules.iter().cloned());
    let mut locations = Vec::with_capacity(before.stacks.locations().len());
    for (number, location) in before.stacks.locations().iter().enumerate() {
        let mut here = *location;
        here.module = location.module.map(|module| ModuleIndex(module.0 + first));
        let path = location
            .module
            .and_then(|module| before.modules.get(module.0 as usize))
            .map(|module| &*module.path);
        if here.offset != 0 && path == Some(TASKS_MODULE) {
            here.offset = shift.task(TaskId(here.offset)).0;
        }
        let id = after.stacks.intern_location(here);
        let old = LocationId(number as u32);
        let frames: Vec<Frame> = before.symbols.frames_of(old).cloned().collect();
        if !frames.is_empty() {
            after.symbols.set(id, frames);
        }
        if before.symbols.dispatches(old) {
            after.symbols.set_dispatches(id);
        }
        locations.push(id);
    }
    // Callers have smaller ids than callees.
    let mut stacks = vec![StackId(0)];
    for (caller, location) in before.stacks.nodes() {
        stacks.push(after.stacks.extend(stacks[caller.0 as usize], locations[location.0 as usize]));
    }
    stacks
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_profile::{Location, Module, State};

    /// One thread that runs `work` in a program of this path, from `start`.
    fn version(path: &str, start: u64, offset: u64, time: u64) -> Recording {
        let mut recording = Recording::default();
        recording.info.start = Nanos(start);
        recording.info.wall = Nanos(1000);
        recording.processes.push(Process {
            pid: 7,
            exe: path.into(),
            start: Nanos(start),
            ..Process::default()
        });
        let start = Nanos(start);
        let (process, name) = (ProcessIndex(0), "main".into());
        recording.threads.push(Thread {
            process,
            tid: 7,
            name,
            start,
            end: None,
            cpu: Nanos(0),
            blocked_signal: false,
        });
        let module = Some(recording.intern_module(Module { path: path.into(), build_id: [].into() }));
        let location = recording.stacks.intern_location(Location { module, offset });
        let frame = Frame { func: "work".into(), module: "app".into(), ..Frame::unknown(0) };
        recording.symbols.set(location, [frame]);
        recording.samples.push(Sample {
            stack: recording.stacks.intern(&[location]),
            thread: ThreadNumber(1),
            task: 0,
            clock: Nanos(start.0 + 500),
            state: State::Awake,
            cut: None,
            hits: 1,
            time: Nanos(time),
            spread: Nanos(0),
        });
        recording
    }

    #[test]
    fn both_have_their_threads_and_share_functions() {
        let mut after = version("/new/app", 10_000, 64, 30);
        let before = version("/old/app", 90_000, 80, 50);
        let (added, _) = add(&mut after, &before, "before.glass");
        assert_eq!((added.threads_after, added.processes_after, added.wall), (1, 1, 1000));
        assert_eq!(
            (after.threads.len(), after.threads[1].process, after.threads[1].start),
            (2, ProcessIndex(1), Nanos(10_000))
        );
        let [one, two] = after.samples[..] else { panic!("two samples") };
        assert_eq!(
            (one.thread, two.thread, two.clock, two.time),
            (ThreadNumber(1), ThreadNumber(2), Nanos(10_500), Nanos(50))
        );
        assert_ne!(one.stack, two.stack, "they have other addresses");
        let name = |sample: Sample| -> (std::sync::Arc<str>, std::sync::Arc<str>) {
            let location = after.stacks.walk(sample.stack).next().expect("a frame");
            let frame = after.symbols.frames_of(location).next().expect("a name");
            (frame.func.clone(), frame.module.clone())
        };
        assert_eq!(name(one), name(two));
    }
}
