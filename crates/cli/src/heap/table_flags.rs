//! `--all`, `--rows`, `--json` and the layout: the flags of every table about a heap.

use crate::terminal::LayoutFlags;
use clap::Args;
use stackglass_heap_report::HeapText;

/// The flags of a table that shows `ROWS` rows by default.
#[derive(Args, Clone, Debug)]
pub(super) struct TableFlags<const ROWS: u32> {
    /// Show all rows
    #[arg(long, conflicts_with = "rows")]
    all: bool,

    /// Number of rows
    #[arg(long, value_name = "N", default_value_t = ROWS, value_parser = clap::value_parser!(u32).range(1..))]
    rows: u32,

    /// Print all rows as one JSON object (docs/json.md)
    #[arg(long, conflicts_with_all = ["all", "rows"])]
    pub(super) json: bool,

    #[command(flatten)]
    layout: LayoutFlags,
}

impl<const ROWS: u32> TableFlags<ROWS> {
    /// The text for standard output, with this title.
    pub(super) fn text(&self, title: impl Into<String>) -> HeapText {
        let layout = self.layout.of_stdout();
        let columns = if layout.terminal { layout.columns } else { layout.columns.min(MOST_COLUMNS) };
        let text = HeapText::new(title).cols(columns).style(layout.style);
        text.rows(self.rows as usize).everything(self.all)
    }
}

/// Columns at most, where no terminal limits them.
const MOST_COLUMNS: usize = 160;
