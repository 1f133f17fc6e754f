//! The reports of `print`: tree and flat, with every option of Julia's `Profile.print`.
//!
//! ```
//! use stackglass_profile::{Data, Dictionary, Frame};
//! use stackglass_report::{Report, Format, SortedBy};
//!
//! let data = Data::new(vec![16, 1, 7, 100, 1, 0, 0]);
//! let mut dictionary = Dictionary::new();
//! let mut main = Frame::unknown(16);
//! (main.func, main.file, main.line, main.foreign) = ("main".into(), "main.rs".into(), 3, false);
//! dictionary.set(16, [main]);
//!
//! let mut text = Vec::new();
//! let report = Report::new().format(Format::Flat).sorted_by(SortedBy::Count);
//! report.write((&data, &dictionary), &mut text)?;
//! assert!(String::from_utf8(text)?.contains("Total snapshots: 1."));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A report of a recording with every option, written to a file:
//!
//! ```
//! use stackglass_report::{Format, GroupBy, Recur, SortedBy};
//! use stackglass_profile::Recording;
//! use stackglass_report::{Links, Report, Style};
//!
//! let report = Report::new()
//!     .format(Format::Tree)
//!     .c(true) // foreign frames too
//!     .combine(false) // each address for itself
//!     .maxdepth(20)
//!     .mincount(2)
//!     .noisefloor(2.0)
//!     .sorted_by("overhead".parse::<SortedBy>()?) // an unknown word is an error that lists the known ones
//!     .group_by(GroupBy::ThreadTask)
//!     .recur(Recur::FlatC)
//!     .threads(1..=4)
//!     .tasks(vec![0x7f00, 0x7f10])
//!     .style(Style::Plain)
//!     .links(Some(Links::new(|name| std::env::var(name).ok(), "localhost")));
//! let folder = std::env::temp_dir();
//! let path = folder.join(format!("report-{}.txt", std::process::id()));
//! let written = report.write_to_path(&Recording::default(), &path)?; // 1 000 columns wide
//! assert!(!written.warnings.is_empty(), "an empty recording has nothing to show");
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod context;
mod file;
mod flat;
mod groups;
mod labels;
mod nothing_to_show;
mod tree_text;

use crate::call_tree::StateFilter;
use crate::options::{Format, GroupBy, Pick, Recur, SortedBy};
use crate::quirks::Quirks;
use crate::trees::aggregated_samples::AggregatedSamples;
use crate::trees::tree::{Folded, TreeOptions};
use crate::{Links, Metric, Source, Style};
use stackglass_profile::DataError;
use std::io::{self, Write};
use std::path::PathBuf;

/// Default width of reports in files.
pub const FILE_COLUMNS: usize = 1000;

/// Most columns of a report. Lines are padded, so wider ones would fill the memory.
pub const MOST_COLUMNS: usize = 10_000;

