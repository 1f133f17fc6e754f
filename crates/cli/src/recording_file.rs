//! Finding and reading a recording: the one that was named, or the newest of this folder.
//!
//! Reports do not need each moment, so memory is that of the distinct stacks, however long was
//! recorded. What takes more than a moment shows a bar, where somebody watches.

use crate::failure::Failure;
use crate::message;
use crate::terminal::Layout;
use indicatif::{ProgressBar, ProgressStyle};
use stackglass_files::{Completeness, Totals};
use stackglass_profile::Recording;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Reads a recording for a report: samples that differ in clock, time and hits only become one.
pub(crate) fn read_merged(path: &Path) -> Result<Recording, Failure> {
    let mut bar = Bar::new();
    let read = stackglass_files::read_merged(path, |at, of| bar.show(at, of));
    drop(bar);
    let (recording, completeness) = read.map_err(Failure::new)?;
    Ok(with_names(&path.display().to_string(), recording, &completeness))
}

/// What a recording says besides its samples, and how many there are.
pub(crate) fn read_tables(path: &Path) -> Result<(Recording, Totals), Failure> {
    let mut bar = Bar::new();
    let read = stackglass_files::read_tables(path, |at, of| bar.show(at, of));
    drop(bar);
    let (recording, completeness, totals) = read.map_err(Failure::new)?;
    warn(&path.display().to_string(), &completeness);
    Ok((recording, totals))
}

/// A recording that was never finished (or still grows) is told of, and its names are looked for now.
pub(crate) fn with_names(name: &str, mut recording: Recording, completeness: &Completeness) -> Recording {
    warn(name, completeness);
    if recording.symbols.is_empty() && !recording.stacks.locations().is_empty() {
        stackglass_symbols::symbolize(&mut recording, &Default::default(), &mut |_| ());
    }
    recording
}

fn warn(name: &str, completeness: &Completeness) {
    if !completeness.is_complete() {
        message::print(&format!("{name}: {completeness}"));
    }
}

/// The newest recording of this folder; newer files that are none are told of.
pub(crate) fn newest() -> Result<PathBuf, Failure> {
    let mut passed_over = Vec::new();
    let newest = stackglass_files::latest(".", |why| passed_over.push(why.to_string()))
        .map_err(|error| Failure::new(format!("cannot look for recordings in this folder: {error}")))?;
    let why = match passed_over.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        [first, others @ ..] => Some(format!("{first}; {} more like it", others.len())),
    };
    match (newest, why) {
        (Some(path), None) => Ok(path),
        (Some(path), Some(why)) => {
            message::print(&format!("{why}: passed over for {}", path.display()));
            Ok(path)
        }
        (None, why) => {
            let why = why.map_or_else(String::new, |why| format!(" ({why})"));
            Err(Failure::new(format!(
                "no recording (*.glass) in this folder{why}: make one with `stackglass record -- PROGRAM`, or name one"
            )))
        }
    }
}

/// What is over before this shows no bar.
const A_MOMENT: Duration = Duration::from_millis(300);

/// A bar on a terminal's standard error; nothing elsewhere. It goes when this goes.
struct Bar {
    begin: Instant,
    wanted: bool,
    columns: usize,
    bar: Option<ProgressBar>,
}

impl Bar {
    fn new() -> Bar {
        let look = Layout::of_stderr();
        let capable = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
        Bar { begin: Instant::now(), wanted: look.terminal && capable, columns: look.columns, bar: None }
    }

    fn show(&mut self, at: u64, of: u64) {
        // A pipe has no length.
        if !self.wanted || of == 0 || (self.bar.is_none() && self.begin.elapsed() < A_MOMENT) {
            return;
        }
        self.bar.get_or_insert_with(|| bar(of, self.begin, self.columns)).set_position(at);
    }
}

fn bar(of: u64, begin: Instant, columns: usize) -> ProgressBar {
    // The words take 60 columns at most; in a terminal that is narrower they do without the bar.
    let template = match columns.saturating_sub(60).min(30) {
        0..4 => "reading {percent} %".to_owned(),
        width => format!("reading {{bar:{width}}} {{bytes}} of {{total_bytes}}, {{eta}} left"),
    };
    let style = ProgressStyle::with_template(&template).expect("the template is right");
    ProgressBar::new(of).with_style(style).with_elapsed(begin.elapsed())
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_fits_into_any_terminal() {
        for columns in 0..200 {
            bar(100, Instant::now(), columns).set_position(50);
        }
    }
}
