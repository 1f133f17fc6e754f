//! The summary: what `record` shows when the program has ended.
//!
//! It answers "where did the time go" without options: the tree of CPU time without runtime frames and small branches,
//! one line for each kind of sleeping thread, notes on what limits the results, and at the end, where the eye is, a
//! digest and a verdict. Percentages are of CPU time, sampled or not (in a wall-time profile: of samples), unless a
//! line says otherwise. The complete reports are [`Report`](crate::Report)s.

mod answers;
mod digest;
mod few_samples;
pub(super) mod interpreters;
mod json;
mod notes;
mod poor_names;
mod processes;
mod run_time_code;
mod screen;
mod shares;
mod short_lives;
mod sleeping_threads;
mod tasks;
mod tree_rows;
mod tree_text;
mod verdict;
mod waits;

pub(in crate::reports) use json::JsonSummary;
pub use json::write_json;

use crate::queries::cpu_tree::CpuTree;
use crate::queries::cut_reasons;
use crate::{Links, Style};
use stackglass_profile::{Nanos, Recording};
use std::borrow::Cow;
use std::io::{self, Write};

/// The recording with a nanosecond for each sample, if samples have no times. Numbers of samples are then shown instead
/// of times.
fn with_counts(recording: &Recording) -> Cow<'_, Recording> {
    if shares::has_times(recording) {
        return Cow::Borrowed(recording);
    }
    let mut recording = recording.clone();
    recording.samples.iter_mut().for_each(|sample| sample.time = Nanos(u64::from(sample.hits)));
    Cow::Owned(recording)
}

/// The summary of a recording.
#[derive(Clone, Debug)]
pub struct Summary {
    cols: usize,
    style: Style,
    everything: bool,
    links: Option<Links>,
    rows: Option<usize>,
    file: Option<String>,
}

impl Default for Summary {
    fn default() -> Summary {
        Summary { cols: 80, style: Style::Plain, everything: false, links: None, rows: None, file: None }
    }
}

impl Summary {
    /// 80 columns, no colours, small branches hidden.
    pub fn new() -> Summary {
        Summary::default()
    }

    crate::layout_setter!(cols: 40);
    crate::layout_setter!(style);

    /// Shows everything: small branches, frames of the runtime, inlined library code and each sleeping thread.
    pub fn everything(mut self, shown: bool) -> Summary {
        self.everything = shown;
        self
    }

    crate::layout_setter!(links);

    /// The link of a location.
    fn link(&self, file: &str, line: i64) -> Option<String> {
        self.links.as_ref()?.target(file, line)
    }

    /// Number of lines that the screen has. Without it, nothing is left out to fit a screen.
    pub fn rows(mut self, rows: Option<usize>) -> Summary {
        self.rows = rows;
        self
    }

    /// The file of the recording, for the line that says where more notes are.
    pub fn file(mut self, name: impl Into<String>) -> Summary {
        self.file = Some(name.into());
        self
    }

    /// Writes the summary.
    ///
    /// # Errors
    /// When writing fails.
    pub fn write(&self, recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
        let recording = &*with_counts(recording);
        let tree = CpuTree::build(recording, self.everything);
        for line in screen::lines(self, recording, &tree) {
            line.write(self.style, out)?;
        }
        Ok(())
    }
}

/// Notes on what limits the results of a recording and what to do about it, the most important first.
pub fn notes(recording: &Recording) -> Vec<String> {
    let recording = &*with_counts(recording);
    notes::all(recording, &CpuTree::build(recording, false))
}
