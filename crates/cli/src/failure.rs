//! How a verb fails: an exit status and one line on stderr.

use crate::terminal::Layout;
use crate::{closed_stdout, message};
use stackglass_collect::launch::LaunchError;
use stackglass_procfs::limits::too_many_files;
use stackglass_profile::sanitize;
use stackglass_report::Style;
use std::error::Error;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Write};

/// Exit status of Stackglass's own failures. env(1) and timeout(1) use the same, so that it does not look like
/// the status of the program.
pub(crate) const OWN_FAILURE: i32 = 125;

/// A verb ends with an exit status or a failure.
pub(crate) type Outcome = Result<i32, Failure>;

/// Why a verb could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit status.
    pub(crate) status: i32,
    /// What happened, to what, and what to do. Empty: nothing is printed.
    pub(crate) line: String,
}

impl Failure {
    /// A failure with the status [`OWN_FAILURE`].
    pub(crate) fn new(line: impl Display) -> Failure {
        Failure { status: OWN_FAILURE, line: line.to_string() }
    }

    /// The failure of a program that was not started.
    pub(crate) fn of_launch(error: &LaunchError) -> Failure {
        let mut cause: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(error) = cause {
            if let Some(line) = error.downcast_ref::<io::Error>().and_then(too_many_files) {
                return Failure::new(line);
            }
            cause = error.source();
        }
        Failure { status: error.program_status().unwrap_or(OWN_FAILURE), line: error.to_string() }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        // The reader of a pipe has closed it (head, less): that is no error.
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure { status: 0, line: String::new() };
        }
        match closed_stdout::reason(&error) {
            Some(reason) => Failure::new(format!("cannot write: {reason}")),
            None => Failure::new(format!("cannot write: {error}")),
        }
    }
}

/// Turns an outcome into an exit status, and prints the line of a failure.
pub(crate) fn status(outcome: Outcome) -> i32 {
    match outcome {
        Ok(status) => status,
        Err(failure) => {
            if !failure.line.is_empty() {
                message::print(&failure.line);
            }
            failure.status
        }
    }
}

/// Parses arguments. Otherwise prints help or version to stdout, or a usage error to stderr with status 2, and returns
/// the exit status.
pub(crate) fn parse<P: clap::Parser>(arguments: Vec<OsString>) -> Result<P, i32> {
    let error = match P::try_parse_from(&arguments) {
        Ok(parsed) => return Ok(parsed),
        Err(error) => error,
    };
    // Errors quote arguments. The same error with harmless arguments does not act on the terminal.
    let shown = arguments.iter().map(|argument| sanitize(&argument.to_string_lossy()).into_owned());
    let error = P::try_parse_from(shown).err().unwrap_or(error);
    let layout = Layout::of_stderr();
    if !error.use_stderr() {
        return Err(error.print().map_or_else(|error| status(Err(error.into())), |()| error.exit_code()));
    }
    if !layout.terminal {
        // Nothing can be done about a closed stderr.
        let _ = error.print();
        return Err(error.exit_code());
    }
    // clap wraps help, but no errors.
    let text = error.render();
    let text = if layout.style == Style::Ansi { text.ansi().to_string() } else { text.to_string() };
    for line in text.trim_end().lines().flat_map(|line| message::wrap(line, layout.columns)) {
        let _ = writeln!(io::stderr().lock(), "{line}");
    }
    Err(error.exit_code())
}
