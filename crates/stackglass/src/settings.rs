//! How many words are stored and how often samples are taken.

use std::time::Duration;

/// Default of `n`: the most words that are stored.
pub const DEFAULT_N: u64 = 10_000_000;

/// Default delay: the time between two samples of a thread.
pub const DEFAULT_DELAY: Duration = Duration::from_millis(1);

/// The shortest allowed delay (10 kHz).
pub const SHORTEST_DELAY: Duration = Duration::from_micros(100);

/// The settings that [`init`](crate::init) returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Words of 8 bytes that may be stored for all threads. Each stack is stored once, and samples are run-length encoded.
    pub n: u64,
    /// Time between two samples of a thread.
    pub delay: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { n: DEFAULT_N, delay: DEFAULT_DELAY }
    }
}

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
