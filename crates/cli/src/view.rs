//! `stackglass view [FILE]`: a recording as one page with a time axis, with its heap and tasks. It is served to the browser, or written to a file.

mod contents;
mod live;
mod served;

pub(crate) use live::LivePage;

use crate::drawn_output::DrawnOutput;
use crate::failure::Outcome;
use crate::input;
use clap::Args;
use contents::Contents;
use stackglass_report::numbers::bytes_text;
use stackglass_view::Page;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  stackglass view                       the newest recording, in the browser
  stackglass view rg.glass -o rg.html   as one file, to keep and to send
  stackglass view after.glass --against before.glass    what changed
  stackglass view stacks.folded         samples of another tool: no time axis
  stackglass view app.heapsnapshot      a heap: its types, and what holds them
  stackglass view app.glass --heap app.heapsnapshot     both in one page
  stackglass tasks 1234 --json > t.json && stackglass view t.json
  stackglass view rg.glass --port 7000  over ssh -L 7000:127.0.0.1:7000

Without -o, the page is served to this machine only, under an address that
stackglass prints and opens, until its last tab is closed or Ctrl-C. A
recording that still grows is shown as it grows. With -o, the page is one
file, which opens from disk and makes no request.

Drag over the lanes to count a part of the time, click the name of a thread
to count only that. / searches, u undoes, ? lists all keys. A heap snapshot in
the recording (--heap-at), or of the same name beside it, has a tab of its own.";

/// Show a recording as a page: its threads over time, flame graph and functions of any part of it.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// A .glass, .jlprof, folded or .heapsnapshot file, output of perf script or of `tasks --json`, or - for stdin [default: the newest *.glass in this folder]
    file: Option<PathBuf>,

    /// Also show this heap snapshot [default: the last one in the recording, or that of the same name beside it]
    #[arg(long, value_name = "SNAPSHOT")]
    heap: Option<PathBuf>,

    /// Also show these await stacks and locks: the output of `stackglass tasks PID --json`
    #[arg(long, value_name = "JSON")]
    tasks: Option<PathBuf>,

    /// Compare with this earlier recording: flame graph, tree and functions show what changed
    #[arg(long, value_name = "RECORDING")]
    against: Option<PathBuf>,

    /// Write the page to this file, or to stdout for -
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write the texts of source files into the page, so that it shows them elsewhere too [default: only when served]
    #[arg(long)]
    with_source: bool,

    /// Write the instructions of the functions with most CPU time into the page [default: only when served]
    #[arg(long)]
    with_asm: bool,

    /// Title [default: the command that was recorded]
    #[arg(long)]
    title: Option<String>,

    /// Open the written file with $BROWSER, or with the desktop's default program
    #[arg(long, requires = "output")]
    open: bool,

    /// Print the address, and start no browser
    #[arg(long, conflicts_with = "output")]
    no_open: bool,

    /// Port of 127.0.0.1 to serve the page on [default: any free one]
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 0,
        hide_default_value = true,
        conflicts_with = "output"
    )]
    port: u16,

    /// End with the end of standard input: `record --view` starts this
    #[arg(long, hide = true, conflicts_with = "output")]
    until_stdin_ends: bool,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let path = input::choose(flags.file.as_deref())?;
    let Some(output) = &flags.output else { return served::run(&path, flags) };
    let output = DrawnOutput::new(output.clone(), flags.open, &path, "pages")?;
    let contents = Contents::read(&path, flags)?;
    let page = Page::new(&contents.packed);
    output.write(
        |mut out| page.write_to(&mut out),
        |file| {
            let size = bytes_text(file.metadata().map_or(0, |file| file.len()));
            format!("a page of {size} with {}", contents.shown)
        },
    )?;
    Ok(0)
}
