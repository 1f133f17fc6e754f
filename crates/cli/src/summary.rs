//! Prints the summary of a recording, on a terminal or to a file: where the time went, then what was allocated.

use crate::terminal::Layout;
use stackglass_profile::Recording;
use stackglass_report::{AllocationsText, Metric, Summary};
use std::io::{self, Write};
use std::path::Path;

/// A summary to print.
pub(crate) struct SummaryText<'a> {
    pub(crate) layout: &'a Layout,
    /// The file of the recording, for the reader who wants to know more.
    pub(crate) file: &'a Path,
    /// Hides nothing, and does not fit the screen.
    pub(crate) everything: bool,
    /// Lines of the screen that other output takes.
    pub(crate) taken: usize,
}

/// Lines for what was allocated on the smallest screen, below the times.
const LEAST_ALLOCATIONS: usize = 8;

/// The shell's prompt takes a line below the report.
pub(crate) const PROMPT: usize = 1;

/// Prints it on stderr, in one write. `above` is the number of lines above it that should stay in sight.
pub(crate) fn to_stderr(recording: &Recording, file: &Path, above: usize) {
    let layout = Layout::of_stderr();
    let taken = PROMPT + above;
    let mut text = Vec::new();
    // Writing to memory does not fail, and a closed stderr is not an error.
    let _ = SummaryText { layout: &layout, file, everything: false, taken }.write(recording, &mut text);
    let _ = io::stderr().lock().write_all(&text);
}

impl SummaryText<'_> {
    /// Writes where the time went, then what was allocated.
    pub(crate) fn write(&self, recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
        let Layout { short_columns: columns, style, ref links, .. } = *self.layout;
        let allocated = recording.allocations.were_recorded();
        // A recording of allocations only has no time to show.
        let timed = !allocated || !recording.samples.is_empty();
        let rows = self.layout.rows.saturating_sub(self.taken);
        let mut about_memory = Vec::new();
        if allocated {
            let allocations = AllocationsText::new().cols(columns).style(style).links(links.clone());
            // Less than half of the screen: times have to fit above.
            let rows = if timed { (rows * 2 / 5).max(LEAST_ALLOCATIONS) } else { rows };
            let allocations = allocations.rows(Some(rows)).everything(self.everything).closing(timed);
            allocations.write(recording, &mut about_memory)?;
            if timed {
                about_memory.insert(0, b'\n');
            }
        }
        let mut text = Vec::new();
        if timed {
            let summary = Summary::new().cols(columns).style(style).links(links.clone());
            let below = about_memory.iter().filter(|byte| **byte == b'\n').count();
            let summary = summary.rows(Some(rows.saturating_sub(below)));
            let summary = summary.file(self.file.display().to_string());
            summary.everything(self.everything).write(recording, &mut text)?;
        }
        text.extend(about_memory);
        out.write_all(&text)
    }

    /// Writes the summary by a metric of allocations: what was allocated, without times.
    pub(crate) fn write_allocations(
        &self,
        recording: &Recording,
        metric: Metric,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let Layout { short_columns: columns, style, ref links, .. } = *self.layout;
        let rows = self.layout.rows.saturating_sub(self.taken);
        let text = AllocationsText::new().cols(columns).style(style).links(links.clone()).rows(Some(rows));
        text.metric(metric).everything(self.everything).write(recording, out)
    }
}
