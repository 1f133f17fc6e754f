//! The parts of which a peek is made, on their way to the text.

use foldhash::HashMap;
use stackglass_profile::{Activity, Recording};
use std::time::Duration;

/// A piece of a peek, ready to be shown.
pub enum PeekPart {
    /// What all threads do now.
    Threads {
        /// Their last stacks.
        recording: Recording,
        /// More about each thread, by its kernel id.
        activity: HashMap<u32, Activity>,
        /// How long the profile takes that follows; `None`: one goes on already.
        profile: Option<Duration>,
    },
    /// The profile.
    Report {
        /// Of one process, for as long as the peek took.
        recording: Recording,
        /// The process has ended, or the recording of it, before the peek should.
        early: bool,
    },
    /// There is nothing to be shown, and why.
    Nothing {
        /// A line for people.
        why: String,
    },
}
