//! What is recorded of a program that we start, and how.

use super::heap_at::HeapAtOptions;
use super::library::Library;
use super::program::Program;
use super::sampler::Sampler;
use crate::allocations::AllocationSettings;
use crate::peeks::request::PeekDefaults;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What to record, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program.
    pub program: Program,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The folder in which it starts; `None`: the current one.
    pub folder: Option<PathBuf>,
    /// Environment variables that it gets in addition.
    pub variables: Vec<(OsString, OsString)>,
    /// Unpacks the preload library if it is needed. The error says why it cannot.
    pub library: fn() -> Result<Library, String>,
    /// How the program is sampled; `None`: the best way that is possible.
    pub sampler: Option<Sampler>,
    /// Path of the recording.
    pub output: PathBuf,
    /// Time between two samples of a thread.
    pub delay: Duration,
    /// Largest number of words that are stored; 0: no bound.
    pub capacity: u64,
    /// Sampling ends after this time; the program continues.
    pub duration: Option<Duration>,
    /// Sampling begins after this time.
    pub delay_start: Option<Duration>,
    /// Record children and what they exec.
    pub follow_children: bool,
    /// Duration of the profile of a peek.
    pub peek: Duration,
    /// A wall-time profile: where async tasks spend their time, running or waiting.
    pub walltime: bool,
    /// Record allocations, and which.
    pub allocations: Option<AllocationSettings>,
    /// Heap snapshots of the program.
    pub heap_at: Option<HeapAtOptions>,
    /// Take samples of time. Without, only allocations are recorded.
    pub time: bool,
    /// Name and version of the program that writes the recording.
    pub writer: String,
}

impl Options {
    pub(super) fn peek_defaults(&self) -> PeekDefaults {
        PeekDefaults { duration: self.peek, delay: self.delay }
    }
}
