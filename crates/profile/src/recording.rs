//! A recording: the samples of a profiled program and everything they refer to.

use crate::cut::Cut;
use crate::frame::file_name;
use crate::{Allocations, ModuleIndex, Nanos, ProcessIndex, StackId, Stacks, Symbols, Task, ThreadNumber};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A whole recording.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// How, when and of what program it was made.
    pub info: RecordingInfo,
    /// Process images, in order of start. An exec makes a new image with the same pid.
    pub processes: Vec<Process>,
    /// Threads; number `n` is `threads[n - 1]`.
    pub threads: Vec<Thread>,
    /// Named async tasks, in the order in which they were first met.
    pub tasks: Vec<Task>,
    /// Executables and libraries, each once for all processes.
    pub modules: Vec<Module>,
    /// Interned stacks.
    pub stacks: Stacks,
    /// Samples in order of arrival. Consecutive samples that differ only in clock, time and hits are merged.
    pub samples: Vec<Sample>,
    /// Counts of allocations, if they were recorded.
    pub allocations: Allocations,
    /// Names, empty until symbolized.
    pub symbols: Symbols,
}

/// How, when and of what program a recording was made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordingInfo {
    /// Program and arguments, as given by the user.
    pub command: Vec<String>,
    /// CLOCK_REALTIME ns at the start.
    pub started: u64,
    /// CLOCK_MONOTONIC at the start. Clocks are shown relative to it.
    pub start: Nanos,
    /// Wall time of the whole recording.
    pub wall: Nanos,
    /// Requested time between two samples of a thread.
    pub delay: Nanos,
    /// Maximum number of words; 0 for no limit.
    pub capacity: u64,
    /// Whether the limit was reached, so that sampling stopped before the program ended.
    pub full: bool,
    /// How the program ended; `None` while it runs, or if the recorder ended first.
    pub end: Option<End>,
    /// User and system CPU time of all recorded processes as counted by the kernel, if known. That of samplers inside them is left out.
    pub kernel_cpu: Option<Nanos>,
    /// CPU time of sampler threads and launcher.
    pub own_cpu: Nanos,
    /// Messages for the reader: what could not be done, and what helps.
    pub remarks: Vec<String>,
    /// Name and version of the program that wrote it.
    pub writer: String,
    /// Host name, kernel and CPUs, as text.
    pub machine: String,
}

/// How the first program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// It exited with this status.
    Exit(i32),
    /// It was killed by this signal.
    Signal(i32),
    /// It was still running when the recording ended.
    Running,
}

/// One process image.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Process {
    /// The kernel's process id.
    pub pid: u32,
    /// Process id of the parent.
    pub parent: u32,
    /// Path of the executable.
    pub exe: Arc<str>,
    /// Arguments.
    pub arguments: Vec<String>,
    /// When recording of it began.
    pub start: Nanos,
    /// When it ended or called exec; `None` if unknown.
    pub end: Option<Nanos>,
    /// A forked child that has not called exec.
    pub forked: bool,
    /// Counters by label, for `info` and remarks.
    pub counters: BTreeMap<String, u64>,
}

/// One thread of a process image.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// Its process.
    pub process: ProcessIndex,
    /// The kernel's thread id.
    pub tid: u32,
    /// Its latest name.
    pub name: Arc<str>,
    /// When it was discovered.
    pub start: Nanos,
    /// When it ended; `None` if unknown.
    pub end: Option<Nanos>,
    /// CPU time of its samples.
    pub cpu: Nanos,
    /// It blocked the sampling signal when one was due.
    pub blocked_signal: bool,
}

/// An executable or library.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Module {
    /// Path at run time, or `[vdso]`.
    pub path: Arc<str>,
    /// Build id; empty if it has none.
    pub build_id: Arc<[u8]>,
}

/// Label of the counter of task snapshots of a process. A snapshot has all tasks at one moment, so their samples are not
/// independent of each other.
pub const TASK_SNAPSHOTS: &str = "task snapshots";

/// State of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[repr(u8)]
pub enum State {
    /// On a CPU.
    Awake = 1,
    /// Blocked in the kernel.
    Asleep = 2,
    /// Sample of a task profile.
    Task = 3,
    /// Ready: it could run, and waits for a CPU.
    Waiting = 4,
}

