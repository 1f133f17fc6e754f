//! How much is stored and how often samples are taken.

use std::time::Duration;

/// Words that are stored at the most, unless [`init`](crate::init) says otherwise.
pub const DEFAULT_N: u64 = 10_000_000;

/// Time between two samples of a thread, unless [`init`](crate::init) says otherwise.
pub const DEFAULT_DELAY: Duration = Duration::from_millis(1);

/// The shortest delay that is accepted: 10 kHz.
pub const SHORTEST_DELAY: Duration = Duration::from_micros(100);

/// The settings that [`init`](crate::init) returns.
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
