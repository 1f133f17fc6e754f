//! A profiled region that cannot fail: what `profile!` and `profile()` stand on.

use crate::{Profiler, StartError};
use stackglass_profile::harmless;
use std::sync::atomic::{AtomicBool, Ordering};

/// Sampling as long as this lives; nothing where it could not be started.
#[must_use = "sampling ends when this is dropped"]
pub struct Region {
    _profiler: Option<Profiler>,
}

/// The reason why nothing is sampled is told once, not at each of a million calls.
static TOLD: AtomicBool = AtomicBool::new(false);

impl Region {
    /// Starts, or says on standard error why not.
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

/// Profiles a closure and gives back its value; like [`profile!`](crate::profile!) for an expression.
///
/// ```
/// let sum = stackglass::profile(|| (1..=10).sum::<u32>());
/// assert_eq!(sum, 55);
/// ```
pub fn profile<T>(work: impl FnOnce() -> T) -> T {
    let _region = Region::enter();
    work()
}
