//! What a recording prints on stderr while it runs and when it ends.

use crate::heap::PeekSnapshots;
use crate::status_line::StatusLine;
use crate::track_allocation::{TrackFlags, write_mem_files};
use crate::view::LivePage;
use crate::{message, peek_text, summary};
use stackglass_collect::peeks::PeekPart;
use stackglass_collect::peeks::responder::Responder;
use stackglass_collect::recording::{Observer, Progress, Saved};
use stackglass_profile::Recording;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Shows the status line, notes, peeks and the report.
pub(crate) struct RecordingObserver {
    status_line: StatusLine,
    quiet: bool,
    track: TrackFlags,
    snapshots: PeekSnapshots,
    /// The recording to show while it grows, until it is shown.
    to_view: Option<PathBuf>,
    page: LivePage,
}

impl RecordingObserver {
    /// With `quiet`, only notes and peeks are shown.
    pub(crate) fn new(quiet: bool) -> RecordingObserver {
        RecordingObserver {
            status_line: StatusLine::new(quiet),
            quiet,
            track: TrackFlags::default(),
            snapshots: PeekSnapshots::default(),
            to_view: None,
            page: LivePage::default(),
        }
    }

    /// Also writes bytes by line.
    pub(crate) fn tracking(mut self, track: TrackFlags) -> RecordingObserver {
        self.track = track;
        self
    }

    /// Also shows the recording as a page while it grows, if that is `wanted`.
    pub(crate) fn viewing(mut self, recording: &Path, wanted: bool) -> RecordingObserver {
        self.to_view = wanted.then(|| recording.to_owned());
        self
    }

    /// Returns when the page is closed, if there is one.
    pub(crate) fn wait_for_page(self) {
        self.page.wait();
    }

    /// Shows the page, if it is not there yet. There is a file now: one that was there before is not shown.
    fn show_page(&mut self) {
        if let Some(recording) = self.to_view.take() {
            self.page = LivePage::of(&recording);
        }
    }

    fn report(&mut self, recording: &Recording, saved: &Saved) {
        self.status_line.clear();
        if !self.quiet {
            // Above the report, whose end is what stays in sight.
            if saved.totals.is_some() {
                message::print(&format!("recorded to {}", saved.path.display()));
            }
            summary::to_stderr(recording, &saved.path, usize::from(saved.totals.is_some()));
        }
        write_mem_files(recording, &self.track, self.quiet);
    }
}

impl Observer for RecordingObserver {
    fn progress(&mut self, progress: &Progress) {
        self.status_line.show(progress);
        self.show_page();
    }

    fn suspended(&mut self) {
        self.status_line.clear();
    }

    fn waiting(&mut self, line: &str) {
        if !self.quiet && std::io::stderr().is_terminal() {
            message::print(&format!("{line}; Ctrl-C ends it"));
        }
    }

    fn note(&mut self, line: &str) {
        self.status_line.clear();
        message::print(line);
    }

    fn peek(&mut self, pid: u32, part: &PeekPart, responder: &Responder) {
        self.status_line.clear();
        peek_text::answer(pid, part, responder, &mut self.snapshots);
    }

    fn recorded(&mut self, recording: &Recording, saved: &Saved) {
        // A short program ends before any progress.
        self.show_page();
        self.report(recording, saved);
    }

    fn snapshot(&mut self, recording: &Recording, saved: &Saved) {
        self.report(recording, saved);
    }
}
