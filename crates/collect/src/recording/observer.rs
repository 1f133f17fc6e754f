//! What a recording reports to the command while it grows.

use super::progress::Progress;
use crate::peeks::PeekPart;
use crate::peeks::responder::Responder;
use stackglass_files::Totals;
use stackglass_profile::Recording;
use std::path::PathBuf;

/// A file to which a recording was saved.
#[derive(Debug)]
pub struct Saved {
    /// Its path.
    pub path: PathBuf,
    /// Its contents; `None` if it could not be written completely (a note has said why).
    pub totals: Option<Totals>,
}

/// Receives what happens during a recording.
pub trait Observer {
    /// Called a few times a second.
    fn progress(&mut self, progress: &Progress) {
        let _ = progress;
    }

    /// This process is about to be stopped (Ctrl-Z): the terminal belongs to another process until the next call.
    fn suspended(&mut self) {}

    /// The recording is complete, but the program is still running: a line for the user who waits.
    fn waiting(&mut self, line: &str) {
        let _ = line;
    }

    /// A line for the user.
    fn note(&mut self, line: &str);

    /// The recording is complete. The program may still be running.
    fn recorded(&mut self, recording: &Recording, saved: &Saved);

    /// A part of a peek at process `pid`, to be sent by `responder`.
    fn peek(&mut self, pid: u32, part: &PeekPart, responder: &Responder);

    /// A snapshot was requested and saved; the recording goes on.
    fn snapshot(&mut self, recording: &Recording, saved: &Saved);
}
