//! `stackglass diff A B`: which functions take more time in B than in A, beyond the noise.

use crate::Outcome;
use crate::failure::Failure;
use crate::input;
use crate::terminal::LookFlags;
use clap::Args;
use stackglass_profile::{Comparison, ComparisonText, Recording};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  stackglass diff before.glass after.glass
  stackglass diff before.glass after.glass --all | less
  stackglass diff old.folded new.folded            samples instead of time

A function's own time is time in it and in code of the standard library and the
C library that it called. Errors are standard errors of the number of samples;
! marks changes of more than three of them. What most functions have in common
(another processor, a busier machine) is taken off first, and said.";

/// Compare two profiles, function by function.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// The profile before: .glass, .jlprof, folded stacks or perf script text, - for stdin
    #[arg(value_name = "A")]
    before: PathBuf,

    /// The profile now
    #[arg(value_name = "B")]
    after: PathBuf,

    /// Show all functions, those within the noise too
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    look: LookFlags,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    if input::is_stream(&flags.before) && input::is_stream(&flags.after) {
        let line = "one of the two can come from standard input: name a file for the other".into();
        return Err(Failure { status: 2, line });
    }
    let (before, after) = (recording(&flags.before)?, recording(&flags.after)?);
    let comparison = Comparison::new(&before.1, &after.1);
    if comparison.rows.is_empty() {
        return Err(Failure::new(format!("{} and {} have no samples of running code", before.0, after.0)));
    }
    let look = flags.look.of_stdout();
    let mut out = BufWriter::new(std::io::stdout().lock());
    let text = ComparisonText::new(&comparison, look.columns, look.style).all(flags.all);
    text.write((&before.0, &after.0), &mut out)?;
    out.flush()?;
    Ok(0)
}

/// A profile and how it is called.
fn recording(path: &Path) -> Result<(String, Recording), Failure> {
    let input = input::read(path)?;
    Ok((input.name.clone(), input.into_recording()?))
}
