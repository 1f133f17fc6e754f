//! Reads a snapshot, and says so on a terminal if it takes long.

use super::stored;
use crate::failure::Failure;
use crate::input::{head_of, is_stream};
use crate::terminal::Layout;
use indicatif::{ProgressBar, ProgressStyle};
use stackglass_files::heapsnapshot::{self, ReadOptions};
use stackglass_profile::heap_graph::HeapGraph;
use stackglass_profile::sanitize;
use std::path::Path;
use std::time::Duration;

/// Reads a snapshot, or standard input for `-`.
pub(crate) fn read(path: &Path, options: ReadOptions, progress: &Progress) -> Result<HeapGraph, Failure> {
    let (path, name) = match is_stream(path) {
        true => (Path::new("/dev/stdin"), "standard input".to_owned()),
        false => (path, path.display().to_string()),
    };
    let stored = stored::find(path)?;
    if let Some(stored) = &stored
        && !stored.snapshot.is_complete
    {
        let line = format!("the heap snapshot in {name} is incomplete: the recording was cut off");
        return Err(Failure::new(line));
    }
    let size = match &stored {
        Some(stored) => stored.snapshot.size,
        None => path.metadata().map_or(0, |info| info.len()),
    };
    // Small files are read at once.
    let step = match size {
        0..1_000_000 => format!("reading {name}"),
        _ => format!("reading {name} ({} MB)", size / 1_000_000),
    };
    progress.step(&step);
    let graph = match stored {
        Some(stored) => heapsnapshot::read_stored_with(&stored.recording, &stored.snapshot, options),
        None => heapsnapshot::read_with(path, options),
    };
    graph.map_err(Failure::new)
}

/// Whether this looks like a snapshot by its first bytes, or is the prefix of part files.
pub(crate) fn is_snapshot(path: &Path) -> bool {
    if is_stream(path) {
        return false;
    }
    if !path.exists() {
        let mut metadata = path.as_os_str().to_owned();
        metadata.push(".metadata.json");
        return Path::new(&metadata).is_file();
    }
    begins_with_key(path, "snapshot")
}

/// Whether a file is an object of JSON whose first key is this one.
pub(crate) fn begins_with_key(path: &Path, key: &str) -> bool {
    let Some(head) = head_of(path) else { return false };
    let text = String::from_utf8_lossy(&head);
    let inside = text.trim_start().strip_prefix('{').map(str::trim_start);
    inside.is_some_and(|inside| inside.starts_with(&format!("\"{key}\"")))
}

/// Time between two pictures of the sign of progress.
const TICK: Duration = Duration::from_millis(200);

/// What is being done, on stderr, if that is a terminal. Dropping it removes the line.
pub(crate) struct Progress {
    line: Option<ProgressBar>,
    columns: usize,
}

impl Progress {
    pub(crate) fn new() -> Progress {
        let layout = Layout::of_stderr();
        let capable = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
        let line = (layout.terminal && capable).then(|| {
            let style = ProgressStyle::with_template("{spinner} {msg}").expect("the template is valid");
            let line = ProgressBar::new_spinner().with_style(style);
            line.enable_steady_tick(TICK);
            line
        });
        Progress { line, columns: layout.columns }
    }

    /// Names what is being done now.
    pub(crate) fn step(&self, text: &str) {
        if let Some(line) = &self.line {
            let text: String = sanitize(text).chars().take(self.columns.saturating_sub(3)).collect();
            line.set_message(text);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(line) = &self.line {
            line.finish_and_clear();
        }
    }
}