impl State {
    /// Whether time in this state is CPU time.
    pub fn uses_cpu(self) -> bool {
        matches!(self, State::Awake | State::Task)
    }

    /// The word for this state in Julia's buffer, which has awake, asleep and task. A thread that waits for a CPU is awake
    /// there, since it is not parked.
    pub fn word(self) -> u64 {
        match self {
            State::Awake | State::Waiting => 1,
            State::Asleep => 2,
            State::Task => 3,
        }
    }
}

/// A stack that stands for an amount of a thread's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// The stack.
    pub stack: StackId,
    /// The thread.
    pub thread: ThreadNumber,
    /// The async task being polled, 0 for none.
    pub task: u64,
    /// CLOCK_MONOTONIC at the end of the time it stands for.
    pub clock: Nanos,
    /// The state of the thread.
    pub state: State,
    /// Why the stack is incomplete, if it is.
    pub cut: Option<Cut>,
    /// Number of times the stack was taken.
    pub hits: u32,
    /// Time it stands for.
    pub time: Nanos,
}

/// The parts of a sample that must be equal for merging: all but clock, time and hits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SampleKind {
    /// The stack.
    pub stack: StackId,
    /// The thread.
    pub thread: ThreadNumber,
    /// The async task being polled, 0 for none.
    pub task: u64,
    /// The state of the thread.
    pub state: State,
    /// Why the stack is incomplete, if it is.
    pub cut: Option<Cut>,
}

impl Sample {
    /// All fields but clock, time and hits.
    pub fn kind(&self) -> SampleKind {
        let Sample { stack, thread, task, state, cut, .. } = *self;
        SampleKind { stack, thread, task, state, cut }
    }

    /// Merges a later sample of the same [kind](SampleKind) into this one. Returns false and changes nothing if it is of
    /// another kind, or if hits or time would overflow.
    pub fn merge(&mut self, later: &Sample) -> bool {
        if self.kind() != later.kind() {
            return false;
        }
        let (Some(hits), Some(time)) =
            (self.hits.checked_add(later.hits), self.time.0.checked_add(later.time.0))
        else {
            return false;
        };
        (self.clock, self.hits, self.time) = (later.clock, hits, Nanos(time));
        true
    }
}

impl Recording {
    /// Adds a sample. It is merged into the previous one if they differ only in clock, time and hits.
    ///
    /// Returns whether a new entry was added.
    pub fn push(&mut self, sample: Sample) -> bool {
        if let Some(last) = self.samples.last_mut()
            && last.merge(&sample)
        {
            return false;
        }
        self.samples.push(sample);
        true
    }

    /// Returns the index of a module with this path and build id; adds the module if it is new.
    pub fn intern_module(&mut self, module: Module) -> ModuleIndex {
        let known = self.modules.iter().position(|m| *m == module);
        ModuleIndex(known.unwrap_or_else(|| {
            self.modules.push(module);
            self.modules.len() - 1
        }) as u32)
    }

    /// Whether one of the programs is compiled from Rust, as far as names are known. If so, the complete reports hide foreign
    /// frames by default.
    pub fn has_rust(&self) -> bool {
        let is_program = |module: &str| {
            module.is_empty()
                || self.processes.is_empty()
                || self.processes.iter().any(|process| file_name(&process.exe) == file_name(module))
        };
        self.symbols.frames().iter().any(|frame| !frame.foreign && is_program(&frame.module))
    }

    /// The label of a thread in reports: its name, and its process if there are several.
    pub fn thread_label(&self, number: ThreadNumber) -> String {
        match self.thread(number) {
            Some(thread) if self.processes.len() > 1 => {
                let pid = self.processes.get(thread.process.0 as usize).map_or(0, |process| process.pid);
                format!("{}, process {pid}", thread.name)
            }
            Some(thread) => thread.name.to_string(),
            None => "unknown".to_owned(),
        }
    }

    /// The thread with this number.
    pub fn thread(&self, number: ThreadNumber) -> Option<&Thread> {
        self.threads.get((number.0 as usize).checked_sub(1)?)
    }
}
