//! Prints the summary of a recording, on a terminal or to a file: where the time went, then what was allocated.

use crate::terminal::Layout;
use stackglass_profile::Recording;
use stackglass_report::{AllocationsText, Summary};
use std::io::{self, BufWriter, Write};

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
    let mut out = BufWriter::new(out);
    let allocated = recording.allocations.were_recorded();
    // A recording of allocations only has no time to show.
    let timed = !allocated || !recording.samples.is_empty();
    if timed {
        let summary = Summary::new().cols(columns).style(layout.style).links(layout.links.clone());
        summary.everything(everything).write(recording, &mut out)?;
    }
    if allocated {
        if timed {
            out.write_all(b"\n")?;
        }
        let allocations =
            AllocationsText::new().cols(columns).style(layout.style).links(layout.links.clone());
        allocations.everything(everything).closing(timed).write(recording, &mut out)?;
    }
    out.flush()
}
