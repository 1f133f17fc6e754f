//! `stackglass annotate [FILE]`: source lines with the time spent in them beside them.

use crate::callers::no_such_file;
use crate::failure::{Failure, Outcome};
use crate::input;
use crate::source_files::Sources;
use crate::terminal::LayoutFlags;
use crate::values::whole;
use clap::Args;
use stackglass_profile::Recording;
use stackglass_report::{Annotate, FilePattern, Source};
use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  stackglass annotate                      hottest files, newest recording
  stackglass annotate --file search.rs     one file, wherever it lies
  stackglass annotate --file @serde        all files of a crate
  stackglass annotate --file 'src/*.rs' --context 5 server.glass
  stackglass annotate --asleep             where threads wait instead

Of a program of Rust, `debug = \"line-tables-only\"` in its profile makes lines
known. Sources are read where the compiler saw them, else in this user's cargo
registry, in rustup's rust-src, and in this folder.";

/// Show source lines with the time spent in them.
///
/// `ms` is the processor time of stacks that pass through the line, `own ms` of those that end in it or
/// in code of the standard or C library that it calls.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// A .glass or .jlprof file, - for stdin [default: the newest *.glass of this folder]
    #[arg(value_name = "FILE")]
    recording: Option<PathBuf>,

    /// Only source files of this name: io.rs, src/io.rs, @serde, 'net*.rs'
    #[arg(long, value_name = "PATTERN")]
    file: Option<String>,

    /// Every file, and every line that was seen
    #[arg(long)]
    all: bool,

    /// Lines shown around one that matters
    #[arg(long, value_name = "LINES", default_value = "2", value_parser = whole::<u16>)]
    context: u16,

    /// Count the time in which threads slept
    #[arg(long)]
    asleep: bool,

    #[command(flatten)]
    look: LayoutFlags,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let input = input::read(&input::choose(flags.recording.as_deref())?)?;
    let name = input.name.clone();
    let recording = input.into_recording()?;
    let pattern = flags.file.as_deref().map(FilePattern::new);
    if let (Some(pattern), Some(text)) = (&pattern, &flags.file)
        && Source::Recording(&recording).files(pattern).is_empty()
    {
        return Err(Failure::new(no_such_file(&name, text)));
    }
    let look = flags.look.of_stdout();
    // A line of a file may be long, but it is a line of source at most.
    let columns = if look.terminal { look.columns } else { look.columns.min(160) };
    let annotate = Annotate::new()
        .cols(columns)
        .style(look.style)
        .links(look.links)
        .files(pattern)
        .everything(flags.all)
        .context(flags.context.into())
        .asleep(flags.asleep);
    let sources = Sources::of(&recording);
    let mut out = BufWriter::new(std::io::stdout().lock());
    let listed = annotate.write(&recording, &mut |file| sources.read(file), &mut out)?;
    out.flush()?;
    let time = if flags.asleep { "sleep" } else { "processor time" };
    match (listed.any, &flags.file) {
        (true, Some(file)) if listed.files == 0 => {
            Err(Failure::new(format!("{name}: no {time} was seen in source files that match `{file}`")))
        }
        (true, _) => Ok(0),
        (false, _) => Err(Failure::new(format!(
            "{name}: no {time} was seen in code with source lines{}; Rust keeps them with \
             `debug = \"line-tables-only\"` in the profile, C with -g1",
            without_lines(&recording)
        ))),
    }
}

/// Names the modules that have none.
fn without_lines(recording: &Recording) -> String {
    let notes = recording.symbols.notes().iter();
    let modules: BTreeSet<&str> =
        notes.map(|note| note.module.rsplit('/').next().unwrap_or(&note.module)).collect();
    match modules.len() {
        0 => String::new(),
        n => {
            let shown: Vec<&str> = modules.into_iter().take(4).collect();
            format!(" (none in {}{})", shown.join(", "), if n > shown.len() { ", …" } else { "" })
        }
    }
}
