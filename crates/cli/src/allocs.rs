//! `stackglass allocs [FILE]`: what a program allocates, by type, line and other keys.

use crate::allocs_pid;
use crate::failure::{Failure, Outcome};
use crate::input::{self, Input};
use crate::metric_flag::{leaks_need_the_end, metric_help, no_allocations};
use crate::output::output_file;
use crate::range_flags::RangeFlags;
use crate::terminal::LayoutFlags;
use crate::values::{allocation_sampling, one_of, positive_duration, process_id};
use clap::Args;
use stackglass_profile::{AllocationSampling, Recording, TimeRange, sanitize};
use stackglass_report::allocation_queries::{NamedTypes, keep_types, types_named};
use stackglass_report::numbers::bytes_text;
use stackglass_report::{AllocationKey, AllocationTable, AllocationsText, Metric, Source, allocations};
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  stackglass record --allocs -- ./server    record them, then show this
  stackglass allocs                         the newest recording in this folder
  stackglass allocs --by site               lines instead of types
  stackglass allocs --metric peak-bytes     what the peak was made of
  stackglass allocs --metric leaked-bytes   what was never freed
  stackglass allocs --by function --all server.glass
  stackglass allocs --type 'Vec<u8>'        the lines that allocate this type
  stackglass allocs --pid 1234 --duration 10s   a process, now
  stackglass allocs --from 2s --to 3s       what was allocated in this second
  stackglass allocs --json | jq '.rows[0]'  all rows, for programs

A site is the innermost line outside of allocators and standard libraries. A
temporary block is freed before its thread allocates again. The peak of a row
is its bytes when the whole process had the most. With --from or --to, what is
alive is so at the end of that time, whenever it was allocated. Stacks are in
`stackglass print --metric bytes` and `stackglass flamegraph --metric bytes`.";

/// Print what a program allocates: types, lines, the peak, and what is left.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// A .glass file, or - for stdin [default: the newest *.glass in this folder]
    file: Option<PathBuf>,

    /// Record this process now: as root any, else one that was started with `stackglass run`, without --allocs
    #[arg(long, value_name = "PID", value_parser = process_id, conflicts_with = "file")]
    pid: Option<u32>,

    /// With --pid: for how long [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = positive_duration, requires = "pid")]
    duration: Option<Duration>,

    /// With --pid of a process under `stackglass run`: which allocations, as for `record --allocs` [default: all]
    #[arg(long, value_name = "RATE", value_parser = allocation_sampling, requires = "pid")]
    rate: Option<AllocationSampling>,

    /// With --pid: also write the recording to this file
    #[arg(short, long, value_name = "FILE", value_parser = output_file(), requires = "pid")]
    output: Option<PathBuf>,

    /// Only this type: its whole name, its name without arguments (Vec), or with … as reports show it
    #[arg(long = "type", value_name = "TYPE")]
    of_type: Option<String>,

    /// What the rows are [default: type, or site if few types are known]
    #[arg(long, value_name = "KEY", value_parser = one_of(AllocationKey::ALL, AllocationKey::word, key_help))]
    by: Option<AllocationKey>,

    /// What rows are sorted by, and what percentages refer to [default: bytes]
    #[arg(long, value_name = "METRIC", value_parser = one_of(OF_ALLOCATIONS, Metric::word, metric_help))]
    metric: Option<Metric>,

    /// Show all rows
    #[arg(long)]
    all: bool,

    /// Print all rows as one JSON object (docs/json.md)
    #[arg(long, conflicts_with = "all")]
    json: bool,

    #[command(flatten)]
    range: RangeFlags,

    #[command(flatten)]
    layout: LayoutFlags,
}

/// The metrics without time.
const OF_ALLOCATIONS: &[Metric] = &[
    Metric::Bytes,
    Metric::Count,
    Metric::LiveBytes,
    Metric::LiveCount,
    Metric::PeakBytes,
    Metric::LeakedBytes,
    Metric::Temporary,
];

