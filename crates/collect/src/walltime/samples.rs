//! From task snapshots to samples of a recording.

use foldhash::HashMap;
use stackglass_inspect::task_sampler::{SeenStack, TaskName};
use stackglass_inspect::task_stacks::TaskFrame;
use stackglass_profile::{
    Location, LocationId, Module, ModuleIndex, Nanos, Process, ProcessIndex, Recorder, Sample, State,
    TASK_SNAPSHOTS, Task, TaskId, Thread, ThreadNumber,
};
use std::sync::Arc;

/// Most tasks whose names are remembered.
const MOST_TASKS: usize = 1 << 18;

/// Adds samples.
#[derive(Default)]
pub(super) struct Samples {
    process: Option<ProcessIndex>,
    pid: u32,
    /// By kernel id.
    threads: HashMap<u32, ThreadNumber>,
    /// By number.
    modules: Vec<Option<ModuleIndex>>,
    tasks: HashMap<u64, ()>,
    /// Time that did not fit into whole nanoseconds.
    rest: f64,
}

impl Samples {
    /// The process executes a program.
    pub(super) fn process(&mut self, process: Process, recorder: &mut Recorder) {
        self.end(process.start.0, recorder);
        self.pid = process.pid;
        self.process = recorder.add_process(process);
        if let Some(process) = self.process {
            // Also without any, it is a wall-time profile.
            recorder.process_mut(process).counters.entry(TASK_SNAPSHOTS.into()).or_default();
        }
    }

    /// Modules with the next numbers.
    pub(super) fn modules(&mut self, modules: Vec<Arc<Module>>, recorder: &mut Recorder) {
        let new = modules.iter().map(|module| recorder.add_module((**module).clone()));
        self.modules.extend(new);
    }

    /// The threads at a moment.
    pub(super) fn threads(&mut self, at: u64, threads: &[(u32, String)], recorder: &mut Recorder) {
        for (tid, name) in threads {
            if let Some(number) = self.thread(*tid, at, recorder) {
                let thread = recorder.thread_mut(number);
                if *thread.name != **name {
                    thread.name = name.as_str().into();
                }
            }
        }
        let ended: Vec<u32> = self
            .threads
            .keys()
            .filter(|tid| **tid != self.pid && threads.iter().all(|(other, _)| other != *tid))
            .copied()
            .collect();
        for tid in ended {
            if let Some(number) = self.threads.remove(&tid) {
                recorder.thread_mut(number).end = Some(Nanos(at));
                recorder.thread_ended();
            }
        }
    }

    /// Adds the stacks of a snapshot, which stand for a time.
    pub(super) fn stacks(
        &mut self,
        (at, time, taken): (u64, u64, bool),
        stacks: &[SeenStack],
        recorder: &mut Recorder,
    ) {
        if let (true, Some(process)) = (taken, self.process) {
            *recorder.process_mut(process).counters.entry(TASK_SNAPSHOTS.into()).or_default() += 1;
        }
        for seen in stacks {
            if recorder.is_full() {
                return;
            }
            let Some(thread) = self.thread(seen.tid, at, recorder) else { return };
            let task = seen.task.as_ref().map_or(0, |task| self.task(task, recorder));
            let Some(leaf_first) = self.locations(&seen.frames, recorder) else { return };
            let stack = recorder.recording_mut().stacks.intern(&leaf_first);
            recorder.check_bound();
            let exact = seen.share * time as f64 + self.rest;
            let whole = exact.floor().max(0.0);
            self.rest = exact - whole;
            recorder.add_snapshot_sample(Sample {
                stack,
                thread,
                task,
                clock: Nanos(at),
                state: State::Task,
                cut: None,
                hits: taken.into(),
                time: Nanos(whole as u64),
                spread: Nanos(0),
            });
        }
    }

    /// The process or its program has ended.
    pub(super) fn end(&mut self, at: u64, recorder: &mut Recorder) {
        if let Some(process) = self.process.take() {
            recorder.process_mut(process).end = Some(Nanos(at));
        }
        for (_, number) in self.threads.drain() {
            recorder.thread_mut(number).end = Some(Nanos(at));
            recorder.thread_ended();
        }
        self.tasks.clear();
    }

    fn thread(&mut self, tid: u32, at: u64, recorder: &mut Recorder) -> Option<ThreadNumber> {
        if let Some(known) = self.threads.get(&tid) {
            return Some(*known);
        }
        let number = recorder.add_thread(Thread {
            process: self.process?,
            tid,
            name: "".into(),
            start: Nanos(at),
            end: None,
            cpu: Nanos(0),
            blocked_signal: false,
        })?;
        self.threads.insert(tid, number);
        Some(number)
    }

    /// The id of a task in the recording.
    fn task(&mut self, task: &TaskName, recorder: &mut Recorder) -> u64 {
        let process = self.process.unwrap_or_default();
        let id = TaskId::in_process(process, task.id);
        if self.tasks.len() < MOST_TASKS && self.tasks.insert(task.id, ()).is_none() {
            let name = task.name.clone();
            recorder.add_task(Task { id, process, name, file: "".into(), line: 0, waited: Nanos(0) });
        }
        id.0
    }

    /// The locations of frames; `None` if the recording is full.
    fn locations(&self, frames: &[TaskFrame], recorder: &mut Recorder) -> Option<Vec<LocationId>> {
        let mut locations = Vec::with_capacity(frames.len());
        for frame in frames {
            let location = match frame {
                TaskFrame::Await(frame) => recorder.add_await_frame(frame)?,
                TaskFrame::Code(code) => {
                    let module = code.module.and_then(|number| *self.modules.get(number as usize)?);
                    let location = Location { module, offset: code.offset };
                    recorder.recording_mut().stacks.intern_location(location)
                }
            };
            locations.push(location);
        }
        Some(locations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_inspect::task_stacks::flatten;
    use stackglass_profile::RecordingInfo;

    #[test]
    fn snapshots_are_not_merged() {
        let mut recorder = Recorder::new(RecordingInfo::default());
        let mut samples = Samples::default();
        samples.process(Process { pid: 7, ..Process::default() }, &mut recorder);
        let seen = |share| SeenStack {
            task: Some(TaskName { id: 3, name: "task".into() }),
            tid: 8,
            share,
            frames: vec![TaskFrame::Await(flatten::frame("wait"))],
        };
        for at in [100, 200, 300] {
            samples.stacks((at, 10, true), &[seen(0.5), seen(0.5)], &mut recorder);
        }
        let recording = recorder.into_recording();
        let found: Vec<_> = recording.samples.iter().map(|sample| (sample.clock.0, sample.time.0)).collect();
        assert_eq!(found, [(100, 10), (200, 10), (300, 10)]);
        assert_eq!(recording.processes[0].counters[TASK_SNAPSHOTS], 3);
    }
}
