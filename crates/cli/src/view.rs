//! `stackglass view [FILE]`: a recording as one page with a time axis.

use crate::failure::{Failure, Outcome};
use crate::flamegraph::open;
use crate::input;
use crate::message;
use clap::Args;
use stackglass_report::numbers::bytes_text;
use stackglass_view::{Packed, Page};
use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  stackglass view                       the newest recording: rg-view.html
  stackglass view rg.glass -o rg.html   the same, in this file
  stackglass view rg.glass --open       and in the browser

The page is one file, which opens from disk and makes no request. Drag over
the lanes to count a part of the time, click the name of a thread to count
only that. / searches, u undoes, 1 and 2 choose flame graph or functions.";

/// Write a page with a recording: its threads over time, flame graph and functions of any part of it.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// A .glass file, or - for stdin [default: the newest *.glass in this folder]
    file: Option<PathBuf>,

    /// File to write, or - for stdout [default: FILE-view.html in this folder]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Title [default: the command that was recorded]
    #[arg(long)]
    title: Option<String>,

    /// Open the file with $BROWSER, or with the desktop's default program
    #[arg(long)]
    open: bool,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let path = input::choose(flags.file.as_deref())?;
    let output = flags.output.clone().unwrap_or_else(|| beside(&path));
    let is_stream = input::is_stream(&output);
    if is_stream && flags.open {
        let line = "--open needs a file, not stdout: name one with -o".into();
        return Err(Failure { status: 2, line });
    }
    if is_stream && io::stdout().is_terminal() {
        return Err(Failure::new("pages are not written to a terminal: name a file with -o"));
    }
    input::refuse_same(&path, &output)?;
    let input = input::read_exactly(&path)?;
    if input.timed().is_none() {
        let line = format!("{}: its samples have no times; `stackglass flamegraph` draws them", input.name);
        return Err(Failure::new(line));
    }
    let title = flags.title.clone().unwrap_or_else(|| input.title());
    let recording = input.into_recording()?;
    let (threads, samples) = (recording.threads.len(), recording.samples.len());
    let packed = Packed::new(recording, &title);
    let page = Page::new(&packed);
    if is_stream {
        let mut out = io::stdout().lock();
        page.write_to(&mut out)?;
        out.flush()?;
        return Ok(0);
    }
    stackglass_files::write_atomically(&output, |out| page.write_to(out))
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", output.display())))?;
    let size = output.metadata().map_or(0, |file| file.len());
    message::print(&format!(
        "{}: a page of {} with {threads} threads, {samples} samples",
        output.display(),
        bytes_text(size)
    ));
    if flags.open {
        open::show(&output)?;
    }
    Ok(0)
}

/// The default output: the name of the recording, in the current folder. The flame graph has another.
fn beside(input: &Path) -> PathBuf {
    let stem = input.file_stem().filter(|_| !input::is_stream(input));
    let mut name = stem.unwrap_or(OsStr::new("recording")).to_os_string();
    name.push("-view.html");
    PathBuf::from(name)
}
