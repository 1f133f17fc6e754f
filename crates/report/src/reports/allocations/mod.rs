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
use crate::text::style::{Line, Paint};
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
    of_type: Option<String>,
    everything: bool,
    closing: bool,
    rows: Option<usize>,
}

/// Number of rows that the table has on the smallest screen that shows one.
const FEW_ROWS: usize = 2;
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
            of_type: None,
            everything: false,
            closing: false,
            rows: None,
        }
    }
}

impl AllocationsText {
    /// 80 columns, no colours, the types with the most bytes.
    pub fn new() -> AllocationsText {
        AllocationsText::default()
    }

    crate::layout_setter!(cols: 60);
    crate::layout_setter!(style);
    crate::layout_setter!(links);

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

    /// Says that the recording has [only](crate::allocation_queries::keep_types) the allocations of some types, and by which name
    /// they were chosen. Its memory over time is not theirs, and is left out.
    pub fn of_type(mut self, name: Option<String>) -> AllocationsText {
        self.of_type = name;
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

    /// Number of lines that the screen has for it. Without it, nothing is left out to fit a screen.
    pub fn rows(mut self, rows: Option<usize>) -> AllocationsText {
        self.rows = rows;
        self
    }

    /// The notes below the table: what limits the numbers, and what to do about it.
    pub fn notes(&self, recording: &Recording) -> Vec<String> {
        let table = AllocationTable::new(recording, self.key.unwrap_or_default(), self.metric);
        notes::texts(self, recording, &table)
    }

    /// Writes the report.
    ///
    /// # Errors
    /// When writing fails.
    pub fn write(&self, recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
        let mut sites = Sites::new(recording);
        let mut table =
            AllocationTable::with_sites(recording, &mut sites, self.key.unwrap_or_default(), self.metric);
        let says_little = table.typed_share() < FEW_TYPES || self.of_type.is_some() && table.rows.len() == 1;
        if self.key.is_none() && says_little {
            table = AllocationTable::with_sites(recording, &mut sites, AllocationKey::Site, self.metric);
        }
        let digest = digest::lines(self, recording, &table, &mut sites);
        let rows = self.rows.filter(|_| !self.everything).unwrap_or(usize::MAX);
        let mut room = rows.saturating_sub(digest.len());
        let (table_lines, memory, notes) = self.fitted(recording, &table, &mut room);
        let mut parts = vec![digest, table_lines, memory, notes];
        parts.retain(|part| !part.is_empty());
        for (index, part) in parts.into_iter().enumerate() {
            if index > 0 {
                out.write_all(b"\n")?;
            }
            part.into_iter().try_for_each(|mut line| line.cut(self.cols).write(self.style, out))?;
        }
        Ok(())
    }

    /// Table, memory over time, and notes, with the empty lines before them in at most `room` lines. The table has some
    /// rows before anything else is shown, and the others if there is room left.
    fn fitted(
        &self,
        recording: &Recording,
        table: &AllocationTable,
        room: &mut usize,
    ) -> (Vec<Line>, Vec<Line>, Vec<Line>) {
        // The empty line, the header, the line that counts what is left out, and [mmap].
        let around = 3 + usize::from(table.mappings.count > 0);
        let whole = table::lines(self, recording, table, usize::MAX);
        if *room < around + FEW_ROWS && *room < whole.len() + 1 {
            let hint = "all rows: `stackglass allocs`; `stackglass print --all` shows everything";
            let hint = (*room > 1).then(|| Line::from_text(Paint::Grey, hint));
            return (hint.into_iter().collect(), Vec::new(), Vec::new());
        }
        let least = (whole.len() + 1).min(around + FEW_ROWS);
        *room -= least;
        let mut notes = Vec::new();
        for note in notes::lines(self, recording, table) {
            let gap = usize::from(notes.is_empty());
            if note.len() + gap <= *room {
                *room -= note.len() + gap;
                notes.extend(note);
            }
        }
        let mut memory = match self.of_type {
            None => memory::lines(self, recording),
            Some(_) => Vec::new(),
        };
        match memory.len() < *room {
            true => *room -= memory.len() + 1,
            false => memory.clear(),
        }
        let most = (least - 1).saturating_add(*room);
        (table::lines(self, recording, table, most), memory, notes)
    }

    fn link(&self, file: &str, line: i64) -> Option<String> {
        self.links.as_ref()?.target(file, line)
    }
}
