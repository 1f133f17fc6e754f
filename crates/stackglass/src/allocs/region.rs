//! A recorded region that cannot fail, for `allocs::profile!`.

use super::{Options, running};
use stackglass_profile::sanitize;
use std::sync::atomic::{AtomicBool, Ordering};

/// Allocations are recorded as long as it exists, if that could start.
#[must_use = "recording ends when this is dropped"]
#[derive(Debug)]
pub struct Region {
    _stops: (),
}

/// The reason why recording could not start is printed once.
static TOLD: AtomicBool = AtomicBool::new(false);

impl Region {
    /// Starts recording, or prints on standard error why it cannot.
    pub fn enter(options: Options) -> Region {
        if let Err(error) = running::start(options)
            && !TOLD.swap(true, Ordering::Relaxed)
        {
            eprintln!("stackglass: not recording allocations: {}", sanitize(&error.to_string()));
        }
        Region { _stops: () }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        running::stop();
    }
}
