//! How much is stored and how often samples are taken.

use std::time::Duration;

/// Largest number of words that are stored, unless [`init`](crate::init) sets another one.
pub const DEFAULT_N: u64 = 10_000_000;

/// Time between two samples of a thread, unless [`init`](crate::init) sets another one.
pub const DEFAULT_DELAY: Duration = Duration::from_millis(1);

/// Shortest delay that is accepted: 10 kHz.
pub const SHORTEST_DELAY: Duration = Duration::from_micros(100);

/// The settings that [`init`](crate::init) returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Words of 8 bytes that may be stored for all threads together. Stacks are stored once, samples are run-length
    /// encoded.
    pub n: u64,
    /// Time between two samples of a thread.
    pub delay: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { n: DEFAULT_N, delay: DEFAULT_DELAY }
    }
}
