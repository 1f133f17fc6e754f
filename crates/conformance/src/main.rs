//! `cargo xtask conformance`: runs recorded cases and prints the differences.

use stackglass_conformance::{KINDS, Mode, Options, Outcome, own_folder, run};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask conformance [DIR] [--kinds KIND,…]

Runs the recorded cases in DIR and all folders in it, or in one file. Reports are compared byte by byte
with what Julia's Profile printed (cases marked `tie` in any order of lines, those marked `quirk` with the
corrected result), and again, as our users see them, with the reviewed goldens of the project; cases
that the project does not have itself have no such goldens. Datasets are looked for near the cases,
then in the project's own copy. Every case that differs is shown with its difference. The last line
is `N passed, N failed`; the exit status is 1 when a case failed or there was none.

  DIR             where to look; else the project's own copy in conformance/
  --kinds KIND,…  only cases of these kinds, and all others are left out. Without it, cases of kinds that
                  are not implemented count as failed; without DIR as well, they are left out
  --bless         writes our own goldens (conformance/profile/ours) anew, to be reviewed by eye

Implemented kinds: ";

/// Number of lines shown of a difference.
const LINES_SHOWN: usize = 80;

struct Arguments {
    folder: PathBuf,
    options: Options,
}

fn main() -> ExitCode {
    let arguments = match arguments(std::env::args().skip(1)) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => return say(&format!("{HELP}{}", KINDS.join(", ")), ExitCode::SUCCESS),
        Err(error) => {
            eprintln!("conformance: {error}; see --help");
            return ExitCode::from(2);
        }
    };
    match run(&arguments.folder, &arguments.options) {
        Ok(outcome) => say(&report(&outcome), ExitCode::from(u8::from(outcome.failed() > 0))),
        Err(error) => {
            eprintln!("conformance: {error}");
            say("0 passed, 0 failed", ExitCode::FAILURE)
        }
    }
}

/// Prints. A closed output is not a failure of the cases.
fn say(text: &str, status: ExitCode) -> ExitCode {
    match writeln!(io::stdout().lock(), "{text}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("conformance: cannot write: {error}");
            ExitCode::FAILURE
        }
        _ => status,
    }
}

/// `None` if help was requested.
fn arguments(given: impl Iterator<Item = String>) -> Result<Option<Arguments>, String> {
    let (mut folder, mut options) = (None, Options::default());
    let mut given = given.peekable();
    while let Some(argument) = given.next() {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (&*argument, None),
        };
        match name {
            "--help" | "-h" => return Ok(None),
            "--bless" => options.bless = true,
            "--kinds" => {
                let kinds = value.or_else(|| given.next()).ok_or("--kinds needs a list of kinds")?;
                options.kinds.get_or_insert_default().extend(kinds.split(',').map(str::to_owned));
            }
            option if option.starts_with('-') => return Err(format!("there is no option {option}")),
            path if folder.is_none() => folder = Some(PathBuf::from(path)),
            path => return Err(format!("one folder at a time: {path} is one too many")),
        }
    }
    if folder.is_none() && options.kinds.is_none() {
        options.kinds = Some(KINDS.iter().map(|kind| (*kind).to_owned()).collect());
    }
    Ok(Some(Arguments { folder: folder.unwrap_or_else(own_folder), options }))
}

fn report(outcome: &Outcome) -> String {
    let mut text = String::new();
    for failure in &outcome.failures {
        let mode = match failure.mode {
            Mode::Recorded => "as recorded",
            Mode::Ours => "as our users see it",
        };
        let kind = if failure.kind.is_empty() { "no case" } else { &failure.kind };
        text += &format!("FAILED {} ({kind}, {mode})  {}\n", failure.case, failure.path.display());
        let mut lines = failure.text.lines();
        lines.by_ref().take(LINES_SHOWN).for_each(|line| text += &format!("    {line}\n"));
        match lines.count() {
            0 => {}
            more => text += &format!("    … and {more} more lines\n"),
        }
        text.push('\n');
    }
    for (kind, cases) in &outcome.not_implemented {
        text += &format!("FAILED {cases} of kind {kind}: not implemented (--kinds leaves them out)\n");
    }
    for (kind, cases) in &outcome.left_out {
        let why = if KINDS.contains(&&**kind) { "not asked for" } else { "not implemented, not asked for" };
        text += &format!("left out: {cases} of kind {kind} ({why})\n");
    }
    text += &format!(
        "ran as recorded: {}, and again as our users see them: {}\n",
        outcome.cases - outcome.not_implemented.values().sum::<usize>(),
        outcome.as_users_see
    );
    text + &format!("{} passed, {} failed", outcome.passed, outcome.failed())
}
