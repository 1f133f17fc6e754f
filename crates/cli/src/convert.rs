//! `stackglass convert A B`: write a recording in another format.

use crate::failure::{Failure, Outcome};
use crate::heap::stored;
use crate::input::{self, Input, Kind};
use crate::message;
use crate::metric_flag::MetricFlag;
use crate::states_flag::StateFlags;
use crate::values::one_of;
use clap::Args;
use stackglass_files::heapsnapshot::{self, HeapSnapshotError};
use stackglass_files::{folded, jlprof, write_atomically_with_mode};
use stackglass_profile::{Recording, State, TimeRange};
use stackglass_report::allocation_queries::TypeLeaf;
use stackglass_report::numbers::duration_text;
use stackglass_report::{Metric, Selection, Source, unaccounted_cpu};
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The size of a file this large is announced before it is written.
const LARGE: u64 = 1 << 30;

const EXAMPLES: &str = "\
Examples:
  stackglass convert rg.glass rg.folded            for flame graph tools
  stackglass convert rg.glass rg.folded --wall     with sleeping threads
  stackglass convert rg.glass rg.jlprof            for Julia's FlameGraphs
  stackglass convert julia.jlprof julia.glass      for print, callers, annotate
  stackglass convert rg.glass - --to folded | flamegraph.pl > rg.svg
  stackglass convert rg.glass rg.folded --metric bytes   allocations by type
  stackglass convert rg.glass rg.heapsnapshot      its heap, for Chrome DevTools
  perf script | stackcollapse-perf.pl | stackglass convert - perf.glass

The format of A follows from its content, that of B from its extension or --to.
B appears when it is complete.";

/// Write a recording in another format.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// A .glass, .jlprof or folded file, output of perf script, or - for stdin
    #[arg(value_name = "A")]
    from: PathBuf,

    /// File to write, or - for stdout
    #[arg(value_name = "B")]
    to: PathBuf,

    /// Format of B [default: by its extension]
    #[arg(long = "to", id = "format", value_name = "FORMAT", value_parser = one_of(Format::ALL, Format::word, Format::help))]
    format: Option<Format>,

    #[command(flatten)]
    states: StateFlags,

    #[command(flatten)]
    metric: MetricFlag,
}

/// What can be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    /// Samples.
    Samples(Kind),
    /// A heap snapshot that is inside a recording.
    HeapSnapshot,
}

impl Format {
    const ALL: &[Format] = &[
        Format::Samples(Kind::Glass),
        Format::Samples(Kind::Jlprof),
        Format::Samples(Kind::Folded),
        Format::HeapSnapshot,
    ];

