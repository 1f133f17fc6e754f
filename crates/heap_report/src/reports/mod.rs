//! Reports on heap graphs.
//!
//! * `show`: what is alive by type, the largest holders, leak candidates, and what could be saved;
//! * `one_type`: everything about one type, the path to it, and what holds it;
//! * `growth`: what grew from snapshot to snapshot;
//! * `watch`, `watch_json`: what grew in a process that is watched;
//! * `table`: rows of numbers, and the lines between them;
//! * `json`: all of it for programs.

mod growth;
mod json;
mod one_type;
mod show;
mod table;
mod watch;
mod watch_json;

pub use json::{
    write_blocks_json, write_growth_json, write_path_json, write_retainers_json, write_show_json,
    write_type_json,
};
pub use watch_json::write_watch_json;

use crate::answers::growth::{GrowthRow, HeapSums};
use crate::answers::watch::{Grown, Watch};
use crate::answers::{BlocksOfType, HeapAnswers, TypeAnswer};
use stackglass_report::Style;
use stackglass_report::numbers::{bytes_text, count_text};
use std::io::{self, Write};

/// The report on a heap graph.
///
/// ```
/// use stackglass_profile::heap_graph::HeapGraphBuilder;
/// use stackglass_heap_report::HeapText;
/// use stackglass_heap_report::answers::HeapAnswers;
///
/// let graph = HeapGraphBuilder::default().finish();
/// let mut text = Vec::new();
/// HeapText::new("app.heapsnapshot").cols(100).show(&HeapAnswers::new(&graph), &mut text)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct HeapText {
    name: String,
    cols: usize,
    style: Style,
    rows: usize,
    everything: bool,
    counts: bool,
}

/// Rows of a table by default.
const ROWS: usize = 10;

impl HeapText {
    /// 80 columns, no colours, ten rows. `name` is that of the file.
    pub fn new(name: impl Into<String>) -> HeapText {
        HeapText {
            name: name.into(),
            cols: 80,
            style: Style::Plain,
            rows: ROWS,
            everything: false,
            counts: false,
        }
    }

    stackglass_report::layout_setter!(cols: 60);
    stackglass_report::layout_setter!(style);

    /// Number of rows in each table. Lists beside the main one have half of them.
    pub fn rows(mut self, rows: usize) -> HeapText {
        self.rows = rows.max(1);
        self
    }

    /// Shows all rows.
    pub fn everything(mut self, shown: bool) -> HeapText {
        self.everything = shown;
        self
    }

    /// What is alive, what holds it, what may have leaked, and what could be saved.
    ///
    /// # Errors
    /// When writing fails.
    pub fn show(&self, answers: &HeapAnswers<'_>, out: &mut dyn Write) -> io::Result<()> {
        let counts = answers.sizes_are_counts();
        show::write(&HeapText { counts, ..self.clone() }, answers, out)
    }

    /// Everything about one type.
    ///
    /// # Errors
    /// When writing fails.
    pub fn one_type(&self, answer: &TypeAnswer, out: &mut dyn Write) -> io::Result<()> {
        one_type::write(self, answer, out)
    }

    /// The sums of a type, and its blocks with their addresses.
    ///
    /// # Errors
    /// When writing fails.
    pub fn blocks(&self, answer: &TypeAnswer, blocks: &BlocksOfType, out: &mut dyn Write) -> io::Result<()> {
        one_type::write_blocks(self, answer, blocks, out)
    }

    /// Rows that a table of blocks needs.
    pub fn most_rows(&self) -> usize {
        if self.everything { usize::MAX } else { self.rows }
    }

    /// The shortest path to a type.
    ///
    /// # Errors
    /// When writing fails.
    pub fn path(&self, answer: &TypeAnswer, out: &mut dyn Write) -> io::Result<()> {
        one_type::write_path(self, answer, out)
    }

    /// What holds a type.
    ///
    /// # Errors
    /// When writing fails.
    pub fn retainers(&self, answer: &TypeAnswer, out: &mut dyn Write) -> io::Result<()> {
        one_type::write_retainers(self, answer, out)
    }

    /// What grew. `names` are those of the files.
    ///
    /// # Errors
    /// When writing fails.
    pub fn growth(
        &self,
        names: &[String],
        snapshots: &[HeapSums],
        rows: &[GrowthRow],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        growth::write(self, names, snapshots, rows, out)
    }

    /// What grew in a process that is watched. The name is that of the process.
    ///
    /// # Errors
    /// When writing fails.
    pub fn watch(&self, watch: &Watch, grown: &Grown, out: &mut dyn Write) -> io::Result<()> {
        watch::write(self, watch, grown, out)
    }

    /// A size: bytes, or a number of blocks if each block has the size 1.
    fn size(&self, size: u64) -> String {
        if self.counts { count_text(size) } else { bytes_text(size) }
    }

    /// The title of a column with sizes.
    fn size_title(&self) -> &'static str {
        if self.counts { "blocks" } else { "bytes" }
    }

    /// How many of `all` rows to show in the main table.
    fn shown(&self, all: usize) -> usize {
        // One row takes no more space than the line that says it is hidden.
        if self.everything || all <= self.rows + 1 { all } else { self.rows }
    }

    /// How many rows to show in other tables.
    fn few(&self) -> usize {
        if self.everything { usize::MAX } else { self.rows.div_ceil(2) }
    }
}
