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
