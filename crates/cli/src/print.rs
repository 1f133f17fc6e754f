//! `stackglass print [FILE]`: the report of a recording again.

use crate::terminal::Look;
use crate::{Outcome, failure, first_screen, recording_file};
use clap::{Args, ValueEnum};
use stackglass_profile::Report;
use stackglass_profile::report;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  stackglass print                      the newest recording of this folder
  stackglass print server.glass --all   nothing folded, nothing trimmed
  stackglass print --format flat        one row for each function and line
  stackglass print | less               piped: complete";

/// Show the report of a recording.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// The recording [default: the newest *.glass file of this folder]
    file: Option<PathBuf>,

    /// Everything: no folded branches, no trimmed frames (as when piped)
    #[arg(long)]
    all: bool,

    /// The complete report in this shape, instead of the first screen
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,

    /// Columns to use [default: those of the terminal; $COLUMNS]
    #[arg(long, value_name = "COLUMNS")]
    width: Option<usize>,
}

#[derive(Clone, Copy, ValueEnum, Debug)]
enum Format {
    /// Callers above what they call
    Tree,
    /// One row for each function and line
    Flat,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let (_, recording) = recording_file::read(flags.file.as_deref())?;
    let look = Look::of(&std::io::stdout(), flags.width);
    let mut out = BufWriter::new(std::io::stdout().lock());
    match flags.format {
        None => first_screen::write(&recording, look, flags.all || !look.terminal, &mut out)?,
        Some(format) => {
            let format = match format {
                Format::Tree => report::Format::Tree,
                Format::Flat => report::Format::Flat,
            };
            let report = Report::new().format(format).cols(look.columns).style(look.style).c(true);
            let written = match report.write(&recording, &mut out) {
                Ok(written) => written,
                Err(stackglass_profile::ReportError::Io(error)) => return Err(error.into()),
                Err(error) => return Err(failure::Failure::new(error)),
            };
            for warning in written.warnings {
                failure::say(warning);
            }
        }
    }
    out.flush()?;
    Ok(0)
}
