//! Starting a program and following it to its end: the command's way.
//!
//! [`record()`] makes a [session](crate::session), [starts](start) the program, samples it with a [backend](Sampler),
//! writes the recording as it grows, passes signals on, and leaves with the program's own end. Everything that can be refused is
//! refused before the program starts; after that the program always runs.

mod backend;
pub mod drain;
mod inherited;
pub mod library;
mod outside_peeks;
mod peek_counts;
pub mod program;
mod record;
mod run;
pub mod start;
pub mod stream_file;
mod stream_peeks;
mod unaccounted_cpu;

pub use backend::Sampler;
pub use library::Library;
pub use program::{NotStartable, Obstacle, Program};
pub use record::{pass_on, record};
pub use run::run;

use crate::peeks::request::PeekDefaults;
use stackglass_files::WriteError;
use stackglass_profile::End;
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

impl Options {
    fn peek_defaults(&self) -> PeekDefaults {
        PeekDefaults { duration: self.peek, delay: self.delay }
    }
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
