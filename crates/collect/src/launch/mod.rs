//! Starts a program and records it to its end.
//!
//! [`record()`] makes a [session](crate::session), [starts](start) the program, samples it with a [backend](Sampler),
//! writes the recording as it grows, passes signals on, and ends with the program's exit status. Whatever can be
//! refused is refused before the program starts; after that, the program always runs.

mod backend;
pub mod drain;
mod environment;
mod heap_at;
mod inherited;
pub mod library;
mod outside_peeks;
pub(crate) mod own_allocator;
mod peek_counts;
pub mod program;
mod record;
mod run;
pub mod start;
mod stolen_time;
pub mod stream_file;
mod stream_peeks;
pub(crate) mod takeover;
mod unaccounted_cpu;
mod unsampled;

pub use backend::Sampler;
pub(crate) use backend::links_the_crate;
pub use heap_at::{HeapAt, HeapAtOptions, SaveSnapshot, SnapshotSummary};
pub use inherited::stdout_was_closed;
pub use library::Library;
pub use program::{NotStartable, Obstacle, Program};
pub use record::{pass_on, record};
pub use run::run;
pub use stackglass_attach::frozen::FrozenProcess;

use crate::allocations::AllocationSettings;
use crate::peeks::request::PeekDefaults;
use stackglass_attach::perf_refused::PerfRefused;
use stackglass_files::WriteError;
use stackglass_profile::End;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What to record, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program.
    pub program: Program,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The folder in which it starts; `None`: the current one.
    pub folder: Option<PathBuf>,
    /// Environment variables that it gets in addition.
    pub variables: Vec<(OsString, OsString)>,
    /// Unpacks the preload library if it is needed. The error says why it cannot.
    pub library: fn() -> Result<Library, String>,
    /// How the program is sampled; `None`: the best way that is possible.
    pub sampler: Option<Sampler>,
    /// Path of the recording.
    pub output: PathBuf,
    /// Time between two samples of a thread.
    pub delay: Duration,
    /// Largest number of words that are stored; 0: no bound.
    pub capacity: u64,
    /// Sampling ends after this time; the program continues.
    pub duration: Option<Duration>,
    /// Sampling begins after this time.
    pub delay_start: Option<Duration>,
    /// Record children and what they exec.
    pub follow_children: bool,
    /// Duration of the profile of a peek.
    pub peek: Duration,
    /// A wall-time profile: where async tasks spend their time, running or waiting.
    pub walltime: bool,
    /// Record allocations, and which.
    pub allocations: Option<AllocationSettings>,
    /// Heap snapshots of the program.
    pub heap_at: Option<HeapAtOptions>,
    /// Take samples of time. Without, only allocations are recorded.
    pub time: bool,
    /// Name and version of the program that writes the recording.
    pub writer: String,
}

impl Options {
    fn peek_defaults(&self) -> PeekDefaults {
        PeekDefaults { duration: self.peek, delay: self.delay }
    }
}

/// Why no program was started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The recording's file cannot be created.
    #[error(transparent)]
    Output(#[from] WriteError),
    /// No session folder can be created.
    #[error("no folder for the session can be made in /dev/shm, $XDG_RUNTIME_DIR or /tmp: {0}")]
    Session(#[source] std::io::Error),
    /// The preload library is needed and cannot be unpacked.
    #[error("{0}")]
    Library(String),
    /// Perf events are refused, and no other sampler is asked for.
    #[error("{0}, so running threads cannot be sampled without interrupting their system calls")]
    NoPerf(PerfRefused),
    /// The events that stop threads in user code are refused.
    #[error("{0}, so a running program cannot be copied without interrupting its system calls")]
    NoStops(PerfRefused),
    /// The sampler reads /proc, and there is none.
    #[error(
        "/proc is not mounted here, and only --sampler perf works without it: `mount -t proc proc /proc`"
    )]
    NoProc,
    /// Signals cannot be received.
    #[error("cannot watch for signals: {0}")]
    Signals(#[source] std::io::Error),
    /// The program cannot be started.
    #[error("{}: {error}", program.to_string_lossy())]
    Start {
        /// Its name.
        program: OsString,
        /// The error of the kernel.
        #[source]
        error: std::io::Error,
    },
}

impl LaunchError {
    /// The exit status of a shell if the program cannot be started: 127 if it (or its loader) is missing, 126 if the
    /// kernel refuses it.
    pub fn program_status(&self) -> Option<i32> {
        match self {
            LaunchError::Start { error, .. } if error.kind() == std::io::ErrorKind::NotFound => Some(127),
            LaunchError::Start { .. } => Some(126),
            _ => None,
        }
    }
}

/// The exit status of a shell for `end`: 128+N for signal N.
pub fn exit_status(end: End) -> i32 {
    match end {
        End::Exit(status) => status,
        End::Signal(number) => 128 + number,
        End::Running => 0,
    }
}
