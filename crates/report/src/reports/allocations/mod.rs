//! Allocations as text: what matters first, then a table by type, site or another key, then memory over time.
//!
//! * `digest`: totals, the peak, and the types and lines that matter;
//! * `table`: the rows;
//! * `memory`: live and resident bytes over time, one line each;
//! * `notes`: what limits the numbers;
//! * `json`: the table for programs.

mod digest;
mod json;
mod memory;
mod notes;
mod table;

pub use json::write_json;

use crate::queries::allocations::site::Sites;
use crate::{AllocationKey, AllocationTable, Links, Metric, Style};
use stackglass_profile::Recording;
use std::io::{self, Write};

/// The report on allocations.
///
/// ```
/// use stackglass_profile::Recording;
/// use stackglass_report::{AllocationKey, AllocationsText, Metric};
///
/// let mut text = Vec::new();
/// let report = AllocationsText::new().key(AllocationKey::Site).metric(Metric::PeakBytes);
/// report.write(&Recording::default(), &mut text)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct AllocationsText {
    cols: usize,
    style: Style,
    links: Option<Links>,
    key: Option<AllocationKey>,
    metric: Metric,
    everything: bool,
    closing: bool,
}

/// With a smaller share of typed allocations, lines say more than types.
const FEW_TYPES: f64 = 0.1;

impl Default for AllocationsText {
    fn default() -> AllocationsText {
        AllocationsText {
            cols: 80,
            style: Style::Plain,
            links: None,
            key: None,
            metric: Metric::Bytes,
            everything: false,
            closing: false,
        }
    }
}

impl AllocationsText {
    /// 80 columns, no colours, the types with the most bytes.
    pub fn new() -> AllocationsText {
        AllocationsText::default()
    }

    /// Width in terminal columns; at least 60 are used.
    pub fn cols(mut self, columns: usize) -> AllocationsText {
        self.cols = columns.max(60);
        self
    }

    /// Colours, or none.
    pub fn style(mut self, style: Style) -> AllocationsText {
        self.style = style;
        self
    }

    /// Turns locations into links. Has no effect without colours.
    pub fn links(mut self, links: Option<Links>) -> AllocationsText {
        self.links = links;
        self
    }

    /// What the rows are.
    pub fn key(mut self, key: AllocationKey) -> AllocationsText {
        self.key = Some(key);
        self
    }

    /// What the rows are sorted by, and what percentages refer to. [`Metric::Time`] stands for bytes.
    pub fn metric(mut self, metric: Metric) -> AllocationsText {
        self.metric = if metric == Metric::Time { Metric::Bytes } else { metric };
        self
    }

    /// Shows all rows.
    pub fn everything(mut self, shown: bool) -> AllocationsText {
        self.everything = shown;
        self
    }

    /// Omits what the summary above has said: the command, and remarks on the recording.
    pub fn closing(mut self, closing: bool) -> AllocationsText {
        self.closing = closing;
        self
    }

    /// Writes the report.
    ///
    /// # Errors
    /// When writing fails.
    pub fn write(&self, recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
        let mut sites = Sites::new(recording);
        let mut table = AllocationTable::of(recording, &mut sites, self.key.unwrap_or_default(), self.metric);
        if self.key.is_none() && table.typed_share() < FEW_TYPES {
            table = AllocationTable::of(recording, &mut sites, AllocationKey::Site, self.metric);
        }
        digest::write(self, recording, &table, &mut sites, out)?;
        if !table.rows.is_empty() || table.mappings.count > 0 {
            out.write_all(b"\n")?;
            table::write(self, recording, &table, out)?;
        }
        memory::write(self, recording, out)?;
        notes::write(self, recording, &table, out)
    }

    fn link(&self, file: &str, line: i64) -> Option<String> {
        self.links.as_ref()?.target(file, line)
    }
}
