//! Finds and reads a recording: the given one, or the newest in this folder.
//!
//! Reports do not need single samples, so samples are merged while they are read: memory is proportional to the
//! distinct stacks. A read that takes longer shows a progress bar on a terminal.

use crate::failure::Failure;
use crate::message;
use crate::terminal::Layout;
use indicatif::{ProgressBar, ProgressStyle};
use stackglass_files::Completeness;
use stackglass_profile::{Nanos, Recording, TimeRange};
use stackglass_report::numbers::duration_text;
use stackglass_symbols::{Debuginfod, Options};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Reads a part of a recording for a report. Samples that differ only in clock, time and hits are merged.
pub(crate) fn read_merged(path: &Path, range: TimeRange) -> Result<Recording, Failure> {
    let mut bar = Bar::new();
    let read = stackglass_files::read_merged_part(path, range, |at, of| bar.show(at, of));
    drop(bar);
    let (mut recording, completeness) = read.map_err(Failure::new)?;
    let name = path.display().to_string();
    check_range(&name, &recording, range)?;
    recording.become_part(range);
    with_names(&name, recording, &completeness)
}

/// Says which part of a recording counts.
///
/// # Errors
/// If the recording ends before that part begins.
pub(crate) fn check_range(name: &str, recording: &Recording, range: TimeRange) -> Result<(), Failure> {
    if range.is_all() {
        return Ok(());
    }
    let (from, wall) = (range.from.unwrap_or_default(), recording.info.wall);
    if from >= wall {
        return Err(Failure::new(format!("{name}: it ends after {}, before --from", duration_text(wall.0))));
    }
    let to = range.to.map_or(wall, |to| Nanos(to.0.min(wall.0)));
    let [from, to, wall] = [from, to, wall].map(|at| duration_text(at.0));
    message::print(&format!("{name}: from {from} to {to} of {wall}"));
    Ok(())
}

/// Reports an unfinished recording, and looks up names that the recording does not have yet.
///
/// # Errors
/// If not even the beginning of the recording is there.
pub(crate) fn with_names(
    name: &str,
    mut recording: Recording,
    completeness: &Completeness,
) -> Result<Recording, Failure> {
    // Everything that writes recordings begins with its own name.
    if !completeness.is_complete() && recording.info.writer.is_empty() && recording.samples.is_empty() {
        return Err(Failure::new(format!("{name} is cut: it ends before anything was recorded")));
    }
    warn(name, completeness);
    add_names(&mut recording, completeness);
    Ok(recording)
}

/// Reads a recording that may still be written, with every single sample, and whether it is complete. Says nothing about that.
///
/// # Errors
/// If it cannot be read, or nothing was recorded yet.
pub(crate) fn read_growing(path: &Path) -> Result<(Recording, bool), Failure> {
    let (mut recording, completeness) = stackglass_files::read(path).map_err(Failure::new)?;
    let is_complete = completeness.is_complete();
    if !is_complete && recording.samples.is_empty() {
        return Err(Failure::new(format!("{}: nothing was recorded yet", path.display())));
    }
    add_names(&mut recording, &completeness);
    Ok((recording, is_complete))
}

fn add_names(recording: &mut Recording, completeness: &Completeness) {
    if !completeness.is_complete() {
        recording.allocations.sum_up_slices();
    }
    if recording.symbols.is_empty() && !recording.stacks.locations().is_empty() {
        let options = Options { debuginfod: Debuginfod::from_environment(), ..Options::default() };
        let outcome = stackglass_symbols::symbolize(recording, &options, &mut |_| ());
        if let Some(line) = outcome.debuginfod {
            message::print(&line);
        }
    }
}

fn warn(name: &str, completeness: &Completeness) {
    if !completeness.is_complete() {
        message::print(&format!("{name}: {completeness}"));
    }
}

/// The newest recording in this folder. Newer files that cannot be read are reported.
pub(crate) fn newest() -> Result<PathBuf, Failure> {
    let mut skipped = Vec::new();
    let newest = stackglass_files::latest(".", |why| skipped.push(why.to_string()))
        .map_err(|error| Failure::new(format!("cannot look for recordings in this folder: {error}")))?;
    let why = match skipped.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        [first, others @ ..] => Some(format!("{first}; {} more", others.len())),
    };
    match (newest, why) {
        (Some(path), None) => Ok(path),
        (Some(path), Some(why)) => {
            message::print(&format!("{why}: using {} instead", path.display()));
            Ok(path)
        }
        (None, why) => {
            let why = why.map_or_else(String::new, |why| format!(" ({why})"));
            Err(Failure::new(format!(
                "no recording (*.glass) in this folder{why}: make one with `stackglass record -- PROGRAM`, or name a file"
            )))
        }
    }
}

/// Reads shorter than this show no bar.
const BAR_DELAY: Duration = Duration::from_millis(300);

/// A progress bar on stderr, if that is a terminal. Dropping it removes the bar.
struct Bar {
    begin: Instant,
    wanted: bool,
    columns: usize,
    bar: Option<ProgressBar>,
}

impl Bar {
    fn new() -> Bar {
        let layout = Layout::of_stderr();
        let capable = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
        Bar { begin: Instant::now(), wanted: layout.terminal && capable, columns: layout.columns, bar: None }
    }

    fn show(&mut self, at: u64, of: u64) {
        // A pipe has no length.
        if !self.wanted || of == 0 || (self.bar.is_none() && self.begin.elapsed() < BAR_DELAY) {
            return;
        }
        self.bar.get_or_insert_with(|| bar(of, self.begin, self.columns)).set_position(at);
    }
}

fn bar(of: u64, begin: Instant, columns: usize) -> ProgressBar {
    // The text takes up to 60 columns. A narrower terminal gets no bar.
    let template = match columns.saturating_sub(60).min(30) {
        0..4 => "reading {percent} %".to_owned(),
        width => format!("reading {{bar:{width}}} {{bytes}} of {{total_bytes}}, {{eta}} left"),
    };
    let style = ProgressStyle::with_template(&template).expect("the template is valid");
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
    use indicatif::{ProgressDrawTarget, TermLike};
    use std::io::Result;
    use std::sync::{Arc, Mutex};

    /// A terminal of some width, and what was written to it.
    #[derive(Clone, Debug)]
    struct Terminal {
        columns: u16,
        text: Arc<Mutex<String>>,
    }

    impl TermLike for Terminal {
        fn width(&self) -> u16 {
            self.columns
        }
        fn move_cursor_up(&self, _: usize) -> Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> Result<()> {
            self.text.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> Result<()> {
            self.text.lock().unwrap().clear();
            Ok(())
        }
        fn flush(&self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_bar_fits_into_any_terminal() {
        for columns in 12..200 {
            let terminal = Terminal { columns, text: Arc::default() };
            let bar = bar(u64::MAX, Instant::now(), columns.into());
            bar.set_draw_target(ProgressDrawTarget::term_like(Box::new(terminal.clone())));
            bar.set_position(u64::MAX / 2);
            bar.tick();
            let text = terminal.text.lock().unwrap().trim_end().to_owned();
            assert!(
                text.starts_with("reading ") && text.chars().count() <= columns.into(),
                "{columns}: {text:?}"
            );
            // Nothing is cut off.
            assert!(text.ends_with(" %") || text.ends_with(" left"), "{columns}: {text:?}");
        }
    }
}