fn key_help(key: AllocationKey) -> &'static str {
    match key {
        AllocationKey::Type => "allocated types",
        AllocationKey::Site => "lines outside of standard libraries",
        AllocationKey::Line => "lines of the program itself, outside of the crates that it depends on",
        AllocationKey::Function => "the functions of sites",
        AllocationKey::Crate => "crates of sites, or executables and libraries",
        AllocationKey::Thread => "threads",
        AllocationKey::Process => "processes",
        AllocationKey::Size => "ranges of sizes in bytes",
    }
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let range = flags.range.range()?;
    if let Some(pid) = flags.pid.filter(|_| !range.is_all()) {
        return Err(Failure::new(format!(
            "process {pid}: --pid reads the counters at the end only, so its allocations have no times; `stackglass record --allocs -- PROGRAM` stores them by time, for --from and --to"
        )));
    }
    let (input, live);
    let name;
    let recording = match flags.pid {
        Some(pid) => {
            name = format!("process {pid}");
            let duration = flags.duration.unwrap_or(Duration::from_secs(10));
            live = allocs_pid::record(pid, flags.rate, duration, flags.output.as_deref())?;
            &live
        }
        None => {
            input = input::read(&input::choose(flags.file.as_deref())?, TimeRange::default())?;
            name = input.name.clone();
            recorded(&input)?
        }
    };
    let metric = flags.metric.unwrap_or(Metric::Bytes);
    let part;
    let recording = match range.is_all() {
        true => recording,
        false => {
            part = in_range(&name, recording, range, metric)?;
            &part
        }
    };
    let of_type;
    let recording = match &flags.of_type {
        None => recording,
        Some(name) => {
            of_type = only_type(recording, name)?;
            &of_type
        }
    };
    let mut out = BufWriter::new(std::io::stdout().lock());
    if flags.json {
        allocations::write_json(
            &AllocationTable::new(recording, flags.by.unwrap_or(default_key(flags)), metric),
            &mut out,
        )?;
    } else {
        let layout = flags.layout.of_stdout();
        let columns = if layout.terminal { layout.columns } else { layout.columns.min(160) };
        let text = AllocationsText::new().cols(columns).style(layout.style).links(layout.links);
        let text = text.metric(metric).everything(flags.all).of_type(flags.of_type.clone());
        let text = flags.by.map_or(text.clone(), |key| text.key(key));
        text.write(recording, &mut out)?;
    }
    out.flush()?;
    Ok(0)
}

/// The allocations of a part of the time.
fn in_range(
    name: &str,
    recording: &Recording,
    range: TimeRange,
    metric: Metric,
) -> Result<Recording, Failure> {
    if metric == Metric::LeakedBytes {
        return Err(leaks_need_the_end());
    }
    let mut recording = recording.clone();
    let kept = recording.allocations.keep(range, &recording.info);
    kept.map_err(|reason| Failure::new(format!("{name}: {reason}")))?;
    Ok(recording)
}

/// The recording, if it has allocations.
fn recorded(input: &Input) -> Result<&Recording, Failure> {
    match input.source() {
        Source::Recording(recording) if recording.allocations.were_recorded() => Ok(recording),
        _ => Err(no_allocations(&input.name)),
    }
}

/// The rows of JSON. The only type of all rows says nothing.
fn default_key(flags: &Flags) -> AllocationKey {
    if flags.of_type.is_some() { AllocationKey::Site } else { AllocationKey::Type }
}

/// Most types that a message names.
const NAMED: usize = 3;

/// The allocations of the types that a name stands for.
fn only_type(recording: &Recording, name: &str) -> Result<Recording, Failure> {
    match types_named(recording, name) {
        NamedTypes::Found(types) => {
            let mut recording = recording.clone();
            keep_types(&mut recording, &types);
            Ok(recording)
        }
        NamedTypes::Similar(similar) => {
            let named =
                |(one, bytes): &(String, u64)| format!("`{}` ({})", sanitize(one), bytes_text(*bytes));
            let list: Vec<String> = similar.iter().take(NAMED).map(named).collect();
            let more = if similar.len() > NAMED { ", …" } else { "" };
            let hint = match list.is_empty() {
                true => "`stackglass allocs --by type --all` lists all types".to_owned(),
                false => format!("types that contain it: {}{more}", list.join(", ")),
            };
            Err(Failure::new(format!("no allocation has the type `{}`; {hint}", sanitize(name))))
        }
    }
}
