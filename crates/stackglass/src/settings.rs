//! How much and how often: Julia's `init(n, delay)`.

use crate::InitError;
use crate::running;
use std::time::Duration;

/// Words that are stored at the most, unless [`init`] says otherwise.
pub const DEFAULT_N: u64 = 10_000_000;

/// Time between two samples of a thread, unless [`init`] says otherwise.
pub const DEFAULT_DELAY: Duration = Duration::from_millis(1);

/// The shortest delay that is accepted: 10 kHz.
pub const SHORTEST_DELAY: Duration = Duration::from_micros(100);

/// What [`init`] reads back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Words of 8 bytes that may be stored, over all threads: stacks are kept once, samples run-length.
    pub n: u64,
    /// Time between two samples of a thread.
    pub delay: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { n: DEFAULT_N, delay: DEFAULT_DELAY }
    }
}

/// Sets how many words are stored (`n`) and the time between two samples (`delay`), either or both, and reads
/// back what holds now. Setting anything forgets all samples, as in the original.
///
/// # Errors
/// While a profile runs; a delay below [`SHORTEST_DELAY`]; `n` of zero.
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