/// The options of a report. The defaults are Julia's.
#[derive(Clone, Debug)]
pub struct Report {
    format: Format,
    c: bool,
    combine: bool,
    maxdepth: i64,
    mincount: u64,
    noisefloor: f64,
    sorted_by: SortedBy,
    group_by: GroupBy,
    recur: Recur,
    threads: Pick,
    tasks: Pick,
    cols: usize,
    /// Whether `cols` was set.
    has_cols: bool,
    style: Style,
    links: Option<Links>,
    metric: Metric,
    states: StateFilter,
    /// Whether functions are shown with generic arguments where they are known.
    generics: bool,
    quirks: Quirks,
}

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// Recursion folding with the flat format, which counts every function once per sample anyway.
    #[error("the flat format does not fold recursion: leave recur off, or use the tree format")]
    FlatRecur,
    /// The buffer is unsuitable for a report.
    #[error(transparent)]
    Data(#[from] DataError),
    /// Writing failed.
    #[error("cannot write the report: {0}")]
    Io(#[from] io::Error),
    /// Writing to a file failed.
    #[error("cannot write the report to {path}: {source}", path = path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The result of writing a report.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Written {
    /// Messages for the log rather than the report: [`NO_SAMPLES`], what hides the samples and how to show
    /// them, or [`BUFFER_FULL`].
    pub warnings: Vec<String>,
}

/// Warning of a report without samples.
pub const NO_SAMPLES: &str = "no samples to show: run the program longer, or sample more often";

/// Warning of a report on a recording whose buffer became full.
pub const BUFFER_FULL: &str = "the buffer for samples became full, and sampling stopped: what came later is missing. \
    Raise `n`, or sample less often";

/// Warning of a report without allocations.
pub const NO_ALLOCATIONS: &str =
    "no allocations to show: run the program longer, or record all of them with `record --allocs`";

/// Warning of a grouped report without samples.
pub const NO_SAMPLES_IN_GROUP: &str =
    "no samples to show in any group: run the program longer, or sample more often";

impl Default for Report {
    fn default() -> Report {
        Report {
            format: Format::Tree,
            c: false,
            combine: true,
            maxdepth: i64::MAX,
            mincount: 0,
            noisefloor: 0.0,
            sorted_by: SortedBy::FileFuncLine,
            group_by: GroupBy::None,
            recur: Recur::Off,
            threads: Pick::Range(1..=i64::MAX as u64),
            tasks: Pick::All,
            cols: 80,
            has_cols: false,
            style: Style::Plain,
            links: None,
            metric: Metric::Time,
            states: StateFilter::All,
            generics: true,
            quirks: Quirks::default(),
        }
    }
}

impl Report {
    /// A tree with all samples, 80 columns wide.
    pub fn new() -> Report {
        Report::default()
    }

    /// Tree or flat table.
    pub fn format(mut self, format: Format) -> Report {
        self.format = format;
        self
    }

    /// Shows foreign frames, those not compiled from Rust (the reference's `C`).
    pub fn c(mut self, shown: bool) -> Report {
        self.c = shown;
        self
    }

    /// Merges equal frames; otherwise each address has a separate entry.
    pub fn combine(mut self, combined: bool) -> Report {
        self.combine = combined;
        self
    }

    /// Deepest level of a tree to print. The root's children are level 0; a negative level prints headers and totals only.
    pub fn maxdepth(mut self, depth: i64) -> Report {
        self.maxdepth = depth;
        self
    }

    /// Hides entries with smaller counts; in a tree, with everything below them.
    pub fn mincount(mut self, count: u64) -> Report {
        self.mincount = count;
        self
    }

    /// Hides entries below `floor(noisefloor * sqrt(count of the parent))`. Trees only. The outermost level stays.
    pub fn noisefloor(mut self, factor: f64) -> Report {
        self.noisefloor = factor;
        self
    }

    /// Order of siblings or rows, ascending.
    pub fn sorted_by(mut self, key: SortedBy) -> Report {
        self.sorted_by = key;
        self
    }

    /// One report per thread, per task, or both.
    pub fn group_by(mut self, key: GroupBy) -> Report {
        self.group_by = key;
        self
    }

    /// Folds recursion by call site. Trees only.
    pub fn recur(mut self, recur: Recur) -> Report {
        self.recur = recur;
        self
    }

    /// Threads to count, by number.
    pub fn threads(mut self, pick: impl Into<Pick>) -> Report {
        self.threads = pick.into();
        self
    }

    /// Tasks to count, by id.
    pub fn tasks(mut self, pick: impl Into<Pick>) -> Report {
        self.tasks = pick.into();
        self
    }

    /// Width in terminal columns: 80 unless set, [`FILE_COLUMNS`] in files, at most [`MOST_COLUMNS`].
    pub fn cols(mut self, columns: usize) -> Report {
        (self.cols, self.has_cols) = (columns.min(MOST_COLUMNS), true);
        self
    }

    /// Shows functions in a tree without their generic arguments, as the summary does.
    pub(crate) fn without_generics(mut self) -> Report {
        self.generics = false;
        self
    }

    crate::layout_setter!(style);
    crate::layout_setter!(links);

    /// What the counts of a recording are. For allocations, pass what
    /// [`weighted`](crate::allocation_queries::weighted) returns: the report closes with their number and bytes.
    pub fn metric(mut self, metric: Metric) -> Report {
        self.metric = metric;
        self
    }

    /// Which states of threads the recording has samples of: all, unless a [`Selection`](crate::Selection) left out the
    /// others. The closing line says which are counted.
    pub fn states(mut self, states: StateFilter) -> Report {
        self.states = states;
        self
    }

    /// Repeats behaviour of the reference that is otherwise corrected.
    #[doc(hidden)]
    pub fn quirks(mut self, quirks: Quirks) -> Report {
        self.quirks = quirks;
        self
    }

    /// Writes the report of a [`Recording`](stackglass_profile::Recording), or of a pair of
    /// [`Data`](stackglass_profile::Data) and [`Dictionary`](stackglass_profile::Dictionary).
    ///
    /// ```
    /// use stackglass_profile::{Data, Dictionary};
    /// use stackglass_report::{Report, ReportError, NO_SAMPLES};
    ///
    /// let mut text = Vec::new();
    /// let written = Report::new().write((&Data::default(), &Dictionary::new()), &mut text)?;
    /// assert_eq!(written.warnings, [NO_SAMPLES]);
    ///
    /// // A buffer without threads and tasks is refused before anything is written.
    /// let (bare, mut text) = (Data::new(vec![16, 0]), Vec::new());
    /// let refused = Report::new().write((&bare, &Dictionary::new()), &mut text);
    /// assert!(refused.is_err() && text.is_empty());
    /// # Ok::<(), ReportError>(())
    /// ```
    ///
    /// # Errors
    /// If options contradict each other or data has no metadata (nothing is written then), or if writing fails.
    pub fn write<'a>(
        &self,
        source: impl Into<Source<'a>>,
        out: &mut dyn Write,
    ) -> Result<Written, ReportError> {
        let source = source.into();
        if self.format == Format::Flat && self.recur != Recur::Off {
            return Err(ReportError::FlatRecur);
        }
        if let Source::Data(data, _) = source
            && !data.is_empty()
            && !data.has_meta()
        {
            return Err(DataError::MissingMetadata.into());
        }
        let samples = AggregatedSamples::new(source);
        let empty = groups::write(self, source, &samples, out)?;
        let grouped = self.group_by != GroupBy::None;
        let warnings = match empty {
            Some(_) if grouped && self.quirks.one_reason => vec![NO_SAMPLES_IN_GROUP.to_owned()],
            Some(_) if self.quirks.one_reason => vec![NO_SAMPLES.to_owned()],
            Some(empty) => vec![empty.text(self, &samples)],
            None if grouped && self.quirks.always_warn_in_groups => vec![NO_SAMPLES_IN_GROUP.to_owned()],
            None => Vec::new(),
        };
        let is_full = matches!(source, Source::Recording(recording) if recording.info.full);
        let full = is_full.then(|| BUFFER_FULL.to_owned());
        Ok(Written { warnings: warnings.into_iter().chain(full).collect() })
    }

    fn tree_options(&self) -> TreeOptions {
        TreeOptions {
            foreign: self.c,
            combine: self.combine,
            recur: self.recur,
            folded: Folded::Passed,
            flat_counts: self.sorted_by == SortedBy::FlatCount,
            quirks: self.quirks,
        }
    }
}
