//! `stackglass doctor`: what decides which samplers work here, and how to get those that do not.

mod checks;

use crate::failure::Outcome;
use crate::message;
use crate::terminal::{Layout, LayoutFlags};
use checks::{Check, Verdict};
use clap::Args;
use stackglass_report::Style;
use std::io::{self, Write};

const EXAMPLES: &str = "\
Examples:
  stackglass doctor          one line for each rule that decides what works
  stackglass doctor --json   the same as one JSON object (docs/json.md)

Only this process is tried: nothing is started, sampled, stopped or changed.

Exit status: 0 if `stackglass record -- PROGRAM` works here, otherwise 1.";

/// Check which ways of sampling work here, and how to get the others.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Print one JSON object (docs/json.md)
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    layout: LayoutFlags,
}

/// Columns before the text.
const INDENT: usize = 33;

pub(crate) fn run(flags: &Flags) -> Outcome {
    let checks = checks::all();
    let works = checks.iter().all(|check| !check.decides || check.verdict != Verdict::No);
    let mut out = io::stdout().lock();
    if flags.json {
        checks::write_json(&checks, works, &mut out)?;
    } else {
        write(&checks, works, &flags.layout.of_stdout(), &mut out)?;
    }
    out.flush()?;
    Ok(i32::from(!works))
}

fn write(checks: &[Check], works: bool, layout: &Layout, out: &mut impl Write) -> io::Result<()> {
    let room = layout.short_columns.saturating_sub(INDENT).max(20);
    for Check { name, verdict, text, remedies, .. } in checks {
        let (word, colour) = match verdict {
            Verdict::Ok => ("ok", "32"),
            Verdict::Restricted => ("restricted", "33"),
            Verdict::No => ("no", "31"),
        };
        let (on, off) = match layout.style {
            Style::Ansi => (format!("\x1b[{colour}m"), "\x1b[0m"),
            _ => (String::new(), ""),
        };
        let mut lines = message::wrap(text, room).into_iter();
        writeln!(out, "{on}{word:<10}{off}  {name:<20} {}", lines.next().unwrap_or_default())?;
        for line in lines {
            writeln!(out, "{:INDENT$}{line}", "")?;
        }
        for remedy in remedies {
            for (number, line) in message::wrap(remedy, room.saturating_sub(2)).into_iter().enumerate() {
                let mark = if number == 0 { "->" } else { "  " };
                writeln!(out, "{:1$}{mark} {line}", "", INDENT - 3)?;
            }
        }
    }
    let verdict = if works { "works" } else { "is refused: each line marked `no` above says how to get it" };
    writeln!(out)?;
    message::wrap(&format!("`stackglass record -- PROGRAM` {verdict}"), layout.short_columns)
        .iter()
        .try_for_each(|line| writeln!(out, "{line}"))
}
