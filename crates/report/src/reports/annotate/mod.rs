//! Source lines with the time spent in them, or with another metric.
//!
//! The total of a line is the time of all stacks that pass through it, each counted once. Its own time is that of stacks
//! that end in it, or in library code that it called (see `library_code`). If allocations were recorded, a column has the bytes
//! that each line allocated, directly or by a library that it called. The caller provides the sources: nothing here reads
//! files.

mod json;
mod text;

use crate::call_tree::StateFilter;
use crate::queries::line_times::Counts;
use crate::{FilePattern, Links, Metric, Source, Style};
use stackglass_profile::Recording;
use std::io::{self, Write};
use std::sync::Arc;

/// A listing of sources with counts.
///
/// ```
/// use stackglass_profile::Recording;
/// use stackglass_report::Annotate;
/// use stackglass_report::annotate::SourceFile;
///
/// let mut text = Vec::new();
/// let nothing = Annotate::new().write(&Recording::default(), &mut |_| SourceFile::default(), &mut text)?;
/// assert!(!nothing.any);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Annotate {
    cols: usize,
    style: Style,
    links: Option<Links>,
    pattern: Option<FilePattern>,
    everything: bool,
    context: usize,
    states: StateFilter,
    metric: Metric,
}

/// A source file in its current state.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SourceFile {
    /// Where it was found, if not at the recorded path.
    pub found: Option<String>,
    /// Its content; `None` if it was not found.
    pub text: Option<String>,
    /// A remark for the reader: that it is newer than the recording, or why it cannot be read.
    pub remark: Option<String>,
}

/// The result of writing a listing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Listed {
    /// Whether there was time or an allocation in code with source lines. Otherwise nothing was written.
    pub any: bool,
    /// Number of files shown.
    pub files: usize,
}

/// The source files of a recording, those with most time first.
pub fn hottest_files(recording: &Recording) -> Vec<Arc<str>> {
    Counts::from_recording(recording, StateFilter::All).files.into_iter().map(|file| file.file).collect()
}

impl Default for Annotate {
    fn default() -> Annotate {
        Annotate {
            cols: 80,
            style: Style::Plain,
            links: None,
            pattern: None,
            everything: false,
            context: 2,
            states: StateFilter::Awake,
            metric: Metric::Time,
        }
    }
}

impl Annotate {
    /// 80 columns, no colours, the hottest files and lines with two lines of context.
    pub fn new() -> Annotate {
        Annotate::default()
    }

    crate::layout_setter!(cols: 60);
    crate::layout_setter!(style);
    crate::layout_setter!(links);

    /// Shows only the files that match, and all of them.
    pub fn files(mut self, pattern: Option<FilePattern>) -> Annotate {
        self.pattern = pattern;
        self
    }

    /// Shows every line that was seen, not only those with at least half a percent, and every file.
    pub fn everything(mut self, shown: bool) -> Annotate {
        self.everything = shown;
        self
    }

    /// Number of lines of context before and after a hot line.
    pub fn context(mut self, lines: usize) -> Annotate {
        self.context = lines;
        self
    }

    /// Counts time in these states: CPU time unless another one is set.
    pub fn states(mut self, states: StateFilter) -> Annotate {
        self.states = states;
        self
    }

    /// What is counted: time by default. For allocations, the recording must be that of
    /// [`weighted`](crate::allocation_queries::weighted).
    pub fn metric(mut self, metric: Metric) -> Annotate {
        self.metric = metric;
        self
    }

    /// Writes the listing. `source` returns a file for a recorded path; it is called for each file to show.
    ///
    /// # Errors
    /// When writing fails.
    pub fn write(
        &self,
        recording: &Recording,
        source: &mut dyn FnMut(&str) -> SourceFile,
        out: &mut dyn Write,
    ) -> io::Result<Listed> {
        let counts = Counts::from_recording(recording, self.states);
        text::write(self, recording, &counts, source, out)
    }

    /// Writes the times of all lines, or of those in files that match, as one JSON object.
    ///
    /// # Errors
    /// When writing fails.
    pub fn write_json(&self, recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
        json::write(self, recording, &Counts::from_recording(recording, self.states), out)
    }

    /// What is counted: `CPU time`, `bytes`.
    fn noun(&self, recording: &Recording) -> &'static str {
        match self.metric {
            Metric::Time => Source::Recording(recording).noun(self.states),
            metric => metric.noun(),
        }
    }
}
