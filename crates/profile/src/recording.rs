//! What a profiled program left behind, before anything is counted or named.

use crate::cut::Cut;
use crate::frame::file_name;
use crate::{ModuleIndex, Nanos, ProcessIndex, StackId, Stacks, Symbols, Task, ThreadNumber};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A whole recording.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// How, when and of what it was made.
    pub about: About,
    /// Process images, in order of start. An exec makes a new image with the same pid.
    pub processes: Vec<Process>,
    /// Threads; number `n` is `threads[n - 1]`.
    pub threads: Vec<Thread>,
    /// Async tasks that have names, in order of first meeting.
    pub tasks: Vec<Task>,
    /// Executables and libraries, each once, however many processes mapped it.
    pub modules: Vec<Module>,
    /// Interned stacks.
    pub stacks: Stacks,
    /// Samples in order of arrival, run-length: neighbours of one thread that differ only in
    /// clock, time and hits are one.
    pub samples: Vec<Sample>,
    /// Names, empty until symbolized.
    pub symbols: Symbols,
}

/// How, when and of what a recording was made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// Program and arguments as they were given.
    pub command: Vec<String>,
    /// CLOCK_REALTIME ns at the start.
    pub started: u64,
    /// CLOCK_MONOTONIC at the start; the zero of sample clocks as people see them.
    pub start: Nanos,
    /// Wall time of the whole recording.
    pub wall: Nanos,
    /// Asked time between two samples of a thread.
    pub delay: Nanos,
    /// Words that may be stored; 0: not bounded.
    pub capacity: u64,
    /// True when the bound was reached and sampling stopped before the program ended.
    pub full: bool,
    /// How the program ended; `None` while it runs or when the recorder did not live to see it.
    pub end: Option<End>,
    /// User and system CPU time of all recorded processes as the kernel counted it, where known.
    pub kernel_cpu: Option<Nanos>,
    /// CPU time the recorder used: sampler threads and launcher.
    pub own_cpu: Nanos,
    /// Lines for people: what could not be done, with the remedy.
    pub remarks: Vec<String>,
    /// Version of the program that wrote it.
    pub writer: String,
    /// Host name, kernel and processors, as text.
    pub machine: String,
}

/// How the first program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// It left with this status.
    Exit(i32),
    /// It was ended by this signal.
    Signal(i32),
    /// It was still running when the recording ended.
    Running,
}

/// One process image.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Process {
    /// The kernel's process id.
    pub pid: u32,
    /// The parent's.
    pub parent: u32,
    /// Path of the executable.
    pub exe: Arc<str>,
    /// Arguments.
    pub arguments: Vec<String>,
    /// When it was taken up.
    pub start: Nanos,
    /// When it was seen to be gone or to exec; `None`: not seen.
    pub end: Option<Nanos>,
    /// A forked child that has not called exec.
    pub forked: bool,
    /// Counters by their labels, for `info` and for remarks.
    pub counters: BTreeMap<String, u64>,
}

/// One thread of a process image.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// Its process.
    pub process: ProcessIndex,
    /// The kernel's thread id.
    pub tid: u32,
    /// Its last name.
    pub name: Arc<str>,
    /// When it was found.
    pub start: Nanos,
    /// When it was seen to be gone; `None`: not seen.
    pub end: Option<Nanos>,
    /// CPU time given to its samples.
    pub cpu: Nanos,
    /// It blocked the signal when it was due.
    pub blocked_signal: bool,
}

/// An executable or library.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Module {
    /// Path at run time; `[vdso]` for the kernel's.
    pub path: Arc<str>,
    /// Build id, empty when it has none.
    pub build_id: Arc<[u8]>,
}

/// Whether a thread was running.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[repr(u8)]
pub enum State {
    /// On a processor.
    Awake = 1,
    /// Blocked in the kernel.
    Asleep = 2,
    /// Sample of a task profile.
    Task = 3,
    /// Ready to run, but no processor was free.
    Waiting = 4,
}

impl State {
    /// Whether time in this state is processor time.
    pub fn uses_processor(self) -> bool {
        matches!(self, State::Awake | State::Task)
    }

    /// The word for this state in Julia's buffer, which knows awake, asleep and task: a thread that waits for a
    /// processor is awake there, since it is not parked.
    pub fn word(self) -> u64 {
        match self {
            State::Awake | State::Waiting => 1,
            State::Asleep => 2,
            State::Task => 3,
        }
    }
}

/// A stack that stands for some time of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// The stack.
    pub stack: StackId,
    /// Whose.
    pub thread: ThreadNumber,
    /// The async task being polled, 0 for none.
    pub task: u64,
    /// CLOCK_MONOTONIC of the last moment it stands for.
    pub clock: Nanos,
    /// Running or asleep.
    pub state: State,
    /// Why the stack is cut, if it is.
    pub cut: Option<Cut>,
    /// Times the stack was really taken.
    pub hits: u32,
    /// Time it stands for.
    pub time: Nanos,
}

/// What samples have in common that differ in clock, time and hits at most.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SampleKind {
    /// The stack.
    pub stack: StackId,
    /// Whose.
    pub thread: ThreadNumber,
    /// The async task being polled, 0 for none.
    pub task: u64,
    /// Running or asleep.
    pub state: State,
    /// Why the stack is cut, if it is.
    pub cut: Option<Cut>,
}

impl Sample {
    /// All of it but clock, time and hits.
    pub fn kind(&self) -> SampleKind {
        let Sample { stack, thread, task, state, cut, .. } = *self;
        SampleKind { stack, thread, task, state, cut }
    }

    /// Takes in a later sample of the same [kind](SampleKind); false, and nothing is changed, when it is
    /// of another, or when this one could not hold both.
    pub fn take_in(&mut self, later: &Sample) -> bool {
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
    /// Adds a sample, merging it into the previous one where they differ in clock, time and hits only.
    ///
    /// Returns true when a new entry was needed.
    pub fn push(&mut self, sample: Sample) -> bool {
        if let Some(last) = self.samples.last_mut()
            && last.take_in(&sample)
        {
            return false;
        }
        self.samples.push(sample);
        true
    }

    /// The index of this module, new or known (same path and build id).
    pub fn intern_module(&mut self, module: Module) -> ModuleIndex {
        let known = self.modules.iter().position(|m| *m == module);
        ModuleIndex(known.unwrap_or_else(|| {
            self.modules.push(module);
            self.modules.len() - 1
        }) as u32)
    }

    /// Whether one of the programs is made from Rust, as far as names are known: then foreign
    /// frames are the lesser part, and the complete reports hide them unless asked.
    pub fn has_rust(&self) -> bool {
        let is_program = |module: &str| {
            module.is_empty()
                || self.processes.is_empty()
                || self.processes.iter().any(|process| file_name(&process.exe) == file_name(module))
        };
        self.symbols.frames().iter().any(|frame| !frame.foreign && is_program(&frame.module))
    }

    /// What stands behind a thread's number in reports: its name, and its process where there are
    /// several.
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
