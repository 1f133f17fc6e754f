//! A guard that starts and stops a profile, and returns an error if it cannot start.

use crate::{ProfileKind, StartError, running};

/// Sampling lasts as long as at least one guard exists.
///
/// Guards are counted: they may nest and exist on several threads. All fill one buffer, and the last one that is dropped stops
/// sampling.
///
/// ```
/// let profiler = stackglass::Profiler::start()?;
/// assert!(stackglass::is_running());
/// profiler.stop();
/// assert!(!stackglass::is_running());
/// # Ok::<(), stackglass::StartError>(())
/// ```
#[derive(Debug)]
#[must_use = "sampling ends when this is dropped"]
pub struct Profiler {
    _counted: (),
}

impl Profiler {
    /// Starts sampling all threads of this process, or joins the profile that runs.
    ///
    /// Under `stackglass record` it succeeds and does nothing, because the command samples.
    ///
    /// # Errors
    /// If the sampler cannot run, the buffer is full, or a wall-time profile runs.
    pub fn start() -> Result<Profiler, StartError> {
        running::enter(ProfileKind::Threads)?;
        Ok(Profiler { _counted: () })
    }

    /// Starts a wall-time profile, or joins the one that runs. See [`profile_walltime!`](crate::profile_walltime!).
    ///
    /// # Errors
    /// As [`Profiler::start`], or if a profile of threads runs.
    pub fn start_walltime() -> Result<Profiler, StartError> {
        running::enter(ProfileKind::Walltime)?;
        Ok(Profiler { _counted: () })
    }

    /// Like [`Profiler::start`], and writes the samples to a recording at `path` while it runs, so that they survive a crash of
    /// the process. `stackglass print PATH` shows it. It is complete, with names, when the last guard stops.
    ///
    /// # Errors
    /// As [`Profiler::start`], or if the file cannot be created, or another profile is being written.
    #[cfg(feature = "files")]
    pub fn to_file(path: impl AsRef<std::path::Path>) -> Result<Profiler, StartError> {
        running::enter_with_file(path.as_ref())?;
        Ok(Profiler { _counted: () })
    }

    /// Ends this guard, as dropping it does.
    pub fn stop(self) {}
}

impl Drop for Profiler {
    fn drop(&mut self) {
        running::leave();
    }
}
