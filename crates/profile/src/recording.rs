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
    /// How much longer than [`time`](Sample::time) the interval up to [`clock`](Sample::clock) is in which that time lies. 0 if it is
    /// exactly that interval.
    pub spread: Nanos,
}

/// The parts of a sample that must be equal for merging: all but clock, time, spread and hits.
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
    /// All fields but clock, time, spread and hits.
    pub fn kind(&self) -> SampleKind {
        let Sample { stack, thread, task, state, cut, .. } = *self;
        SampleKind { stack, thread, task, state, cut }
    }

    /// Whether a later sample is of the same [kind](SampleKind), and begins where this one ends, but for some milliseconds: nobody
    /// asks what was between.
    pub fn is_continued_by(&self, later: &Sample) -> bool {
        const SOON: u64 = 10_000_000;
        self.kind() == later.kind() && self.clock.0.abs_diff(later.begin().0) <= SOON
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
        let begin = self.begin().0.min(later.begin().0);
        let spread = later.clock.0.saturating_sub(begin).saturating_sub(time);
        (self.clock, self.hits, self.time, self.spread) = (later.clock, hits, Nanos(time), Nanos(spread));
        true
    }

    /// CLOCK_MONOTONIC at the beginning of the interval in which its time lies.
    pub fn begin(&self) -> Nanos {
        Nanos(self.clock.0.saturating_sub(self.time.0).saturating_sub(self.spread.0))
    }

    /// How much of its time lies before a moment of CLOCK_MONOTONIC. Within its interval the time is spread evenly.
    ///
    /// The parts of adjacent ranges add up to the whole, since each is a difference of two such figures.
    pub fn time_before(&self, moment: Nanos) -> Nanos {
        let begin = self.begin();
        if moment <= begin {
            return Nanos(0);
        }
        if moment >= self.clock {
            return self.time;
        }
        let passed = moment.0 - begin.0;
        if self.spread.0 == 0 {
            return Nanos(passed.min(self.time.0));
        }
        // In doubles and in this order: the page of `stackglass view` computes the same, to the nanosecond.
        let part = passed as f64 / (self.time.0 + self.spread.0) as f64 * self.time.0 as f64;
        Nanos(part.floor() as u64)
    }

    /// The part of a sample that lies in a range of CLOCK_MONOTONIC, `None` if none does. Its hits count where its clock lies, after the
    /// first moment of the range and up to the last.
    ///
    /// ```
    /// use stackglass_profile::{Nanos, Sample, StackId, State, ThreadNumber};
    /// let sample = Sample {
    ///     stack: StackId(1),
    ///     thread: ThreadNumber(1),
    ///     task: 0,
    ///     clock: Nanos(1000),
    ///     state: State::Asleep,
    ///     cut: None,
    ///     hits: 1,
    ///     time: Nanos(200),
    ///     spread: Nanos(200),
    /// };
    /// let half = sample.within(Nanos(0), Nanos(800)).expect("it begins at 600");
    /// assert_eq!((half.time, half.hits), (Nanos(100), 0));
    /// assert_eq!(sample.within(Nanos(0), Nanos(600)), None);
    /// ```
    pub fn within(&self, from: Nanos, to: Nanos) -> Option<Sample> {
        let (before, until) = (self.time_before(from), self.time_before(to));
        let time = Nanos(until.0 - before.0);
        let hits = if from < self.clock && self.clock <= to { self.hits } else { 0 };
        if time.0 == 0 && hits == 0 {
            return None;
        }
        let (begin, clock) = (self.begin().max(from), self.clock.min(to));
        let spread = Nanos(clock.0.saturating_sub(begin.0).saturating_sub(time.0));
        Some(Sample { clock, time, spread, hits, ..*self })
    }
}

impl Recording {
    /// Whether its samples have times. Those that were converted from other formats have counts only. An empty recording counts as timed.
    pub fn is_timed(&self) -> bool {
        self.info.delay.0 > 0 || self.samples.is_empty()
    }

    /// Adds a sample. It is merged into the previous one if it [continues](Sample::is_continued_by) that.
    ///
    /// Returns whether a new entry was added.
    pub fn push(&mut self, sample: Sample) -> bool {
        if let Some(last) = self.samples.last_mut()
            && last.is_continued_by(&sample)
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
