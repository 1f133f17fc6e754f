//! `stackglass print [FILE]`: the summary of a recording, or its full report.

use crate::failure::{Failure, Outcome};
use crate::input::{self, Input};
use crate::message;
use crate::metric_flag::MetricFlag;
use crate::report_flags::ReportFlags;
use crate::summary;
use crate::terminal::{Layout, LayoutFlags};
use clap::Args;
use stackglass_report::allocation_queries::TypeLeaf;
use stackglass_report::{FILE_COLUMNS, Metric, ReportError, Source, Style};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  stackglass print                        the newest recording in this folder
  stackglass print server.glass --all     the summary with nothing hidden
  stackglass print | less                 the full report
  stackglass print --format flat --sortedby overhead   hottest lines last
  stackglass print --groupby thread --threads 1,3,5-7  one tree per thread
  stackglass print --mincount 20 --maxdepth 12         the main branches only
  stackglass print run.jlprof -o tree.txt samples from Julia, into a file
  stackglass print --metric bytes --format flat   allocated bytes by line
  stackglass print --metric peak-bytes | less          stacks of the peak
  perf script | stackcollapse-perf.pl | stackglass print -   folded stacks";

/// Print the report of a recording.
///
/// On a terminal this is the summary that `record` prints. The full report is a tree of all snapshots of all threads,
/// running or asleep. It is printed to pipes and files, with any of its options below, and for files without times
/// (.jlprof, folded stacks).
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// A .glass, .jlprof or folded file, or - for stdin [default: the newest *.glass in this folder]
    file: Option<PathBuf>,

    /// Show every branch, frame and thread in the summary; the full report always does
    #[arg(long)]
    all: bool,

    /// Write to this file, 1000 columns wide unless --cols is given
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    metric: MetricFlag,

    #[command(flatten)]
    layout: LayoutFlags,

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
    let metric = flags.metric.of(&input)?;
    let show = |input, layout: &Layout, out: &mut dyn Write| write(flags, input, metric, layout, out);
    let Some(output) = output else {
        let layout = flags.layout.of_stdout();
        let mut out = BufWriter::new(io::stdout().lock());
        match show(input, &layout, &mut out) {
            Ok(()) => out.flush()?,
            Err(ReportError::Io(error)) => return Err(error.into()),
            Err(error) => return Err(Failure::new(error)),
        }
        return Ok(0);
    };
    let columns = flags.layout.cols.unwrap_or(FILE_COLUMNS);
    let layout = Layout { columns, style: Style::Plain, terminal: false, links: None };
    let mut failed = None;
    let written = stackglass_files::write_whole(output, |out| {
        show(input, &layout, out).map_err(|error| match error {
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

fn write(
    flags: &Flags,
    input: Input,
    metric: Metric,
    layout: &Layout,
    out: &mut dyn Write,
) -> Result<(), ReportError> {
    let screen = flags.all || layout.terminal;
    if let Some(recording) = input.timed().filter(|_| screen && !flags.report.given()) {
        match flags.metric.metric {
            None | Some(Metric::Time) => summary::write(recording, layout, flags.all, out)?,
            Some(metric) => summary::write_allocations(recording, metric, layout, flags.all, out)?,
        }
        return Ok(());
    }
    let input = input.weighted(metric, TypeLeaf::Without);
    let foreign = match input.source() {
        Source::Recording(recording) => !recording.has_rust(),
        // Julia's samples do not tell Rust frames from others: show foreign frames only if there are no other ones.
        source @ Source::Data(..) => source.frames().iter().all(|frame| frame.foreign),
    };
    let report = flags
        .report
        .report(foreign)
        .cols(layout.columns)
        .style(layout.style)
        .links(layout.links.clone())
        .metric(metric);
    let written = report.write(input.source(), out)?;
    written.warnings.iter().for_each(|warning| message::print(warning));
    Ok(())
}
