//! `stackglass diff A B`: which functions take more time in B than in A, beyond the noise.

use crate::failure::{Failure, Outcome};
use crate::flamegraph::format::{self, Format};
use crate::input;
use crate::message;
use crate::metric_flag::MetricFlag;
use crate::range_flags::RangeFlags;
use crate::terminal::LayoutFlags;
use crate::values::one_of;
use clap::Args;
use stackglass_flame::png::{PictureOptions, write_picture};
use stackglass_flame::schemes::OneTheme;
use stackglass_flame::{Difference, Flamegraph, Graph, Page, Svg};
use stackglass_profile::{AllocationSampling, Nanos, Recording, TimeRange};
use stackglass_report::allocation_queries::{TypeLeaf, weighted};
use stackglass_report::call_tree::StateFilter;
use stackglass_report::comparison::{ComparisonKey, Cost};
use stackglass_report::{Comparison, ComparisonText, Metric, count_time};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  stackglass diff before.glass after.glass
  stackglass diff before.glass after.glass -o diff.html   with a flame graph
  stackglass diff before.glass after.glass --all | less
  stackglass diff old.folded new.folded            samples instead of time
  stackglass diff before.glass after.glass --metric bytes   allocated bytes
  stackglass diff before.glass after.glass --by type   which types became more

A function's own time includes code of the standard library and the C library
that it calls. Errors are standard errors, from the number of samples; ! marks
changes of more than three of them. A change that most functions have in common
(another CPU, a busier machine) is subtracted first and reported.";

/// Compare two profiles, function by function.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// The older profile: .glass, .jlprof, folded stacks, output of perf script, or - for stdin
    #[arg(value_name = "A")]
    before: PathBuf,

    /// The newer profile
    #[arg(value_name = "B")]
    after: PathBuf,

    /// Also draw the difference: .html, .svg or .png
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Show all functions, including changes within the noise
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    metric: MetricFlag,

    /// What the rows are; types count bytes, unless --metric says otherwise [default: function]
    #[arg(long, value_name = "KEY", value_parser = one_of(ComparisonKey::ALL, ComparisonKey::word, key_help))]
    by: Option<ComparisonKey>,

    /// Print all rows as one JSON object (docs/json.md)
    #[arg(long, conflicts_with = "all")]
    json: bool,

    #[command(flatten)]
    range: RangeFlags,

    #[command(flatten)]
    layout: LayoutFlags,
}

fn key_help(key: ComparisonKey) -> &'static str {
    match key {
        ComparisonKey::Function => "functions",
        ComparisonKey::Type => "allocated types",
    }
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    if input::is_stream(&flags.before) && input::is_stream(&flags.after) {
        let line = "only one of the two can come from stdin: name a file for the other".into();
        return Err(Failure { status: 2, line });
    }
    let format = match flags.output.as_deref().map(|output| (output, format::choose(None, output))) {
        None => None,
        Some((_, Ok(format))) if format != Format::Jlprof => Some(format),
        Some((output, _)) => {
            let line = format!(
                "cannot draw a difference to {}: the name must end in .html, .svg or .png",
                output.display()
            );
            return Err(Failure { status: 2, line });
        }
    };
    if let Some(output) = &flags.output {
        for input in [&flags.before, &flags.after] {
            input::refuse_same(input, output)?;
        }
    }
    let range = flags.range.range()?;
    let (before, after) = (recording(&flags.before, range)?, recording(&flags.after, range)?);
    let metric = metric(flags, &before, &after)?;
    let of_metric = |(name, recording): &(String, Recording), leaf| {
        (name.clone(), weighted(recording.clone(), metric, leaf))
    };
    let key = flags.by.unwrap_or_default();
    let comparison = match metric {
        Metric::Time => Comparison::new(&before.1, &after.1),
        metric => {
            let leaf = if key == ComparisonKey::Type { TypeLeaf::With } else { TypeLeaf::Without };
            let [before, after] = [&before, &after].map(|side| of_metric(side, leaf).1);
            Comparison::by(metric, key, &before, &after)
        }
    };
    if comparison.rows.is_empty() {
        let what = if metric == Metric::Time { "samples of running code" } else { metric.noun() };
        return Err(Failure::new(format!("{} and {} have no {what}", before.0, after.0)));
    }
    let layout = flags.layout.of_stdout();
    let mut out = BufWriter::new(std::io::stdout().lock());
    let text = ComparisonText::new(&comparison, layout.columns, layout.style).all(flags.all);
    match flags.json {
        true => text.write_json((&before.0, &after.0), &mut out)?,
        false => text.write((&before.0, &after.0), &mut out)?,
    }
    out.flush()?;
    drop(out);
    if let (Some(output), Some(format)) = (&flags.output, format) {
        let [before, after] = match metric {
            Metric::Time => [before, after].map(|(name, mut recording)| {
                // Pictures count milliseconds, whatever the delays.
                if comparison.timed {
                    count_time(&mut recording, Nanos(1_000_000));
                }
                (name, recording)
            }),
            _ => [&before, &after].map(|side| of_metric(side, TypeLeaf::With)),
        };
        draw(&comparison, &before, &after, output, format)?;
        message::print(&format!("difference drawn to {}", output.display()));
    }
    Ok(0)
}

