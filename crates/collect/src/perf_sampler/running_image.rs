//! The image of a process that runs already, for stacks that come with other events than those of this sampler.

use super::files::Files;
use super::process::Process;
use super::system::System;
use super::walking::Walking;
use foldhash::HashMap;
use stackglass_perf::deep_stack::SampledStack;
use stackglass_perf::records::Sample;
use stackglass_procfs::threads;
use stackglass_profile::{ProcessIndex, Recorder, StackId, ThreadNumber};
use stackglass_unwind::walk::{Cut, End};
use stackglass_wire::{Event, ThreadId};

/// One image of a running process, and its entry in a recording.
pub(crate) struct RunningImage {
    system: System,
    files: Files,
    process: Process,
    walking: Walking,
    /// Threads that the recording has.
    threads: HashMap<u32, ThreadNumber>,
}

impl RunningImage {
    /// Reads the mappings of process `pid`. The recording knows it from the moment `at` on, ns.
    pub(crate) fn new(pid: u32, at: u64) -> RunningImage {
        let system = System::default();
        let mut files = Files::new(system.clone());
        let mut process = Process::new(pid, 0, at);
        process.scan(&system, &mut files);
        RunningImage { system, files, process, walking: Walking::default(), threads: HashMap::default() }
    }

    /// Its index in the recording; `None` if the recording is full.
    pub(crate) fn index(&mut self, recorder: &mut Recorder) -> Option<ProcessIndex> {
        Some(self.process.translator(&self.system, recorder)?.index())
    }

    /// The stack of a sample that was taken at the first instruction of a function: that of its caller. `None` without registers, and if
    /// the recording is full.
    pub(crate) fn stack_of_caller(
        &mut self,
        sample: &Sample<'_>,
        at: u64,
        recorder: &mut Recorder,
    ) -> Option<StackId> {
        let registers = sample.registers.as_ref()?;
        let (system, pid) = (&self.system, self.process.pid);
        let Walking { scratch, frames, .. } = &mut self.walking;
        let mut walk = |process: &mut Process| {
            let mut stack = SampledStack::new(registers.sp(), sample.stack, at, None);
            process.mappings.walk((system, pid), registers, &mut stack, scratch, frames)
        };
        let mut walked = walk(&mut self.process)?;
        if walked.end == End::Cut(Cut::NoModule) && self.process.scan(system, &mut self.files) {
            walked = walk(&mut self.process)?;
        }
        let caller = self.walking.frames.get(1..walked.len).unwrap_or_default();
        self.process.translator(&self.system, recorder)?.intern(caller, recorder)
    }

    /// The recording's number of a thread; `None` if the recording is full.
    pub(crate) fn thread(&mut self, tid: u32, at: u64, recorder: &mut Recorder) -> Option<ThreadNumber> {
        if let Some(number) = self.threads.get(&tid) {
            return Some(*number);
        }
        let mut name = [0; 16];
        let text = threads::name(self.process.pid, tid).unwrap_or_default();
        let len = text.len().min(15);
        name[..len].copy_from_slice(&text.as_bytes()[..len]);
        let thread = ThreadId(self.process.next_number());
        let translator = self.process.translator(&self.system, recorder)?;
        translator.apply(&Event::ThreadStart { thread, tid, at, name }, recorder);
        let number = translator.thread(thread)?;
        self.threads.insert(tid, number);
        Some(number)
    }
}
