//! `stackglass flamegraph [FILE]`: the picture that people open first.

mod colors;
pub(crate) mod format;
mod open;
mod pruned;
mod views;

use crate::failure::{Failure, Outcome};
use crate::input::{self, Drawable};
use crate::message;
use crate::values::one_of;
use clap::Args;
use colors::Scheme;
use format::Format;
use regex::Regex;
use stackglass_report::{Pick, Recur};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  stackglass flamegraph                       the newest recording, as a page
  stackglass flamegraph rg.glass -o rg.svg    a picture for a document
  stackglass flamegraph rg.glass --open       the page, in the browser
  stackglass flamegraph --filter 'serde_json' only branches with such a frame
  stackglass flamegraph --wall                asleep moments, too
  stackglass flamegraph --prune sort@src/sort.rs   nothing below that function
  perf script | stackglass flamegraph - -o perf.html

Width is time on a processor, in samples; order is by name, not by time. A page
(.html) has all threads and tasks, search, zoom and an inverted view in it.";

/// Draw a flame graph: a page, a picture, or a graph for Julia.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// A .glass, .jlprof or folded file, text of perf script, - for stdin [default: the newest *.glass of this folder]
    file: Option<PathBuf>,

    /// File to write, - for stdout; its extension says what: .html, .svg, .png, .jlprof [default: FILE.html, here]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// What to write [default: by the extension of the output]
    #[arg(long = "to", value_name = "FORMAT", value_parser = one_of(Format::ALL, Format::word, Format::help))]
    to: Option<Format>,

    /// Show foreign frames, those not compiled from Rust [default: only if the program has no other ones]
    #[arg(long, overrides_with = "no_c")]
    c: bool,

    /// Show frames compiled from Rust only
    #[arg(long, overrides_with = "c")]
    no_c: bool,

    /// A box for each address, instead of one for equal functions at equal lines
    #[arg(long)]
    no_combine: bool,

    /// Fold recursion by call site [default: off]
    #[arg(long, value_name = "HOW", value_parser = one_of(Recur::ALL, Recur::word, |_| ""))]
    recur: Option<Recur>,

    /// Keep what only starts programs and threads at the root
    #[arg(long)]
    no_norepl: bool,

    /// Leave out this function of this file, and all it calls; may be repeated
    #[arg(long, value_name = "FUNC@FILE", value_parser = func_at_file)]
    prune: Vec<(String, String)>,

    /// Keep only branches with a frame that matches: `NAME at FILE:LINE`
    #[arg(long, value_name = "RE")]
    filter: Option<Regex>,

    /// Count these threads only: 2, or 1,3,5-7 (numbers as in `stackglass info`)
    #[arg(long, value_name = "NUMBERS")]
    threads: Option<Pick>,

    /// Count these tasks only, by id: 0x7f00 (ids as `print --groupby task` shows them)
    #[arg(long, value_name = "IDS")]
    tasks: Option<Pick>,

    /// Count moments asleep or waiting for a processor, too
    #[arg(long)]
    wall: bool,

    /// Functions first, their callers above them
    #[arg(long)]
    inverted: bool,

    /// The root on top
    #[arg(long)]
    icicle: bool,

    /// What colours say [default: kind]
    #[arg(long, value_name = "SCHEME", value_parser = one_of(Scheme::ALL, Scheme::word, Scheme::help))]
    colors: Option<Scheme>,

    /// Dark colours; pages and .svg follow the reader's setting anyway
    #[arg(long)]
    dark: bool,

    /// Title [default: the command that was recorded]
    #[arg(long)]
    title: Option<String>,

    /// Width of a picture in points
    #[arg(long, value_name = "POINTS", default_value_t = 1200, value_parser = clap::value_parser!(u16).range(200..))]
    width: u16,

    /// Show it, in $BROWSER or what the desktop opens it with
    #[arg(long)]
    open: bool,
}

impl Flags {
    /// A flag that says how samples become a graph, where one was given.
    fn of_samples(&self) -> Option<&'static str> {
        let given = [
            ("--c", self.c),
            ("--no-c", self.no_c),
            ("--no-combine", self.no_combine),
            ("--recur", self.recur.is_some()),
            ("--no-norepl", self.no_norepl),
            ("--prune", !self.prune.is_empty()),
            ("--filter", self.filter.is_some()),
            ("--threads", self.threads.is_some()),
            ("--tasks", self.tasks.is_some()),
            ("--wall", self.wall),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }
}

fn func_at_file(text: &str) -> Result<(String, String), String> {
    match text.rsplit_once('@') {
        // Reports show files of known folders as @folder/file.
        Some((func, file)) if !func.trim_end_matches('@').is_empty() => {
            Ok((func.strip_suffix('@').unwrap_or(func).to_owned(), file.to_owned()))
        }
        _ => Err("write the function, @ and its file: sort!@sort.jl, rg::walk@src/walk.rs".into()),
    }
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let path = input::choose(flags.file.as_deref())?;
    let output = flags.output.clone().unwrap_or_else(|| beside(&path, flags.to.unwrap_or(Format::Html)));
    let format = format::choose(flags.to, &output)?;
    let stream = input::is_stream(&output);
    if stream && flags.open {
        let line = "what goes to standard output is in no file that could be opened: name one with -o".into();
        return Err(Failure { status: 2, line });
    }
    if stream && io::stdout().is_terminal() {
        return Err(Failure::new("a picture is nothing for a terminal: name a file with -o"));
    }
    input::refuse_same(&path, &output)?;
    let drawing = match input::read_drawable(&path)? {
        Drawable::Samples(input) => views::draw(flags, &input, format)?,
        Drawable::Graph(name, graph) => views::saved(flags, name, graph, format)?,
    };
    match stream {
        true => {
            let mut out = io::stdout().lock();
            drawing.write(flags, format, &mut out)?;
            out.flush()?;
        }
        false => stackglass_files::write_whole(&output, |out| drawing.write(flags, format, out))
            .map_err(|error| Failure::new(format!("cannot write {}: {error}", output.display())))?,
    }
    if !stream {
        message::print(&format!("{}: {}", output.display(), drawing.summary(format)));
    }
    if flags.open {
        open::show(&output)?;
    }
    Ok(0)
}

/// The page of a recording lies in the current folder, under the recording's name.
fn beside(input: &Path, format: Format) -> PathBuf {
    let stem = input.file_stem().filter(|_| !input::is_stream(input));
    PathBuf::from(stem.unwrap_or("flamegraph".as_ref())).with_extension(format.word())
}
