//! How the command says that it could not do its work: one line on stderr and a status.

use crate::terminal::Look;
use stackglass_profile::harmless;
use std::ffi::OsString;
use std::fmt::Display;
use std::io;

/// The status of our own failures, out of the way of the program's: as with env(1) and timeout(1).
pub(crate) const OWN_FAILURE: i32 = 125;

/// A verb that could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit status.
    pub(crate) status: i32,
    /// What happened, to what, and what to do.
    pub(crate) line: String,
}

impl Failure {
    /// A failure with the status of our own ones.
    pub(crate) fn new(line: impl Display) -> Failure {
        Failure { status: OWN_FAILURE, line: line.to_string() }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        Failure::new(format!("{error:#}"))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        // Whoever read our output has seen enough: nothing to say.
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure { status: 0, line: String::new() };
        }
        Failure::new(format!("cannot write: {error}"))
    }
}

/// Turns a verb's outcome into an exit status, with a line on stderr for failures.
pub(crate) fn status(outcome: Result<i32, Failure>) -> i32 {
    match outcome {
        Ok(status) => status,
        Err(failure) => {
            if !failure.line.is_empty() {
                say(&failure.line);
            }
            failure.status
        }
    }
}

/// Parses arguments. Otherwise prints help or version to stdout, or a usage error to stderr, and returns the exit status.
pub(crate) fn parse<P: clap::Parser>(arguments: Vec<OsString>) -> Result<P, i32> {
    let error = match P::try_parse_from(&arguments) {
        Ok(parsed) => return Ok(parsed),
        Err(error) => error,
    };
    // Errors quote arguments. The same error with harmless arguments does not act on the terminal.
    let shown = arguments.iter().map(|argument| harmless(&argument.to_string_lossy()).into_owned());
    let error = P::try_parse_from(shown).err().unwrap_or(error);
    // Nothing can be done about a closed stdout or stderr.
    let _ = error.print();
    Err(error.exit_code())
}

/// A note for people on stderr: on a terminal no line is wider than that.
pub(crate) fn note(text: &str) {
    let look = Look::of_stderr();
    let room = look.columns.saturating_sub("stackglass: ".len()).max(20);
    if !look.terminal {
        return say(text);
    }
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
            say(&std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    say(&line);
}

/// One line for people on stderr.
pub(crate) fn say(line: &str) {
    use io::Write;
    // As above.
    let _ = writeln!(io::stderr().lock(), "stackglass: {}", harmless(line));
}
