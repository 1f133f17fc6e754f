//! Starting a program and following it to its end: the command's way.
//!
//! [`record`] makes a [session], [starts](start) the program with the preload library,
//! [reads](drain) the streams of all its processes, writes the recording as it grows, passes
//! [signals] on, and leaves with the program's own end. Everything that can be refused is
//! refused before the program starts; after that the program always runs.

mod answers;
pub mod bus_guard;
pub mod clearing;
pub mod drain;
mod follow;
mod found;
mod left_out;
pub mod library;
mod means;
pub(crate) mod moment;
mod peeks;
pub mod program;
mod ready;
pub(crate) mod recording_file;
mod requests;
pub mod session;
pub mod signals;
pub mod start;
pub mod stream_file;

pub use follow::{pass_on, record};
pub use library::Library;
pub use means::Sampler;
pub use peeks::PeekPart;
pub use program::{NotStartable, Obstacle, Program};
pub use ready::run;

use crate::peek_answer::Audience;
use stackglass_files::{Totals, WriteError};
use stackglass_profile::{End, Recording};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What to record and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program.
    pub program: Program,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The folder it starts in; `None`: ours.
    pub folder: Option<PathBuf>,
    /// Environment variables that it gets beside ours.
    pub variables: Vec<(OsString, OsString)>,
    /// Unpacks the preload library, where it is needed; why not, if it cannot.
    pub library: fn() -> Result<Library, String>,
    /// How the program is sampled; `None`: as is best here.
    pub sampler: Option<Sampler>,
    /// The recording's file.
    pub output: PathBuf,
    /// Time between two looks at a thread.
    pub delay: Duration,
    /// Words that may be stored; 0: not bounded.
    pub capacity: u64,
    /// Sampling ends after this time; the program goes on.
    pub duration: Option<Duration>,
    /// Sampling begins after this time.
    pub delay_start: Option<Duration>,
    /// Follow children and the images they exec.
    pub follow_children: bool,
    /// How long the profile of a peek takes.
    pub peek: Duration,
    /// A wall-time profile: each tick looks at one live async task, whatever it does.
    pub walltime: bool,
    /// Name and version of the program that writes the recording.
    pub writer: String,
}

/// How the recording fares, told a few times a second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Time since the start.
    pub elapsed: Duration,
    /// Stacks taken so far.
    pub samples: u64,
    /// Processes that are sampled now.
    pub processes: usize,
    /// Threads that have not ended.
    pub threads: u64,
    /// Threads that ran at a time, on average since the last call.
    pub running: f64,
    /// Share of the stacks that are cut, 0 to 1.
    pub cut: f64,
    /// Sampling has begun (see [`Options::delay_start`]).
    pub sampling: bool,
}

/// Where a recording was saved.
#[derive(Debug)]
pub struct Saved {
    /// The file.
    pub path: PathBuf,
    /// What lies in it; `None` when it could not be written to its end (the observer was told why).
    pub totals: Option<Totals>,
}

/// Somebody who is told what happens.
pub trait Observer {
    /// A few times a second while the program runs.
    fn progress(&mut self, progress: &Progress) {
        let _ = progress;
    }

    /// We are about to be stopped (Ctrl-Z); the terminal is somebody else's until the next call.
    fn suspended(&mut self) {}

    /// The recording is complete as it was asked for, the program runs on: one line for people who watch.
    fn waiting(&mut self, line: &str) {
        let _ = line;
    }

    /// One line for people.
    fn note(&mut self, line: &str);

    /// The recording is complete (the program may still run, see [`Options::duration`]).
    fn recorded(&mut self, recording: &Recording, saved: &Saved);

    /// Somebody peeked at process `pid`: part of the answer, and for whom it is.
    fn peek(&mut self, pid: u32, part: &PeekPart, audience: &Audience);

    /// A recording as of now was asked for; the program goes on.
    fn snapshot(&mut self, recording: &Recording, saved: &Saved);
}

/// Nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The file for the recording cannot be made.
    #[error(transparent)]
    Output(#[from] WriteError),
    /// There is no place for the session.
    #[error("no folder for the session can be made in /dev/shm, $XDG_RUNTIME_DIR or /tmp: {0}")]
    Session(std::io::Error),
    /// The preload library is needed and cannot be unpacked.
    #[error("{0}")]
    Library(String),
    /// Signals cannot be read.
    #[error("cannot watch for signals: {0}")]
    Signals(std::io::Error),
    /// The program cannot be started.
    #[error("{}: {error}", program.to_string_lossy())]
    Start {
        /// Its name.
        program: OsString,
        /// What the kernel said.
        error: std::io::Error,
    },
}

impl LaunchError {
    /// The status a shell would end with when it is the program that cannot be started: 127 for a
    /// missing one (or a missing loader of it), 126 for one that the kernel refuses.
    pub fn program_status(&self) -> Option<i32> {
        match self {
            LaunchError::Start { error, .. } if error.kind() == std::io::ErrorKind::NotFound => Some(127),
            LaunchError::Start { .. } => Some(126),
            _ => None,
        }
    }
}

/// The status a shell would show for `end`: 128+N for signal N.
pub fn exit_status(end: End) -> i32 {
    match end {
        End::Exit(status) => status,
        End::Signal(number) => 128 + number,
        End::Running => 0,
    }
}
