//! Explicit control: a guard whose start can fail.

use crate::{ProfileKind, StartError, running};

/// Sampling continues while at least one of these exists.
///
/// Guards may nest and live on several threads. All fill one buffer, and sampling stops with the last one.
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
    /// Starts to sample all threads of this process, or joins the running profile.
    ///
    /// Under `stackglass record`, the command samples the program: this call then succeeds and has no effect.
    ///
    /// # Errors If the sampler cannot run here, the buffer is full, or a wall-time profile runs.
    pub fn start() -> Result<Profiler, StartError> {
        running::enter(ProfileKind::Threads)?;
        Ok(Profiler { _counted: () })
    }

    /// Starts a wall-time profile, or joins the running one: see [`profile_walltime!`](crate::profile_walltime!).
    ///
    /// # Errors Those of [`Profiler::start`]; also while a profile of threads runs.
    pub fn start_walltime() -> Result<Profiler, StartError> {
        running::enter(ProfileKind::Walltime)?;
        Ok(Profiler { _counted: () })
    }

    /// Like [`Profiler::start`], and also writes the samples to a recording at `path` while they are taken, so that
    /// they survive a crash of the process. `stackglass print PATH` shows it. The file is complete, with symbols,
    /// when the last guard is dropped.
    ///
    /// # Errors Those of [`Profiler::start`]; also if the file cannot be created, or another file is being written.
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
