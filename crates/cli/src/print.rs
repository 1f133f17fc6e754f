//! `stackglass print [FILE]`: the summary of a recording, or its full report.

use crate::failure::{Failure, Outcome};
use crate::input::{self, Input};
use crate::message;
use crate::metric_flag::MetricFlag;
use crate::range_flags::RangeFlags;
use crate::report_flags::ReportFlags;
use crate::states_flag::StateFlags;
use crate::summary::{self, SummaryText};
use crate::terminal::{Layout, LayoutFlags};
use clap::Args;
use stackglass_report::allocation_queries::TypeLeaf;
use stackglass_report::call_tree::StateFilter;
use stackglass_report::{AllocationKey, AllocationTable, Metric, ReportError, Selection, Source};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  stackglass print                        the newest recording in this folder
  stackglass print server.glass --all     the summary with nothing hidden
  stackglass print --format tree | less   the full report
  stackglass print --format flat --sortedby overhead   hottest lines last
  stackglass print --format flat --wall   with sleeping threads, as in Julia
  stackglass print --groupby thread --threads 1,3,5-7  one tree per thread
  stackglass print --mincount 20 --maxdepth 12         the main branches only
  stackglass print run.jlprof -o tree.txt samples from Julia, into a file
  stackglass print --metric bytes --format flat   allocated bytes by line
  stackglass print --metric peak-bytes --format tree   stacks of the peak
  perf script | stackcollapse-perf.pl | stackglass print -   folded stacks";

/// Print the report of a recording.
///
/// This is the summary that `record` prints, fitted to the height of the terminal ($LINES; 40 lines in a pipe or file).
/// Samples without times (.jlprof, folded stacks) are counted. The full report is a tree of the CPU time of all threads.
/// It is printed with any of its options below.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// A .glass, .jlprof or folded file, or - for stdin [default: the newest *.glass in this folder]
    file: Option<PathBuf>,

    /// Show every branch, frame and thread in the summary; the full report always does
    #[arg(long)]
    all: bool,

    /// Print the summary as one JSON object (docs/json.md)
    #[arg(long)]
    json: bool,

    /// Write to this file; the full report is then 1000 columns wide unless --cols is given
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    states: StateFlags,

    #[command(flatten)]
    metric: MetricFlag,

    #[command(flatten)]
    range: RangeFlags,

    #[command(flatten)]
    layout: LayoutFlags,

    #[command(flatten)]
    report: ReportFlags,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    if let Some(contradiction) = flags.report.contradiction() {
        return Err(Failure { status: 2, line: contradiction });
    }
    if flags.report.asks_for_summary() && flags.states.given() {
        let line = "the summary counts CPU time: omit --format summary, or --wall and --asleep".to_owned();
        return Err(Failure { status: 2, line });
    }
    if flags.json && (flags.report.given() || flags.states.given()) {
        let line =
            "--json prints the summary: omit the options of the full report, or use `stackglass hot --json`";
        return Err(Failure { status: 2, line: line.to_owned() });
    }
    let path = input::choose(flags.file.as_deref())?;
    let output = flags.output.as_deref().filter(|output| !input::is_stream(output));
    if let Some(output) = output {
        input::refuse_same(&path, output)?;
    }
    let input = input::read_for_report(&path, flags.range.range()?)?;
    let metric = flags.metric.of_input(&input)?;
    flags.states.of_metric(metric)?;
    if metric == Metric::Time {
        flags.report.check_selection(&input)?;
    }
    let show = |input, layout: &Layout, out: &mut dyn Write| write(flags, &path, input, metric, layout, out);
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
    let layout = Layout::of_file(flags.layout.cols);
    let mut failed = None;
    let written = stackglass_files::write_atomically(output, |out| {
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
    path: &Path,
    input: Input,
    metric: Metric,
    layout: &Layout,
    out: &mut dyn Write,
) -> Result<(), ReportError> {
    if flags.json {
        return Ok(write_json(flags, &input, metric, out)?);
    }
    if !flags.report.given() && !flags.states.given() {
        let text = SummaryText { layout, file: path, everything: flags.all, taken: summary::PROMPT };
        // Samples without times are counted.
        let counted;
        let recording = match input.timed() {
            Some(recording) => recording,
            None => {
                counted = input.into_recording().map_err(|failure| io::Error::other(failure.line))?;
                &counted
            }
        };
        match flags.metric.metric {
            None | Some(Metric::Time) => text.write(recording, out)?,
            Some(metric) => text.write_allocations(recording, metric, out)?,
        }
        return Ok(());
    }
    let input = input.weighted(metric, TypeLeaf::Without);
    let states = match metric {
        // Julia's reports count all states: so do files without times, unless a flag selects some.
        Metric::Time if input.timed().is_some() || flags.states.given() => flags.states.states(),
        _ => StateFilter::All,
    };
    let input = match states {
        StateFilter::All => input,
        _ => input.select(&Selection::new(states)).map_err(|failure| io::Error::other(failure.line))?,
    };
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
        .metric(metric)
        .states(states);
    let written = report.write(input.source(), out)?;
    written.warnings.iter().for_each(|warning| message::print(warning));
    Ok(())
}

/// Writes the summary, or with a metric of allocations its table, as JSON.
fn write_json(flags: &Flags, input: &Input, metric: Metric, out: &mut dyn Write) -> io::Result<()> {
    match (input.timed(), metric) {
        (Some(recording), Metric::Time) => stackglass_report::summary::write_json(recording, flags.all, out),
        (Some(recording), metric) => {
            let table = AllocationTable::new(recording, AllocationKey::default(), metric);
            stackglass_report::allocations::write_json(&table, out)
        }
        (None, _) => {
            let line = format!("{}: samples have no times: `stackglass hot --json` counts them", input.name);
            Err(io::Error::other(line))
        }
    }
}
