//! Errors of setting up and starting a profile.

use std::time::Duration;

/// An error of [`init`](crate::init).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InitError {
    /// The delay is too short. Each sample costs about 12 µs, so the profile would show too much of the profiler.
    #[error(
        "a delay of {asked:?} is too short: more than 10 000 samples a second would slow the program down so much that the profile would be wrong; use 100 µs or more"
    )]
    TooFast {
        /// The requested value.
        asked: Duration,
    },
    /// `n` is zero.
    #[error("n = 0 leaves no room for samples; use a million words or more")]
    NoRoom,
    /// Settings cannot change while a profile runs.
    #[error("a profile is running; stop it before changing n or delay")]
    Running,
}

/// An error of starting a profile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The system refused something that the sampler needs.
    #[error("the sampler cannot run in this process: {0}")]
    Sampler(String),
    /// The thread that reads the samples could not start.
    #[error("cannot start the thread that reads the samples: {0}")]
    Collector(#[source] std::io::Error),
    /// The buffer is full already.
    #[error("the buffer is full; stackglass::clear() empties it, stackglass::init() makes it larger")]
    Full,
    /// A profile of the other kind is running.
    #[error(
        "a {running} is running, and one process has one profile at a time; stop it before starting a {asked}"
    )]
    OtherKind {
        /// The running profile.
        running: ProfileKind,
        /// The requested value.
        asked: ProfileKind,
    },
    /// Another file is already being written.
    #[error("samples are already being written to {0}; stop that profile first")]
    OtherFile(std::path::PathBuf),
    /// The file cannot be written.
    #[cfg(feature = "files")]
    #[error(transparent)]
    File(#[from] stackglass_files::WriteError),
}

/// The two kinds of profiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProfileKind {
    /// Each tick samples every thread: [`profile!`](crate::profile!).
    Threads,
    /// Each tick samples one live task: [`profile_walltime!`](crate::profile_walltime!).
    Walltime,
}

impl std::fmt::Display for ProfileKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ProfileKind::Threads => "profile of threads (profile!)",
            ProfileKind::Walltime => "wall-time profile (profile_walltime!)",
        })
    }
}
