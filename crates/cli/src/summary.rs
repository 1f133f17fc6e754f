//! The first screen, on a terminal or into a file.

use crate::terminal::Layout;
use stackglass_profile::Recording;
use stackglass_report::Summary;
use std::io::{self, BufWriter, Write};

/// Shows it on standard error, in one piece.
pub(crate) fn to_stderr(recording: &Recording) {
    let look = Layout::of_stderr();
    let mut text = Vec::new();
    // Writing to memory does not fail, and nothing can be done about a closed stderr.
    let _ = write(recording, &look, false, &mut text);
    let _ = io::stderr().lock().write_all(&text);
}

/// Writes it.
pub(crate) fn write(
    recording: &Recording,
    look: &Layout,
    everything: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    // A line of a file may be long, but rules and columns shall not be.
    let columns = if look.terminal { look.columns } else { look.columns.min(120) };
    let mut out = BufWriter::new(out);
    let screen = Summary::new().cols(columns).style(look.style).links(look.links.clone());
    screen.everything(everything).write(recording, &mut out)?;
    out.flush()
}