    /// The name on the command line, also the file extension.
    fn word(self) -> &'static str {
        match self {
            Format::Samples(kind) => kind.word(),
            Format::HeapSnapshot => "heapsnapshot",
        }
    }

    fn help(self) -> &'static str {
        match self {
            Format::Samples(Kind::Glass) => "a recording of Stackglass",
            Format::Samples(Kind::Jlprof) => "samples for Julia (form 1)",
            Format::Samples(Kind::Folded) => "one line per stack: root;…;leaf 12",
            Format::Samples(Kind::PerfScript) => "output of `perf script`",
            Format::HeapSnapshot => "the heap snapshot in a recording",
        }
    }

    /// The format that the extension of a file names.
    fn of_name(path: &Path) -> Option<Format> {
        let extension = path.extension()?.to_str()?;
        Format::ALL.iter().copied().find(|format| format.word().eq_ignore_ascii_case(extension))
    }
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let kind = match flags.format.or_else(|| Format::of_name(&flags.to)) {
        Some(Format::Samples(kind)) => kind,
        Some(Format::HeapSnapshot) => return extract_heap_snapshot(flags),
        None => {
            let to = match input::is_stream(&flags.to) {
                true => "stdout has no extension".to_owned(),
                false => format!("cannot tell the format from the name {}", flags.to.display()),
            };
            let line = format!("{to}: give --to glass, --to jlprof, --to folded or --to heapsnapshot");
            return Err(Failure { status: 2, line });
        }
    };
    if input::is_stream(&flags.to) && kind != Kind::Folded && io::stdout().is_terminal() {
        return Err(Failure::new(".glass and .jlprof files are not written to a terminal: name a file"));
    }
    input::refuse_same(&flags.from, &flags.to)?;
    // Folded stacks have no times, so equal samples can be merged while reading.
    let input = match kind {
        Kind::Folded => input::read(&flags.from, TimeRange::default())?,
        Kind::Glass | Kind::Jlprof | Kind::PerfScript => input::read_exactly(&flags.from)?,
    };
    let metric = flags.metric.of_input(&input)?;
    if flags.metric.metric.is_some_and(|metric| metric != Metric::Time) && kind != Kind::Folded {
        let line =
            format!("--metric {metric} needs folded stacks: no other format holds one number per stack");
        return Err(Failure { status: 2, line });
    }
    let states = flags.states.of_metric(metric)?;
    if flags.states.given() && kind != Kind::Folded {
        let line =
            "--wall and --asleep need folded stacks: other formats keep the states of threads".to_owned();
        return Err(Failure { status: 2, line });
    }
    let (input, lost) = match (kind, metric) {
        (Kind::Folded, metric) if metric != Metric::Time => {
            let lost = "lost: files, lines, threads, times, all other metrics";
            (input.weighted(metric, TypeLeaf::With), Some(lost.to_owned()))
        }
        (Kind::Folded, _) => {
            let lost = lost(input.kind, kind).map(|lost| match input.timed() {
                Some(recording) if recording.info.delay.0 > 0 => {
                    let each = std::time::Duration::from_nanos(recording.info.delay.0);
                    format!("{lost}; each count is {each:?} of {}", input.source().noun(states))
                }
                _ => lost.to_owned(),
            });
            if has_allocations(&input) {
                message::print("lost: allocations; `--to folded --metric bytes` converts them");
            }
            let (name, had_samples) = (input.name.clone(), has_samples(&input));
            let unaccounted = match (input.timed(), states.has_state(State::Awake)) {
                (Some(recording), true) => unaccounted_cpu(recording),
                _ => 0,
            };
            let mut input = input.select(&Selection::new(states))?;
            if had_samples && !has_samples(&input) {
                let line = format!("{name}: no {} was sampled; --wall counts all states", states.noun());
                return Err(Failure::new(line));
            }
            input.reduce_to_stacks(unaccounted);
            (input, lost)
        }
        _ => {
            let lost = lost(input.kind, kind).map(|lost| lost.to_owned() + &left_out(&input, kind));
            if kind != Kind::Glass && has_allocations(&input) {
                message::print("lost: allocations; `--to folded --metric bytes` converts them");
            }
            (input, lost)
        }
    };
    match input::is_stream(&flags.to) {
        true => to_stdout(input, kind)?,
        false => to_file(input, kind, &flags.to, mode_of(&flags.from))?,
    }
    if let Some(lost) = lost {
        message::print(&lost);
    }
    Ok(0)
}

/// Writes the heap snapshot of a recording as a file of its own.
fn extract_heap_snapshot(flags: &Flags) -> Outcome {
    let Some(stored) = stored::find(&flags.from)? else {
        let line = format!("{} is no .glass file: only recordings have heap snapshots", flags.from.display());
        return Err(Failure::new(line));
    };
    input::refuse_same(&stored.recording, &flags.to)?;
    if input::is_stream(&flags.to) {
        let mut out = BufWriter::new(io::stdout().lock());
        heapsnapshot::extract_to(&stored.recording, &stored.snapshot, &mut out).map_err(
            |error| match error {
                HeapSnapshotError::System { source, .. } if source.kind() == io::ErrorKind::BrokenPipe => {
                    source.into()
                }
                error => Failure::new(error),
            },
        )?;
        out.flush()?;
        return Ok(0);
    }
    heapsnapshot::extract(&stored.recording, &stored.snapshot, &flags.to).map_err(Failure::new)?;
    Ok(0)
}

/// Time that a `.jlprof` file has no word for.
fn left_out(input: &Input, kind: Kind) -> String {
    let Some(recording) = input.timed().filter(|_| kind == Kind::Jlprof) else { return String::new() };
    let waited = recording.samples.iter().filter(|sample| sample.state == State::Waiting);
    let waited: u64 = waited.map(|sample| sample.time.0).fold(0, u64::saturating_add);
    let mut parts = Vec::new();
    if waited > 0 {
        parts.push(format!("{} in which threads waited for a CPU", duration_text(waited)));
    }
    match unaccounted_cpu(recording) {
        0 => {}
        unseen => parts.push(format!("{} of CPU time that no sample covers", duration_text(unseen))),
    }
    if parts.is_empty() { String::new() } else { format!("; left out: {}", parts.join(" and ")) }
}

