//! Comfort for tokio.

use super::instrument;
use tokio::task::JoinHandle;

/// Spawns a future on the current tokio runtime as a task of its own in profiles: `tokio::spawn` with a name.
///
/// # Panics
/// As `tokio::spawn`: outside of a runtime.
#[track_caller]
pub fn spawn<F>(name: impl AsRef<str>, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(instrument(future, name))
}
