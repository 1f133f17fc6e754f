//! The parts of a peek's result.

use foldhash::HashMap;
use stackglass_profile::{Activity, Recording};
use std::time::Duration;

/// A part of a peek's result, symbolized.
pub enum PeekPart {
    /// What all threads do now.
    Threads {
        /// The last stack of each thread.
        recording: Recording,
        /// Details of each thread, by its kernel id.
        activity: HashMap<u32, Activity>,
        /// Duration of the profile that follows; `None` if it runs already.
        profile: Option<Duration>,
    },
    /// The profile.
    Report {
        /// The samples of one process during the peek.
        recording: Recording,
        /// The process or its recording ended before the peek.
        early: bool,
    },
    /// There are no stacks.
    Nothing {
        /// The reason, in one line for the user.
        why: String,
    },
}
