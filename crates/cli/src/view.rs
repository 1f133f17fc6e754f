//! `stackglass view [FILE]`: a recording as one page with a time axis.

use crate::drawn_output::DrawnOutput;
use crate::failure::{Failure, Outcome};
use crate::input;
use clap::Args;
use stackglass_report::numbers::bytes_text;
use stackglass_view::{Packed, Page};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  stackglass view                       the newest recording: rg-view.html
  stackglass view rg.glass -o rg.html   the same, in this file
  stackglass view rg.glass --open       and in the browser

The page is one file, which opens from disk and makes no request. Drag over
the lanes to count a part of the time, click the name of a thread to count
only that. / searches, u undoes, ? lists all keys.";

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
    let output = DrawnOutput::new(output, flags.open, &path, "pages")?;
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
    output.write(
        |mut out| page.write_to(&mut out),
        |file| {
            let size = bytes_text(file.metadata().map_or(0, |file| file.len()));
            format!("a page of {size} with {threads} threads, {samples} samples")
        },
    )?;
    Ok(0)
}

/// The default output: the name of the recording, in the current folder. The flame graph has another.
fn beside(input: &Path) -> PathBuf {
    let stem = input.file_stem().filter(|_| !input::is_stream(input));
    let mut name = stem.unwrap_or(OsStr::new("recording")).to_os_string();
    name.push("-view.html");
    PathBuf::from(name)
}
