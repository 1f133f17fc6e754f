//! A profiled region that cannot fail: the implementation of `profile!` and `profile()`.

use crate::{Profiler, StartError};
use stackglass_profile::harmless;
use std::sync::atomic::{AtomicBool, Ordering};

/// Samples while it exists; has no effect if sampling cannot be started.
#[must_use = "sampling ends when this is dropped"]
pub struct Region {
    _profiler: Option<Profiler>,
}

/// The reason is printed once, not at each call.
static TOLD: AtomicBool = AtomicBool::new(false);

impl Region {
    /// Starts the sampling, or prints on standard error why not.
    pub fn enter() -> Region {
        Region::of(Profiler::start())
    }

    /// The same for a wall-time profile.
    pub fn enter_walltime() -> Region {
        Region::of(Profiler::start_walltime())
    }

    fn of(started: Result<Profiler, StartError>) -> Region {
        let profiler = started.map_err(|error| {
            if !TOLD.swap(true, Ordering::Relaxed) {
                eprintln!("stackglass: not sampling: {}", harmless(&error.to_string()));
            }
        });
        Region { _profiler: profiler.ok() }
    }
}

/// Profiles a closure and returns its value; like [`profile!`](crate::profile!) for an expression.
///
/// ```
/// let sum = stackglass::profile(|| (1..=10).sum::<u32>());
/// assert_eq!(sum, 55);
/// ```
pub fn profile<T>(work: impl FnOnce() -> T) -> T {
    let _region = Region::enter();
    work()
}
