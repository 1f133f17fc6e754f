//! `stackglass annotate [FILE]`: source lines with the time spent in them.

use crate::callers::no_such_file;
use crate::failure::{Failure, Outcome};
use crate::input;
use crate::metric_flag::MetricFlag;
use crate::range_flags::RangeFlags;
use crate::source_files::Sources;
use crate::states_flag::StateFlags;
use crate::terminal::LayoutFlags;
use crate::values::whole;
use clap::Args;
use stackglass_profile::Recording;
use stackglass_report::allocation_queries::TypeLeaf;
use stackglass_report::{Annotate, FilePattern, Metric, Source};
use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  stackglass annotate                      hottest files, newest recording
  stackglass annotate --file search.rs     one file, in any folder
  stackglass annotate --file @serde        all files of a crate
  stackglass annotate --file 'src/*.rs' --context 5 server.glass
  stackglass annotate --asleep             where threads sleep
  stackglass annotate --metric bytes       which lines allocate

Rust programs have line information if their Cargo profile sets
`debug = \"line-tables-only\"`. Sources are read from where the compiler saw
them, else from the Cargo registry, rustup's rust-src, or this folder.";

/// Print source lines with the time spent in them.
///
/// `ms` is the CPU time of stacks that pass through the line. `own ms` is the CPU time of stacks that end in the line, or
/// in library code that it calls: standard libraries, the C library, installed headers, and packages of Go, Zig and Swift.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// A .glass or .jlprof file, or - for stdin [default: the newest *.glass in this folder]
    #[arg(value_name = "FILE")]
    recording: Option<PathBuf>,

    /// Only these source files: io.rs, src/io.rs, @serde, 'net*.rs'
    #[arg(long, value_name = "PATTERN")]
    file: Option<String>,

    /// Show every file, and every line with samples
    #[arg(long)]
    all: bool,

    /// Lines to show around each line that matters
    #[arg(long, value_name = "LINES", default_value = "2", value_parser = whole::<u16>)]
    context: u16,

    #[command(flatten)]
    states: StateFlags,

    #[command(flatten)]
    metric: MetricFlag,

    /// Print all lines with their times as one JSON object (docs/json.md)
    #[arg(long, conflicts_with = "all")]
    json: bool,

    #[command(flatten)]
    range: RangeFlags,

    #[command(flatten)]
    layout: LayoutFlags,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let input = input::read(&input::choose(flags.recording.as_deref())?, flags.range.range()?)?;
    let name = input.name.clone();
    let metric = flags.metric.of_input(&input)?;
    let states = flags.states.of_metric(metric)?;
    let recording = input.weighted(metric, TypeLeaf::Without).into_recording()?;
    let pattern = flags.file.as_deref().map(FilePattern::new);
    if let (Some(pattern), Some(text)) = (&pattern, &flags.file)
        && Source::Recording(&recording).files(pattern).is_empty()
    {
        return Err(Failure::new(no_such_file(&name, text)));
    }
    let layout = flags.layout.of_stdout();
    // Files have no width; lines of source rarely need more.
    let columns = if layout.terminal { layout.columns } else { layout.columns.min(160) };
    let annotate = Annotate::new()
        .cols(columns)
        .style(layout.style)
        .links(layout.links)
        .files(pattern)
        .everything(flags.all)
        .context(flags.context.into())
        .states(states)
        .metric(metric);
    let mut out = BufWriter::new(std::io::stdout().lock());
    if flags.json {
        annotate.write_json(&recording, &mut out)?;
        out.flush()?;
        return Ok(0);
    }
    let sources = Sources::from_recording(&recording);
    let listed = annotate.write(&recording, &mut |file| sources.read(file), &mut out)?;
    out.flush()?;
    let amount = match metric {
        Metric::Time => Source::Recording(&recording).noun(states),
        metric => metric.noun(),
    };
    let seen = if metric == Metric::Time { "was seen" } else { "are" };
    match (listed.any, &flags.file) {
        (true, Some(file)) if listed.files == 0 => {
            Err(Failure::new(format!("{name}: no {amount} {seen} in source files that match `{file}`")))
        }
        (true, _) => Ok(0),
        (false, _) => Err(Failure::new(format!(
            "{name}: no {amount} {seen} in code with source lines{}; Rust keeps them with \
             `debug = \"line-tables-only\"` in the profile, C with -g1",
            without_lines(&recording)
        ))),
    }
}

/// Names up to four modules without line information.
fn without_lines(recording: &Recording) -> String {
    let notes = recording.symbols.notes().iter();
    let modules: BTreeSet<&str> =
        notes.map(|note| note.module.rsplit('/').next().unwrap_or(&note.module)).collect();
    match modules.len() {
        0 => String::new(),
        n => {
            let first: Vec<&str> = modules.into_iter().take(4).collect();
            format!(" (none in {}{})", first.join(", "), if n > first.len() { ", …" } else { "" })
        }
    }
}
