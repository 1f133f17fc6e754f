//! `stackglass hot [FILE]`: the hottest functions, lines or other parts as a flat table.

use crate::failure::{Failure, Outcome};
use crate::input;
use crate::pick_flags::PickFlags;
use crate::range_flags::RangeFlags;
use crate::states_flag::StateFlags;
use crate::terminal::LayoutFlags;
use crate::values::one_of;
use clap::Args;
use regex::Regex;
use stackglass_profile::{Recording, State, command_text};
use stackglass_report::{HotKey, HotTable, HotText, Selection, Source, hot, unaccounted_cpu};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  stackglass hot                           hottest functions, newest recording
  stackglass hot --by line server.glass    hottest source lines
  stackglass hot --by process              which process takes the CPU time
  stackglass hot --asleep                  what threads sleep in
  stackglass hot --filter 'Parser::'       only below functions of this name
  stackglass hot --threads 2,4-7 --all     all functions of some threads
  stackglass hot --json | jq '.rows[0]'    all rows, for programs

Own time of a function includes what the C library calls inside itself, and
code inlined from the standard library. Total time includes all that it calls.
± is the standard error of own time.";

/// Print the hottest functions, lines, crates, threads or processes.
///
/// Rows are sorted by own time: CPU time unless --wall or --asleep is given.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// A .glass, .jlprof or folded file, or - for stdin [default: the newest *.glass in this folder]
    file: Option<PathBuf>,

    /// What the rows are [default: function]
    #[arg(long, value_name = "KEY", value_parser = one_of(HotKey::ALL, HotKey::word, key_help))]
    by: Option<HotKey>,

    #[command(flatten)]
    states: StateFlags,

    #[command(flatten)]
    pick: PickFlags,

    /// Only stacks with a frame that matches, written as `NAME at FILE:LINE`
    #[arg(long, value_name = "RE")]
    filter: Option<Regex>,

    /// Show all rows, not only the first 20
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

fn key_help(key: HotKey) -> &'static str {
    match key {
        HotKey::Function => "functions",
        HotKey::Line => "source lines outside of standard libraries and installed headers",
        HotKey::Module => "executables and libraries",
        HotKey::Crate => "crates, with what they call in standard libraries",
        HotKey::Thread => "threads, by name",
        HotKey::Process => "processes",
        HotKey::Command => "programs: all processes of one name",
        HotKey::Task => "async tasks, by name",
    }
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let input =
        input::read_with_task_snapshots(&input::choose(flags.file.as_deref())?, flags.range.range()?)?;
    let name = input.name.clone();
    let mut recording = input.into_recording()?;
    flags.pick.check(&name, Source::Recording(&recording))?;
    let had_samples = !recording.samples.is_empty();
    let has_allocations = !recording.allocations.groups.is_empty();
    let hint = flags.states.hint(&recording);
    let is_all = !is_part(flags) && !recording.is_walltime() && flags.states.states().has_state(State::Awake);
    let unaccounted = if is_all { unaccounted_cpu(&recording) } else { 0 };
    selection(flags).keep_in(&mut recording);
    if recording.samples.is_empty() {
        return Err(Failure::new(format!("{name}: {}", nothing(flags, had_samples, has_allocations, hint))));
    }
    let mut table = HotTable::new(recording.clone(), flags.by.unwrap_or_default(), flags.states.states());
    table.add_unaccounted(unaccounted);
    let mut out = BufWriter::new(std::io::stdout().lock());
    if flags.json {
        hot::write_json(&table, &recording, &mut out)?;
    } else {
        let layout = flags.layout.of_stdout();
        let text = HotText::new(layout.columns, layout.style, layout.links).everything(flags.all);
        text.write(&title(&recording, &name), &table, Source::Recording(&recording), &mut out)?;
    }
    out.flush()?;
    Ok(0)
}

fn selection(flags: &Flags) -> Selection {
    let selection = Selection::new(flags.states.states())
        .threads(flags.pick.threads.clone().unwrap_or_default())
        .tasks(flags.pick.tasks.clone().unwrap_or_default());
    match flags.filter.clone() {
        Some(filter) => selection.with_frame(move |frame| {
            filter.is_match(&format!("{} at {}:{}", frame.func, frame.file, frame.line))
        }),
        None => selection,
    }
}

/// The recorded command, or the name of a file without one.
fn title(recording: &Recording, name: &str) -> String {
    match &recording.info.command[..] {
        [] => name.to_owned(),
        command => command_text(command),
    }
}

/// Whether some threads, tasks or frames were asked for.
fn is_part(flags: &Flags) -> bool {
    flags.pick.given() || flags.filter.is_some()
}

/// Why there is nothing to show.
fn nothing(flags: &Flags, had_samples: bool, has_allocations: bool, hint: &str) -> String {
    let what = flags.states.states().noun();
    match is_part(flags) {
        _ if !had_samples && has_allocations => {
            "there are no samples of time; `stackglass allocs` on this file shows its allocations".to_owned()
        }
        _ if !had_samples => {
            "there are no samples; `stackglass print` on this file prints its notes".to_owned()
        }
        true => format!("no {what} in the threads, tasks and frames that were asked for"),
        false => format!("no {what} was sampled{hint}"),
    }
}
