//! Source lines with the time that was spent in them beside them.
//!
//! A line has the time of every stack that passes through it, once each, and as its own what ended
//! in it or in the standard or C library that it called. The sources come from the caller: nothing here
//! reads files.

mod text;

use crate::queries::line_times::Counts;
use crate::{FilePattern, Links, Style};
use stackglass_profile::Recording;
use std::io::{self, Write};

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
    asleep: bool,
}

/// A source file as it is now.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SourceFile {
    /// Where it was found, where that is not the recorded path.
    pub found: Option<String>,
    /// What it says; `None`: it is not here.
    pub text: Option<String>,
    /// What the reader must know: that it is newer than the recording, why it cannot be read.
    pub remark: Option<String>,
}

/// What a listing came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Listed {
    /// Time was seen, and in code with source lines; nothing was written otherwise.
    pub any: bool,
    /// Files that were shown.
    pub files: usize,
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
            asleep: false,
        }
    }
}

impl Annotate {
    /// 80 columns, no colours, the files and lines that matter with two lines around them.
    pub fn new() -> Annotate {
        Annotate::default()
    }

    /// Width in terminal columns; at least 60 are used.
    pub fn cols(mut self, columns: usize) -> Annotate {
        self.cols = columns.max(60);
        self
    }

    /// Colours, or none.
    pub fn style(mut self, style: Style) -> Annotate {
        self.style = style;
        self
    }

    /// Makes files and lines links; only where colours are allowed.
    pub fn links(mut self, links: Option<Links>) -> Annotate {
        self.links = links;
        self
    }

    /// Only these files, and all of them.
    pub fn files(mut self, pattern: Option<FilePattern>) -> Annotate {
        self.pattern = pattern;
        self
    }

    /// Every line that was seen, not only those with half a percent, and every file.
    pub fn everything(mut self, shown: bool) -> Annotate {
        self.everything = shown;
        self
    }

    /// Lines shown before and after one that matters.
    pub fn context(mut self, lines: usize) -> Annotate {
        self.context = lines;
        self
    }

    /// Counts sleeping time instead of processor time.
    pub fn asleep(mut self, counted: bool) -> Annotate {
        self.asleep = counted;
        self
    }

    /// Writes the listing; `source` is asked for each file that is to be shown, by its recorded path.
    ///
    /// # Errors
    /// When writing fails.
    pub fn write(
        &self,
        recording: &Recording,
        source: &mut dyn FnMut(&str) -> SourceFile,
        out: &mut dyn Write,
    ) -> io::Result<Listed> {
        let counts = Counts::of(recording, self.asleep);
        text::write(self, recording, &counts, source, out)
    }
}
