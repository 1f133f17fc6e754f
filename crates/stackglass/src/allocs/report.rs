//! Allocations as text, and as files.

use super::recording;
use stackglass_heap::LeftOut;
use stackglass_heap::own_recording::is_delegated;
use stackglass_profile::sanitize;
use stackglass_report::allocation_queries::{TypeLeaf, weighted};
use stackglass_report::{Metric, Report, ReportError, Style, Written};
use std::io::{self, IsTerminal, Write};

/// Warning of a report without allocations.
pub const NO_ALLOCATIONS: &str =
    "no allocations to show: run the code longer, or record all of them with sample_rate = 1.0";

/// Prints a tree of the recorded bytes by stack to standard output, as wide as the terminal, with the number of allocations and
/// their bytes below it. Without allocations, a warning on standard error says what to do.
pub fn print() {
    let _left_out = LeftOut::new();
    let out = io::stdout();
    let style = match out.is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        true => Style::Ansi,
        false => Style::Plain,
    };
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).unwrap_or(80);
    let mut text = Vec::new();
    // Writing to memory does not fail, and the tree has no options that contradict each other.
    let written = write(&Report::new().cols(columns).style(style), &mut text).unwrap_or_default();
    let _ = out.lock().write_all(&text);
    for warning in written.warnings {
        eprintln!("stackglass: {}", sanitize(&warning));
    }
}

/// Writes a report of the recorded allocations, with bytes in the place of time.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: stackglass::Alloc = stackglass::Alloc::system();
/// use stackglass::{Format, Report, allocs};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let text = allocs::profile!(sample_rate = 1.0, "a".repeat(1000));
/// let mut flat = Vec::new();
/// allocs::write(&Report::new().format(Format::Flat), &mut flat)?;
/// assert!(String::from_utf8(flat)?.ends_with("Total snapshots: 1\nTotal bytes: 1000\n"));
/// # drop(text);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If options contradict each other, or if writing fails.
pub fn write(report: &Report, out: &mut dyn Write) -> Result<Written, ReportError> {
    if is_delegated() {
        writeln!(
            out,
            "This program runs under `stackglass record --allocs`, which records its allocations: see its report."
        )?;
        return Ok(Written::default());
    }
    let _left_out = LeftOut::new();
    let recording = weighted(recording(), Metric::Bytes, TypeLeaf::Without);
    let mut written = report.clone().metric(Metric::Bytes).write(&recording, out)?;
    for warning in &mut written.warnings {
        if *warning == stackglass_report::NO_ALLOCATIONS {
            *warning = NO_ALLOCATIONS.to_owned();
        }
    }
    Ok(written)
}

/// Saves [`recording`](recording()) to a `.glass` file. `stackglass allocs FILE` and all other commands show it.
///
/// # Errors
/// If the file cannot be written.
#[cfg(feature = "files")]
pub fn save(path: impl AsRef<std::path::Path>) -> Result<(), crate::WriteError> {
    let _left_out = LeftOut::new();
    stackglass_files::write(path, &recording()).map(|_| ())
}

/// Writes a flame graph of the recorded bytes to an HTML page: stacks, and the allocated types at their ends. Without
/// allocations it writes nothing and returns false.
///
/// # Errors
/// If the page cannot be written.
#[cfg(feature = "flame")]
pub fn flamegraph(path: impl AsRef<std::path::Path>) -> io::Result<bool> {
    let _left_out = LeftOut::new();
    let recording = weighted(recording(), Metric::Bytes, TypeLeaf::With);
    let drawn = stackglass_flame::Flamegraph::new().graph(&recording).map_err(io::Error::other)?;
    let Some(graph) = drawn.graph else { return Ok(false) };
    let page = stackglass_flame::Page::new("Allocated bytes").unit("bytes").view("bytes", &graph);
    let mut file = io::BufWriter::new(std::fs::File::create(path)?);
    page.write_to(&mut file)?;
    file.flush()?;
    Ok(true)
}
