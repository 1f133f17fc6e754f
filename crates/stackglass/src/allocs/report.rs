//! Allocations as text, and as files.

use super::recording;
use stackglass_heap::LeftOut;
use stackglass_heap::own_recording::is_delegated;
use stackglass_profile::{AllocationKind, Recording};
use stackglass_report::allocation_queries::{TypeLeaf, weighted};
use stackglass_report::{AllocationsText, Metric, Report, ReportError, Written};
use std::io::{self, Write};

/// Warning of a report without allocations.
pub const NO_ALLOCATIONS: &str =
    "no allocations to show: run the code longer, or record all of them with sample_rate = 1.0";

/// Prints what was allocated to standard output, as wide as the terminal and as `stackglass allocs` does: totals, the peak, types
/// and lines. [`write()`] has the tree of bytes by stack. Without allocations, a warning on standard error says what to do.
pub fn print() {
    let _left_out = LeftOut::new();
    let mut text = Vec::new();
    let (columns, style) = crate::samples::layout();
    let recording = match is_delegated() {
        true => None,
        false => Some(recording()),
    };
    // Writing to memory does not fail.
    let _ = match &recording {
        Some(recording) => AllocationsText::new().cols(columns).style(style).write(recording, &mut text),
        None => writeln!(text, "{DELEGATED}"),
    };
    let _ = io::stdout().lock().write_all(&text);
    let count = |recording: Recording| recording.allocations.total(AllocationKind::Block).count;
    if recording.is_some_and(|recording| count(recording) == 0) {
        eprintln!("stackglass: {NO_ALLOCATIONS}");
    }
}

/// What reports say in a program whose allocations the command records.
const DELEGATED: &str =
    "This program runs under `stackglass record --allocs`, which records its allocations: see its report.";

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
        writeln!(out, "{DELEGATED}")?;
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