/// What is compared. Allocations must have been recorded in both profiles, and with the same rate if there is one.
fn metric(
    flags: &Flags,
    before: &(String, Recording),
    after: &(String, Recording),
) -> Result<Metric, Failure> {
    let mut wanted = flags.metric;
    if flags.by == Some(ComparisonKey::Type) {
        wanted.metric = match wanted.metric {
            Some(Metric::Time) => {
                let line = "types have no time: --by type needs a metric of allocations".into();
                return Err(Failure { status: 2, line });
            }
            given => given.or(Some(Metric::Bytes)),
        };
    }
    let [old, new] = [before, after].map(|(name, recording)| wanted.of_recording(name, recording));
    let (old, new) = (old?, new?);
    let metric = if old == new { old } else { Metric::Time };
    let sampling = |(_, recording): &(String, Recording)| {
        recording.allocations.processes.first().map(|process| process.sampling)
    };
    let is_part = |sampling: Option<AllocationSampling>| {
        matches!(sampling, Some(AllocationSampling::Rate(_) | AllocationSampling::ScaledRate(_)))
    };
    let (old, new) = (sampling(before), sampling(after));
    // A rate misses most of the rare large blocks, whose part in the error is not known then. One sample in a number of bytes sees
    // them, so such estimates can be compared with exact numbers.
    if metric != Metric::Time && (is_part(old) || is_part(new)) && old != new {
        let line = format!(
            "{} and {} recorded different shares of the allocations: record both with the same rate",
            before.0, after.0
        );
        return Err(Failure::new(line));
    }
    Ok(metric)
}

/// Draws both profiles, with changes in colour.
fn draw(
    comparison: &Comparison,
    before: &(String, Recording),
    after: &(String, Recording),
    output: &Path,
    format: Format,
) -> Result<(), Failure> {
    let foreign = !before.1.has_rust() && !after.1.has_rust();
    let moments = if comparison.timed { StateFilter::Awake } else { StateFilter::All };
    let graph = |(name, recording): &(String, Recording)| -> Result<Graph, Failure> {
        let drawn = Flamegraph::new().c(foreign).moments(moments).graph(recording).map_err(Failure::new)?;
        let graph = drawn.graph.ok_or_else(|| Failure::new(format!("{name}: nothing to draw")))?;
        // The page merges the lines of functions by itself.
        Ok(if format == Format::Html { graph } else { graph.by_function() })
    };
    let (old, new) = (graph(before)?, graph(after)?);
    // A sample stands for the delay of its recording.
    let delays = match (before.1.info.delay.0, after.1.info.delay.0) {
        (0, _) | (_, 0) => 1.0,
        (before, after) => before as f64 / after as f64,
    };
    // Pictures count samples as if all stood for the same time. Samples that stand for more time make the counts less certain.
    let weight = |cost: &Cost, recording: &Recording| {
        let each = recording.info.delay.0 as f64;
        if comparison.timed && each > 0.0 && cost.amount > 0.0 {
            (cost.squares / cost.amount / each).sqrt()
        } else {
            1.0
        }
    };
    let uncertainty = weight(&comparison.before, &before.1).max(weight(&comparison.after, &after.1)).max(1.0);
    // Exact numbers have no noise.
    let spread = if comparison.exact { 0.0 } else { comparison.spread * uncertainty };
    let difference = Difference::new(&old, &new, comparison.common * delays, spread);
    let unit = match comparison.metric {
        Metric::Time if comparison.of_tasks => "ms of wall time of tasks",
        Metric::Time if comparison.timed => "ms of CPU time",
        Metric::Time => "samples",
        metric => metric.noun(),
    };
    let mut title = format!("{} → {}", before.0, after.0);
    if comparison.common != 1.0 {
        title +=
            &format!(" ({:+.1} % common to most functions taken off)", (comparison.common - 1.0) * 100.0);
    }
    // A still has one view, which shows what is gone as well.
    let (union, both) = (difference.union(), format!("{unit}, before and now together"));
    let written = stackglass_files::write_atomically(output, |out| match format {
        Format::Html => Page::new(title)
            .unit(unit)
            .paint(difference.paint())
            .difference(comparison.common * delays, spread)
            .view(format!("now: {}", after.0), &new)
            .view(format!("before: {}", before.0), &old)
            .write_to(out),
        Format::Png => {
            let colors = OneTheme::new(&difference.paint(), union, false);
            let options = PictureOptions::new(&colors).title(title).unit(both).fine(true);
            write_picture(union, &options, out).map_err(io::Error::other)
        }
        Format::Svg | Format::Jlprof => {
            Svg::new(union).title(title).unit(both).paint(difference.paint()).write_to(out)
        }
    });
    written.map_err(|error| Failure::new(format!("cannot write {}: {error}", output.display())))
}

/// A profile and how it is called.
fn recording(path: &Path, range: TimeRange) -> Result<(String, Recording), Failure> {
    let input = input::read(path, range)?;
    Ok((input.name.clone(), input.into_recording()?))
}
