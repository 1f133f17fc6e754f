//! `stackglass print [FILE]`: the first screen of a recording again, or its complete report.

use crate::failure::{Failure, Outcome};
use crate::input::{self, Input};
use crate::message;
use crate::report_flags::ReportFlags;
use crate::summary;
use crate::terminal::{Layout, LayoutFlags};
use clap::Args;
use stackglass_report::{FILE_COLUMNS, ReportError, Source, Style};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  stackglass print                        the newest recording of this folder
  stackglass print server.glass --all     nothing folded, nothing trimmed
  stackglass print | less                 piped: the complete report
  stackglass print --format flat --sortedby overhead   hottest lines last
  stackglass print --groupby thread --threads 1,3,5-7  a tree for each thread
  stackglass print --mincount 20 --maxdepth 12         the trunk of a big tree
  stackglass print run.jlprof -o tree.txt samples of Julia, into a file
  perf script | stackcollapse-perf.pl | stackglass print -   folded stacks";

/// Show the report of a recording.
///
/// On a terminal this is the screen that `record` showed. The complete report, a tree of all
/// snapshots of all threads, running or asleep, comes in a pipe, in a file, with any option of it,
/// and for files without times (.jlprof, folded stacks).
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// A .glass, .jlprof or folded file, - for stdin [default: the newest *.glass of this folder]
    file: Option<PathBuf>,

    /// The screen of `record` with every branch, frame and thread; beside options of the complete report,
    /// which folds nothing anyway, it changes nothing
    #[arg(long)]
    all: bool,

    /// Write to this file instead, 1000 columns wide unless --cols is given
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    look: LayoutFlags,

    #[command(flatten)]
    report: ReportFlags,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    if let Some(contradiction) = flags.report.contradiction() {
        return Err(Failure { status: 2, line: contradiction });
    }
    let path = input::choose(flags.file.as_deref())?;
    let output = flags.output.as_deref().filter(|output| !input::is_stream(output));
    if let Some(output) = output {
        input::refuse_same(&path, output)?;
    }
    let input = input::read_for_report(&path)?;
    let Some(output) = output else {
        let look = flags.look.of_stdout();
        let mut out = BufWriter::new(io::stdout().lock());
        match write(flags, &input, &look, &mut out) {
            Ok(()) => out.flush()?,
            Err(ReportError::Io(error)) => return Err(error.into()),
            Err(error) => return Err(Failure::new(error)),
        }
        return Ok(0);
    };
    let columns = flags.look.cols.unwrap_or(FILE_COLUMNS);
    let look = Layout { columns, style: Style::Plain, terminal: false, links: None };
    let mut failed = None;
    let written = stackglass_files::write_whole(output, |out| {
        write(flags, &input, &look, out).map_err(|error| match error {
            ReportError::Io(error) => error,
            error => {
                failed = Some(Failure::new(error));
                io::Error::other("the report failed")
            }
        })
    });
    match (failed, written) {
        (Some(failure), _) => Err(failure),
        (None, Err(error)) => Err(Failure::new(format!("cannot write {}: {error}", output.display()))),
        (None, Ok(())) => Ok(0),
    }
}

fn write(flags: &Flags, input: &Input, look: &Layout, out: &mut dyn Write) -> Result<(), ReportError> {
    let screen = flags.all || look.terminal;
    if let Some(recording) = input.timed().filter(|_| screen && !flags.report.given()) {
        return Ok(summary::write(recording, look, flags.all, out)?);
    }
    let foreign = match input.source() {
        Source::Recording(recording) => !recording.has_rust(),
        // Whose code a frame is stays unknown here: others than foreign ones are what was meant, if there are any.
        source @ Source::Data(..) => source.frames().iter().all(|frame| frame.foreign),
    };
    let report = flags.report.report(foreign).cols(look.columns).style(look.style).links(look.links.clone());
    let written = report.write(input.source(), out)?;
    written.warnings.iter().for_each(|warning| message::print(warning));
    Ok(())
}
