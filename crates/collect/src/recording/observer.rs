//! What a recording tells the command while it grows.

use crate::peeks::PeekPart;
use crate::peeks::responder::Responder;
use stackglass_files::Totals;
use stackglass_profile::Recording;
use std::path::PathBuf;
use std::time::Duration;

/// How the recording fares, told a few times a second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Time since the start.
    pub elapsed: Duration,
    /// Stacks taken so far.
    pub samples: u64,
    /// Processes that are sampled now.
    pub processes: usize,
    /// Threads that have not ended.
    pub threads: u64,
    /// Threads that ran at a time, on average since the last call.
    pub running: f64,
    /// Share of the stacks that are cut, 0 to 1.
    pub cut: f64,
    /// Sampling has begun (see [`Options::delay_start`]).
    pub sampling: bool,
}

/// Where a recording was saved.
#[derive(Debug)]
pub struct Saved {
    /// The file.
    pub path: PathBuf,
    /// What lies in it; `None` when it could not be written to its end (the observer was told why).
    pub totals: Option<Totals>,
}

/// Somebody who is told what happens.
pub trait Observer {
    /// A few times a second while the program runs.
    fn progress(&mut self, progress: &Progress) {
        let _ = progress;
    }

    /// We are about to be stopped (Ctrl-Z); the terminal is somebody else's until the next call.
    fn suspended(&mut self) {}

    /// The recording is complete as it was asked for, the program runs on: one line for people who watch.
    fn waiting(&mut self, line: &str) {
        let _ = line;
    }

    /// One line for people.
    fn note(&mut self, line: &str);

    /// The recording is complete (the program may still run, see [`Options::duration`]).
    fn recorded(&mut self, recording: &Recording, saved: &Saved);

    /// Somebody peeked at process `pid`: part of the answer, and for whom it is.
    fn peek(&mut self, pid: u32, part: &PeekPart, responder: &Responder);

    /// A recording as of now was asked for; the program goes on.
    fn snapshot(&mut self, recording: &Recording, saved: &Saved);
}
