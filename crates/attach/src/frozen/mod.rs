//! The memory of a process at one moment, read without holding the process up.
//!
//! [`FrozenProcess::copy`] stops all threads of a process for some milliseconds, makes one of them call clone(2), and lets them
//! continue. The new process never runs. Its memory is that of the moment of the stop, by copy-on-write, and is read by
//! `/proc/PID/mem` at leisure. The program notices nothing: interrupted calls are made again, and the copy has no descriptors and mapped files,
//! sends the program no SIGCHLD and is no child that it finds. Init adopts and reaps it. In a container, the program is
//! its parent, and is stopped once more to reap it. If this process dies at any moment, the program continues, and the copy ends.
//!
//! [`FrozenProcess::stop`] gives the same view of the process itself while it stays stopped, where no copy can be had.
//!
//! [`FrozenProcess::of_pages`] reads only some pages while the process stands still. There is no second process.
//!
//! Pages that the program writes while a copy lives are duplicated, which costs the program some microseconds each. End the copy
//! soon.

mod call_registers;
mod code;
mod copy;
mod copy_resources;
mod error;
mod frame;
mod frozen_threads;
mod inject;
mod lender;
mod memory;
mod memory_files;
mod own_copies;
mod page_reader;
mod redirected;
mod request;
mod signal_mask;
mod sleeper;
mod stop;
mod task;
mod traced;
mod tracer;
mod unwritten;
mod user_code;
mod working_set;

pub use error::FreezeError;
pub use memory::ProcessMemory;
pub use memory_files::Page;
pub use own_copies::is_own_copy;
pub(crate) use request::is_wanted as copy_is_wanted;
pub use stackglass_procfs::maps::Mapping;
pub(crate) use stop::release;
pub use working_set::{OtherPages, WorkingSet};

use stackglass_proc_text::SchedStat;
use stackglass_procfs::ImageKey;
use stackglass_procfs::threads::{self, Files};
use std::time::{Duration, Instant};
use tracer::{Kind, Tracer};

/// How long attempts go on while a thread runs that cannot be stopped.
const LONGEST_MASKED: Duration = Duration::from_secs(3);
/// Time between two of them, in which the program runs: many times as long as an attempt.
const BETWEEN_MASKED: Duration = Duration::from_millis(80);

/// How a process is stopped and copied.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long to wait for others that trace the process. A sampler of Stackglass lets it go for the moment of the copy.
    pub wait: Duration,
    /// Threads are stopped wherever they are. Their calls may return early, with less data than asked for.
    pub interrupt_calls: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { wait: Duration::from_secs(5), interrupt_calls: false }
    }
}

/// A thread at the moment of the stop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrozenThread {
    /// Kernel id.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// General registers in the order of `struct user_regs_struct`; those that are not known are `u64::MAX`. `None` if the thread
    /// was busy in a system call, and this user may not sample it there.
    pub registers: Option<[u64; 27]>,
}

/// How long threads were held up.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Pause {
    /// From the request to stop until all threads had stopped.
    pub stop: Duration,
    /// Making the copy.
    pub clone: Duration,
    /// The longest time that a thread was stopped; for a stopped process, until all were. It may be too long by the time between
    /// two observations of the thread, and is never too short.
    pub whole: Duration,
}

/// A process that does not run.
struct View {
    pid: u32,
    threads: Vec<FrozenThread>,
    mappings: Vec<Mapping>,
    memory: ProcessMemory,
    pause: Pause,
    /// Threads that sleep and are not held, and how much they had run: those of a stopped process whose pages are read, and those of
    /// sleepers that are read themselves.
    unwatched: Vec<(u32, SchedStat)>,
}

/// A process that does not run: a copy, or the process itself. Dropping it ends the copy, or lets the process continue. So does
/// the end of this process.
pub struct FrozenProcess {
    view: View,
    /// `None` for a process that is not held up.
    tracer: Option<Tracer>,
    /// What the process runs.
    image: Option<ImageKey>,
    is_copy: bool,
}

impl FrozenProcess {
    /// A process all of whose threads sleep, and that is not held up. Whether they have run meanwhile is for the caller to
    /// check.
    ///
    /// # Errors
    /// If its memory may not be read.
    pub fn of_sleepers(pid: u32, threads: Vec<FrozenThread>) -> Result<FrozenProcess, FreezeError> {
        let io = |error| FreezeError::Io { what: "the memory of the process cannot be read", error };
        let memory = ProcessMemory::open(pid).map_err(io)?;
        let mappings = stackglass_procfs::maps::read(pid).map_err(io)?;
        let view = View { pid, threads, mappings, memory, pause: Pause::default(), unwatched: Vec::new() };
        Ok(FrozenProcess { view, tracer: None, image: ImageKey::read(pid), is_copy: false })
    }

    /// Copies a process. The copy also ends when the program ends or executes another. If the process is a child of this process,
    /// no other thread may wait for it meanwhile without `WNOWAIT`: it would consume the report of a stop.
    ///
    /// # Errors
    /// If the process may not be traced or cannot be copied. The message names the remedy.
    pub fn copy(pid: u32, options: &Options) -> Result<FrozenProcess, FreezeError> {
        FrozenProcess::start(pid, Kind::Copy, options)
    }

