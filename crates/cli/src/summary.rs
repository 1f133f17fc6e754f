//! Prints the summary of a recording, on a terminal or to a file: where the time went, then what was allocated.

use crate::terminal::Layout;
use stackglass_profile::Recording;
use stackglass_report::{AllocationsText, Metric, Summary};
use std::io::{self, Write};

/// Prints it on stderr, in one write.
pub(crate) fn to_stderr(recording: &Recording) {
    let layout = Layout::of_stderr();
    let mut text = Vec::new();
    // Writing to memory does not fail, and a closed stderr is not an error.
    let _ = write(recording, &layout, false, &mut text);
    let _ = io::stderr().lock().write_all(&text);
}

/// Writes it; `everything` hides nothing.
pub(crate) fn write(
    recording: &Recording,
    layout: &Layout,
    everything: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    // Columns must not grow with the unlimited width of a file.
    let columns = if layout.terminal { layout.columns } else { layout.columns.min(120) };
    let allocated = recording.allocations.were_recorded();
    // A recording of allocations only has no time to show.
    let timed = !allocated || !recording.samples.is_empty();
    let mut text = Vec::new();
    if timed {
        let summary = Summary::new().cols(columns).style(layout.style).links(layout.links.clone());
        summary.everything(everything).write(recording, &mut text)?;
    }
    if allocated {
        if timed {
            // The summary may end with an empty line.
            let end = text.trim_ascii_end().len();
            text.truncate(end);
            text.extend_from_slice(b"\n\n");
        }
        let allocations =
            AllocationsText::new().cols(columns).style(layout.style).links(layout.links.clone());
        allocations.everything(everything).closing(timed).write(recording, &mut text)?;
    }
    out.write_all(&text)
}

/// Writes the summary by a metric of allocations: what was allocated, without times.
pub(crate) fn write_allocations(
    recording: &Recording,
    metric: Metric,
    layout: &Layout,
    everything: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let columns = if layout.terminal { layout.columns } else { layout.columns.min(120) };
    let text = AllocationsText::new().cols(columns).style(layout.style).links(layout.links.clone());
    text.metric(metric).everything(everything).write(recording, out)
}
