//! `stackglass heap show FILE`: what is alive by type, what holds it, what may have leaked.

use super::open::{self, Progress};
use super::table_flags::TableFlags;
use crate::failure::{Failure, Outcome};
use clap::Args;
use stackglass_files::heapsnapshot::ReadOptions;
use stackglass_heap_report::answers::{HeapAnswers, TypeAnswer, TypeSize};
use stackglass_heap_report::{HeapText, reports};
use stackglass_profile::sanitize;
use stackglass_report::numbers::bytes_text;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  stackglass heap show app.heapsnapshot
  stackglass heap show app.heapsnapshot --type Session       all about a type
  stackglass heap show app.heapsnapshot --type Session --addresses
                                              each block, for gdb's `p *(Session*)0x…`
  stackglass heap show app.heapsnapshot --path-to Session    why is it alive?
  stackglass heap show app.heapsnapshot --retainers Session  by type and field
  stackglass heap show app.heapsnapshot --json | jq '.types[0]'

Roots are variables, the stacks of threads and their registers. The own size of
a block is what the program asked for; unless its allocations were recorded, it
is the size of malloc's block, which may be a few bytes more. The retained size
of a type is all that would go with its blocks: what they hold, and nothing else
does. Blocks that no root reaches are leak candidates; their owners are those
that no other candidate holds. Weak edges hold nothing.

`.field` and `[3]` are fields and elements. `word 3` is in memory of unknown
layout: 3 words (24 bytes) from its start lies what looks like a pointer.";

/// Print what is alive by type, the largest holders, and leak candidates.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// A .heapsnapshot, the prefix of part files, a .glass with a snapshot (x.glass:2 is its second one), or - for stdin
    file: PathBuf,

    /// Show this type: its sums, the path to it, what holds it, what it holds
    #[arg(long = "type", value_name = "TYPE", group = "answer")]
    of_type: Option<String>,

    /// Show the shortest path from a root to this type, for each field that holds it; from the program's own variables if they hold it, too
    #[arg(long, value_name = "TYPE", group = "answer")]
    path_to: Option<String>,

    /// Show what holds this type, by type and field
    #[arg(long, value_name = "TYPE", group = "answer")]
    retainers: Option<String>,

    /// Show each block of the type of --type with its address, for a debugger
    #[arg(long, requires = "of_type")]
    addresses: bool,

    #[command(flatten)]
    table: TableFlags<10>,
}

/// Number of types that a message names.
const NAMED: usize = 4;

pub(crate) fn run(flags: &Flags) -> Outcome {
    let progress = Progress::new();
    let graph = open::read(&flags.file, ReadOptions { addresses: flags.addresses }, &progress)?;
    progress.step("searching for what holds what");
    let answers = HeapAnswers::new(&graph);
    let name = flags.of_type.as_ref().or(flags.path_to.as_ref()).or(flags.retainers.as_ref());
    let answer = name.map(|name| one_type(&answers, name, flags)).transpose()?;
    // The report is written at once, so that the sign of progress does not lie in between.
    let mut text = Vec::new();
    match (&answer, flags.table.json) {
        (None, true) => reports::write_show_json(&answers, &mut text)?,
        (None, false) => text_for(flags).show(&answers, &mut text)?,
        (Some(answer), json) if flags.addresses => blocks(flags, &answers, answer, json, &mut text)?,
        (Some(answer), json) => of_type(flags, answer, json, &mut text)?,
    }
    drop(progress);
    let mut out = BufWriter::new(std::io::stdout().lock());
    out.write_all(&text)?;
    out.flush()?;
    Ok(0)
}

/// The blocks of a type.
fn blocks(
    flags: &Flags,
    answers: &HeapAnswers<'_>,
    answer: &TypeAnswer,
    json: bool,
    out: &mut Vec<u8>,
) -> Result<(), Failure> {
    let text = text_for(flags);
    let most = if json { usize::MAX } else { text.most_rows() };
    let Some(blocks) = answers.blocks_of_type(&answer.alive.name, most) else {
        return Err(Failure::new(format!(
            "{} has no addresses: `stackglass heap take` writes them, and --heap-at of `stackglass run` and `record`",
            flags.file.display()
        )));
    };
    match json {
        true => reports::write_blocks_json(answer, &blocks, out)?,
        false => text.blocks(answer, &blocks, out)?,
    }
    Ok(())
}

fn of_type(flags: &Flags, answer: &TypeAnswer, json: bool, out: &mut Vec<u8>) -> std::io::Result<()> {
    let text = text_for(flags);
    match (flags.path_to.is_some(), flags.retainers.is_some(), json) {
        (true, _, true) => reports::write_path_json(answer, out),
        (true, _, false) => text.path(answer, out),
        (_, true, true) => reports::write_retainers_json(answer, out),
        (_, true, false) => text.retainers(answer, out),
        (_, _, true) => reports::write_type_json(answer, out),
        (_, _, false) => text.one_type(answer, out),
    }
}

/// The text for standard output, with the name of the file.
fn text_for(flags: &Flags) -> HeapText {
    let name = flags.file.file_name().map_or("standard input".into(), |name| name.to_string_lossy());
    flags.table.text(if name == "-" { "standard input".into() } else { name })
}

/// The type with this name, or the only one that contains the text.
fn one_type(answers: &HeapAnswers<'_>, text: &str, flags: &Flags) -> Result<TypeAnswer, Failure> {
    let names = answers.types_named(text);
    let quoted = |name: &str| format!("`{}`", sanitize(name));
    match &names[..] {
        [] => Err(Failure::new(format!(
            "{} has no type with `{}` in its name: `stackglass heap show --all` lists all types",
            flags.file.display(),
            sanitize(text)
        ))),
        [found] => {
            let answer = answers.type_answer(&found.name, LARGEST);
            answer.ok_or_else(|| Failure::new(format!("there is no type {}", quoted(&found.name))))
        }
        [most, ..] => {
            let named =
                |found: &TypeSize| format!("{} ({})", quoted(&found.name), bytes_text(found.self_size));
            let mut list: Vec<String> = names.iter().take(NAMED).map(named).collect();
            if names.len() > NAMED {
                list.push(format!("{} more", names.len() - NAMED));
            }
            let option = match (&flags.path_to, &flags.retainers) {
                (Some(_), _) => "--path-to",
                (_, Some(_)) => "--retainers",
                _ => "--type",
            };
            Err(Failure::new(format!(
                "several types contain `{}`: {}; name one: stackglass heap show {} {option} {}",
                sanitize(text),
                list.join(", "),
                in_shell(&flags.file.to_string_lossy()),
                in_shell(&most.name)
            )))
        }
    }
}

/// A word of a command line, in quotes if the shell needs them.
fn in_shell(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:,+@%".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Number of blocks of a type that are shown with their path.
const LARGEST: usize = 5;
