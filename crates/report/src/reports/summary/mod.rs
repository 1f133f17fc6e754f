//! The first screen: what `record` shows when the program has ended.
//!
//! It answers "where did the time go" before anything is asked: a summary of a few lines, the tree
//! of processor time with the runtime's frames trimmed and small branches folded, one line for each
//! kind of sleeping thread, and what the reader must know to trust it. Percentages are of processor
//! time, seen or not (of looks in a wall-time profile), except where a line says otherwise. The complete reports are in [`report`](crate::reports::complete).

mod cut_reasons;
mod headline;
mod notes;
mod processes;
mod run_time_code;
mod sleeping_threads;
mod tasks;
mod tree_text;

use crate::queries::cpu_tree::CpuTree;
use crate::{Links, Style};
use stackglass_profile::Recording;
use std::io::{self, Write};

/// Share of processor time below which a branch is folded away.
const NOTICEABLE: f64 = 0.005;

/// What percentages are of.
fn whole(recording: &Recording) -> &'static str {
    if recording.is_walltime() { "time" } else { "CPU time" }
}

/// The first screen of a recording.
#[derive(Clone, Debug)]
pub struct Summary {
    cols: usize,
    style: Style,
    everything: bool,
    links: Option<Links>,
}

impl Default for Summary {
    fn default() -> Summary {
        Summary { cols: 80, style: Style::Plain, everything: false, links: None }
    }
}

impl Summary {
    /// 80 columns, no colours, small branches folded.
    pub fn new() -> Summary {
        Summary::default()
    }

    /// Width in terminal columns; at least 40 are used.
    pub fn cols(mut self, columns: usize) -> Summary {
        self.cols = columns.max(40);
        self
    }

    /// Colours, or none.
    pub fn style(mut self, style: Style) -> Summary {
        self.style = style;
        self
    }

    /// Folds and trims nothing: every branch, the runtime's own frames, inlined library code and
    /// each sleeping thread.
    pub fn everything(mut self, shown: bool) -> Summary {
        self.everything = shown;
        self
    }

    /// Makes locations links; only where colours are allowed.
    pub fn links(mut self, links: Option<Links>) -> Summary {
        self.links = links;
        self
    }

    /// Where a location leads.
    fn link(&self, file: &str, line: i64) -> Option<String> {
        self.links.as_ref()?.target(file, line)
    }

    /// Writes the screen.
    ///
    /// # Errors
    /// When writing fails.
    pub fn write(&self, recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
        let tree = CpuTree::build(recording, self.everything);
        headline::write(self, recording, &tree, out)?;
        processes::write(self, recording, &tree, out)?;
        tasks::write(self, recording, &tree, out)?;
        tree_text::write(self, &tree, out)?;
        sleeping_threads::write(self, recording, &tree, out)?;
        notes::write(self, recording, &tree, out)
    }
}
