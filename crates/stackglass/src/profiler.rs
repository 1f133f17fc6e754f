//! Explicit control: a guard that says when it cannot start.

use crate::{ProfileKind, StartError, running};

/// Sampling goes on as long as at least one of these lives.
///
/// Guards count references: they may nest and live on several threads; all fill one buffer, and the
/// last one to go stops the sampling.
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
    /// Under `stackglass record` the command has the sampler: this then succeeds and does nothing more.
    ///
    /// # Errors
    /// When the sampler cannot run here or the buffer is full; while a wall-time profile runs.
    pub fn start() -> Result<Profiler, StartError> {
        running::enter(ProfileKind::Threads)?;
        Ok(Profiler { _counted: () })
    }

    /// Starts a wall-time profile, or joins the one that runs: see [`profile_walltime!`](crate::profile_walltime!).
    ///
    /// # Errors
    /// As [`Profiler::start`]; while a profile of threads runs.
    pub fn start_walltime() -> Result<Profiler, StartError> {
        running::enter(ProfileKind::Walltime)?;
        Ok(Profiler { _counted: () })
    }

    /// Like [`Profiler::start`], and writes what is sampled to a recording at `path` while it runs, so that it
    /// survives a crash of the process. `stackglass print PATH` shows it; it is complete, with names, when the
    /// last guard stops.
    ///
    /// # Errors
    /// As [`Profiler::start`]; when the file cannot be made; when another profile is being written.
    #[cfg(feature = "files")]
    pub fn to_file(path: impl AsRef<std::path::Path>) -> Result<Profiler, StartError> {
        running::enter_with_file(path.as_ref())?;
        Ok(Profiler { _counted: () })
    }

    /// Ends this guard; the same as dropping it.
    pub fn stop(self) {}
}

impl Drop for Profiler {
    fn drop(&mut self) {
        running::leave();
    }
}
