//! A profiled region that cannot fail, for `profile!` and `profile()`.

use crate::{Profiler, StartError};
use stackglass_profile::sanitize;
use std::sync::atomic::{AtomicBool, Ordering};

/// Samples as long as it exists, if sampling could start.
#[must_use = "sampling ends when this is dropped"]
pub struct Region {
    _profiler: Option<Profiler>,
}

/// The reason why sampling could not start is printed once, not at each of a million calls.
static TOLD: AtomicBool = AtomicBool::new(false);

impl Region {
    /// Starts sampling, or prints on standard error why it cannot.
    pub fn enter() -> Region {
        Region::from_started(Profiler::start())
    }

    /// The same for a wall-time profile.
    pub fn enter_walltime() -> Region {
        Region::from_started(Profiler::start_walltime())
    }

    fn from_started(started: Result<Profiler, StartError>) -> Region {
        let profiler = started.map_err(|error| {
            if !TOLD.swap(true, Ordering::Relaxed) {
                eprintln!("stackglass: not sampling: {}", sanitize(&error.to_string()));
            }
        });
        Region { _profiler: profiler.ok() }
    }
}

/// Profiles a closure and returns its value, as [`profile!`](crate::profile!) does for an expression.
///
/// ```
/// let sum = stackglass::profile(|| (1..=10).sum::<u32>());
/// assert_eq!(sum, 55);
/// ```
pub fn profile<T>(work: impl FnOnce() -> T) -> T {
    let _region = Region::enter();
    work()
}
