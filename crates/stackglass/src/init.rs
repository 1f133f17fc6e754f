//! Julia's `init(n, delay)`.

use crate::settings::{SHORTEST_DELAY, Settings};
use crate::{InitError, running};
use std::time::Duration;

/// Sets the number of stored words (`n`), the time between two samples (`delay`), or both, and returns the settings. Setting
/// any of them forgets all samples, as in Julia.
///
/// # Errors
/// If a profile runs, the delay is below [`SHORTEST_DELAY`], or `n` is zero.
///
/// ```
/// use std::time::Duration;
/// let now = stackglass::init(None, Duration::from_millis(2))?;
/// assert_eq!((now.n, now.delay), (10_000_000, Duration::from_millis(2)));
/// assert_eq!(stackglass::init(None, None)?, now);
/// # Ok::<(), stackglass::InitError>(())
/// ```
pub fn init(n: impl Into<Option<u64>>, delay: impl Into<Option<Duration>>) -> Result<Settings, InitError> {
    let (n, delay) = (n.into(), delay.into());
    if n == Some(0) {
        return Err(InitError::NoRoom);
    }
    if let Some(delay) = delay
        && delay < SHORTEST_DELAY
    {
        return Err(InitError::TooFast { asked: delay });
    }
    running::settings(n, delay)
}