fn has_samples(input: &Input) -> bool {
    match input.source() {
        Source::Recording(recording) => !recording.samples.is_empty(),
        Source::Data(data, _) => !data.is_empty(),
    }
}

fn has_allocations(input: &Input) -> bool {
    matches!(input.source(), Source::Recording(recording) if recording.allocations.were_recorded())
}

/// What the second format cannot hold, in one line.
fn lost(from: Kind, to: Kind) -> Option<&'static str> {
    Some(match (from, to) {
        (Kind::Glass, Kind::Jlprof) => {
            "lost: processes, modules, full names, exact times (one sample per delay)"
        }
        (Kind::Glass, Kind::Folded) => "lost: files, lines, threads, states, exact times",
        (Kind::Jlprof, Kind::Glass) => "lost: the clocks of equal neighbours, except the last",
        (Kind::Jlprof, Kind::Folded) => "lost: files, lines, addresses, threads, tasks, clocks, states",
        (Kind::Glass, Kind::Glass) | (Kind::Jlprof, Kind::Jlprof) => return None,
        (Kind::Folded, _) | (_, Kind::PerfScript) => return None,
        (Kind::PerfScript, _) => "lost: addresses of inlined calls, times, CPUs, events",
    })
}

/// The permissions of A. A new B gets no more than these: private data stays private.
fn mode_of(from: &Path) -> u32 {
    let info = match input::is_stream(from) {
        true => io::stdin().as_fd().try_clone_to_owned().and_then(|stdin| File::from(stdin).metadata()),
        false => from.metadata(),
    };
    let file = info.ok().filter(|info| info.is_file());
    file.map_or(0o666, |info| info.mode() & 0o666)
}

fn to_file(input: Input, kind: Kind, path: &Path, mode: u32) -> Result<(), Failure> {
    let written = match kind {
        Kind::Glass => {
            stackglass_files::write(path, &recording(input)?).map_err(Failure::new)?;
            return Ok(());
        }
        Kind::Jlprof => write_atomically_with_mode(path, mode, |out| write_jlprof(&input, out)),
        // Output of perf is only read: no flag and no extension selects it.
        Kind::Folded | Kind::PerfScript => {
            let recording = recording(input)?;
            write_atomically_with_mode(path, mode, |out| folded::write_to(out, &recording))
        }
    };
    written.map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))
}

fn to_stdout(input: Input, kind: Kind) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    match kind {
        Kind::Glass => {
            // The writer seeks back, so it needs a file.
            let passing = tempfile::Builder::new().suffix(".glass").tempfile()?;
            stackglass_files::write(passing.path(), &recording(input)?).map_err(Failure::new)?;
            io::copy(&mut File::open(passing.path())?, &mut out)?;
        }
        Kind::Jlprof => write_jlprof(&input, &mut out)?,
        Kind::Folded | Kind::PerfScript => folded::write_to(&mut out, &recording(input)?)?,
    }
    Ok(out.flush()?)
}

fn write_jlprof(input: &Input, out: &mut impl Write) -> io::Result<()> {
    announce(input);
    match input.source() {
        Source::Recording(recording) => {
            let dictionary = recording.dictionary();
            jlprof::write_to(out, recording.words_len(), recording.words(), &dictionary)
        }
        Source::Data(data, dictionary) => {
            let words = data.words();
            jlprof::write_to(out, words.len() as u64, words.iter().copied(), dictionary)
        }
    }
}

fn recording(input: Input) -> Result<Recording, Failure> {
    let mut recording = input.into_recording()?;
    if recording.info.writer.is_empty() {
        recording.info.writer = concat!("stackglass ", env!("CARGO_PKG_VERSION")).into();
    }
    Ok(recording)
}

/// Announces the size if merged samples become very many single ones.
fn announce(input: &Input) {
    if let Source::Recording(recording) = input.source() {
        let bytes = recording.words_len().saturating_mul(8);
        if bytes >= LARGE {
            message::print(&format!(
                "writing {:.1} GB: this format has one sample per snapshot",
                bytes as f64 * 1e-9
            ));
        }
    }
}
