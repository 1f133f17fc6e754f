//! Why no program was started. Whatever can be refused is refused before.

use stackglass_attach::perf_refused::PerfRefused;
use stackglass_files::WriteError;
use std::ffi::OsString;

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
