//! `stackglass flamegraph [FILE]`: flame graphs as a page, a picture, or a graph for Julia.

mod colors;
pub(crate) mod format;
mod pruned;
mod views;

use crate::drawn_output::DrawnOutput;
use crate::failure::Outcome;
use crate::input::{self, Drawable};
use crate::metric_flag::MetricFlag;
use crate::pick_flags::PickFlags;
use crate::range_flags::RangeFlags;
use crate::report_flags::recur_help;
use crate::values::one_of;
use clap::Args;
use colors::Scheme;
use format::Format;
use pruned::{PruneRule, func_at_file};
use regex::Regex;
use stackglass_report::Recur;
use stackglass_report::allocation_queries::TypeLeaf;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  stackglass flamegraph                       the newest recording, as a page
  stackglass flamegraph rg.glass -o rg.svg    a picture for a document
  stackglass flamegraph rg.glass --open       the page, in the browser
  stackglass flamegraph --filter 'serde_json' only branches with such a frame
  stackglass flamegraph --wall                sleeping threads as well
  stackglass flamegraph --prune sort@src/sort.rs   without this function
  stackglass flamegraph --metric bytes        allocations, with their types
  perf script | stackglass flamegraph - -o perf.html

Width is CPU time in ms, or what --metric counts. Boxes are ordered by name,
not by time. The page (.html) has all threads and tasks, search, zoom, an
inverted view, and switches for sleeping threads, foreign frames, lines and
colours.";

/// Draw a flame graph: an HTML page, a picture, or a graph for Julia.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// A .glass, .jlprof or folded file, output of perf script, or - for stdin [default: the newest *.glass in this folder]
    file: Option<PathBuf>,

    /// File to write, or - for stdout; the extension selects the format: .html, .svg, .png, .jlprof [default: FILE.html in this folder]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Format [default: by the extension of the output]
    #[arg(long, value_name = "FORMAT", value_parser = one_of(Format::ALL, Format::word, Format::help))]
    format: Option<Format>,

    /// Show foreign frames (not compiled from Rust) [default: only if the program has no others]
    #[arg(long, overrides_with = "no_c")]
    c: bool,

    /// Show only frames compiled from Rust
    #[arg(long, overrides_with = "c")]
    no_c: bool,

    /// One box per address instead of one per function and line
    #[arg(long)]
    no_combine: bool,

    /// What a box stands for: a function, or a line of one; the page can change it [default: function]
    #[arg(long, value_name = "WHAT", value_parser = ["function", "line"])]
    by: Option<String>,

    /// Fold recursive calls from the same call site [default: off; pictures with a box for each function fold all calls by
    /// itself]
    #[arg(long, value_name = "HOW", value_parser = one_of(Recur::ALL, Recur::word, recur_help))]
    recur: Option<Recur>,

    /// Keep the frames at the root that only start programs and threads
    #[arg(long)]
    no_norepl: bool,

    /// Leave out this function in this file, and everything it calls; may be repeated
    #[arg(long, value_name = "FUNC@FILE", value_parser = func_at_file)]
    prune: Vec<PruneRule>,

    /// Keep only branches with a frame that matches, written as `NAME at FILE:LINE`
    #[arg(long, value_name = "RE")]
    filter: Option<Regex>,

    #[command(flatten)]
    pick: PickFlags,

    #[command(flatten)]
    range: RangeFlags,

    /// Count threads that sleep or wait for a CPU as well
    #[arg(long, conflicts_with = "metric")]
    wall: bool,

    #[command(flatten)]
    metric: MetricFlag,

    /// Invert the graph: leaf functions at the root, their callers above them
    #[arg(long)]
    inverted: bool,

    /// Draw the root at the top
    #[arg(long)]
    icicle: bool,

    /// Meaning of the colours [default: kind]
    #[arg(long, value_name = "SCHEME", value_parser = one_of(Scheme::ALL, Scheme::word, Scheme::help))]
    colors: Option<Scheme>,

    /// Dark colours; .html and .svg follow the reader's setting
    #[arg(long)]
    dark: bool,

    /// Title [default: the command that was recorded]
    #[arg(long)]
    title: Option<String>,

    /// Width of a picture in points
    #[arg(long, value_name = "POINTS", default_value_t = 1200, value_parser = clap::value_parser!(u16).range(200..))]
    width: u16,

    /// Open the file with $BROWSER, or with the desktop's default program
    #[arg(long)]
    open: bool,
}

impl Flags {
    fn by_line(&self) -> bool {
        self.by.as_deref() == Some("line")
    }

    /// The first flag given that only applies to samples, not to a saved graph.
    fn of_samples(&self) -> Option<&'static str> {
        let given = [
            ("--c", self.c),
            ("--no-c", self.no_c),
            ("--no-combine", self.no_combine),
            ("--recur", self.recur.is_some()),
            ("--no-norepl", self.no_norepl),
            ("--prune", !self.prune.is_empty()),
            ("--filter", self.filter.is_some()),
            ("--threads", self.pick.threads.is_some()),
            ("--tasks", self.pick.tasks.is_some()),
            ("--from, --to", self.range.given()),
            ("--wall", self.wall),
            ("--metric", self.metric.metric.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let path = input::choose(flags.file.as_deref())?;
    let output = flags.output.clone().unwrap_or_else(|| beside(&path, flags.format.unwrap_or(Format::Html)));
    let format = format::choose(flags.format, &output)?;
    let output = DrawnOutput::new(output, flags.open, &path, "pictures")?;
    let drawing = match input::read_drawable(&path, flags.range.range()?)? {
        Drawable::Samples(input) => {
            let metric = flags.metric.of_input(&input)?;
            views::draw(flags, input.weighted(metric, TypeLeaf::With), metric, format)?
        }
        Drawable::Graph { name, graph } => views::saved(flags, name, graph, format)?,
    };
    output.write(|mut out| drawing.write(flags, format, &mut out), |_| drawing.summary(format))?;
    Ok(0)
}

/// The default output: the name of the recording, in the current folder.
fn beside(input: &Path, format: Format) -> PathBuf {
    let stem = input.file_stem().filter(|_| !input::is_stream(input));
    PathBuf::from(stem.unwrap_or("flamegraph".as_ref())).with_extension(format.word())
}