    /// Stops a process until this value is dropped.
    ///
    /// # Errors
    /// If the process may not be traced.
    pub fn stop(pid: u32, options: &Options) -> Result<FrozenProcess, FreezeError> {
        FrozenProcess::start(pid, Kind::Stop, options)
    }

    /// Reads the working set of earlier snapshots and the tops of all stacks while the process stands still; then it continues,
    /// unless `others` keeps it stopped. What is read of this value comes into the working set.
    ///
    /// # Errors
    /// If the process may not be traced.
    pub fn of_pages(
        pid: u32,
        set: &WorkingSet,
        others: OtherPages,
        options: &Options,
    ) -> Result<FrozenProcess, FreezeError> {
        FrozenProcess::start(pid, Kind::Pages(set.clone(), others), options)
    }

    fn start(pid: u32, kind: Kind, options: &Options) -> Result<FrozenProcess, FreezeError> {
        let image = ImageKey::read(pid);
        let (is_held_up, is_copy) = (kind.holds_up(), matches!(kind, Kind::Copy));
        let is_repeated = !matches!(kind, Kind::Pages(..));
        let until = Instant::now() + LONGEST_MASKED;
        let (tracer, view) = loop {
            match Tracer::start(pid, kind.clone(), options) {
                // The others have waited for this thread, and run meanwhile.
                Err(FreezeError::BlocksSignals { .. }) if is_repeated && Instant::now() < until => {
                    std::thread::sleep(BETWEEN_MASKED);
                }
                started => break started?,
            }
        };
        Ok(FrozenProcess { view, tracer: Some(tracer).filter(|_| is_held_up), image, is_copy })
    }

    /// The process that was copied or stopped.
    pub fn pid(&self) -> u32 {
        self.view.pid
    }

    /// Its threads at that moment; the main thread is the first, unless it had ended.
    pub fn threads(&self) -> &[FrozenThread] {
        &self.view.threads
    }

    /// Its mappings, by address.
    pub fn mappings(&self) -> &[Mapping] {
        &self.view.mappings
    }

    /// Its memory. That of a copy lacks [`given_back`](Self::given_back).
    pub fn memory(&self) -> &ProcessMemory {
        &self.view.memory
    }

    /// Whether all threads slept, and none was held up.
    pub fn is_of_sleepers(&self) -> bool {
        self.view.pause.whole.is_zero()
    }

    /// Whether the memory is that of a copy, or of a process that is stopped: not that of a process whose threads have slept until now.
    fn is_held(&self) -> bool {
        !self.is_copy || !threads::list(self.view.pid).contains(&self.view.memory.files().tid())
    }

    /// Whether all threads have slept since the copy was asked for, so that there is none yet: it is made when one wakes.
    pub fn sleeps(&self) -> bool {
        self.is_of_sleepers() && !self.is_held()
    }

    /// Whether a thread that was not caught when it woke has changed the memory, or may have.
    pub fn has_changed(&self) -> bool {
        !self.is_held() && self.unwatched_have_run()
    }

    fn unwatched_have_run(&self) -> bool {
        let has_run = |(tid, ran): &(u32, SchedStat)| Files::new(self.view.pid, *tid).stat() != Some(*ran);
        self.view.unwatched.iter().any(has_run)
    }

    /// The mappings that a copy lacks, since it would keep in use what they map: shared memory, and files that are mapped to be read. By
    /// address. None, if this is no copy.
    pub fn given_back(&self) -> Vec<Mapping> {
        let mappings = self.mappings().iter().zip(copy_resources::are_given_back(self.mappings()));
        let given_back = mappings.filter(|(_, is_given_back)| self.is_copy && *is_given_back);
        given_back.map(|(mapping, _)| mapping.clone()).collect()
    }

    /// Whether this is a copy, which lacks what the program excludes from copies.
    pub fn is_copy(&self) -> bool {
        self.is_copy
    }

    /// Whether what was read is not all that was to be read, at one moment: pages were needed that were not read while the process
    /// stood still, or a thread ran meanwhile.
    pub fn is_incomplete(&self) -> bool {
        let is_stopped = self.tracer.is_some() && !self.is_copy;
        self.view.memory.is_incomplete() || is_stopped && self.unwatched_have_run()
    }

    /// How long the process was held up.
    pub fn pause(&self) -> Pause {
        self.view.pause
    }

    /// Whether the memory still exists. If not, what was read from it lately may be incomplete.
    pub fn is_alive(&self) -> bool {
        match &self.tracer {
            Some(tracer) => tracer.is_alive(),
            None => {
                let pid = self.view.pid;
                stackglass_procfs::process::is_alive(pid) && ImageKey::read(pid) == self.image
            }
        }
    }

    /// Why the memory no longer exists, if perf events would have been needed to keep it and are refused. It is given once.
    pub fn refused_stops(&self) -> Option<FreezeError> {
        let failure = self.tracer.as_ref().and_then(Tracer::failure);
        failure.filter(|error| matches!(error, FreezeError::NoUserStops { .. }))
    }
}
