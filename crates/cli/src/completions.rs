//! `stackglass completions SHELL`: completions, made from the flags.

use crate::failure::Outcome;
use clap::{Args, Command};
use clap_complete::Shell;
use std::io::Write;

/// Write shell completions to stdout
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  source <(stackglass completions bash)")]
pub(crate) struct Flags {
    /// The shell
    shell: Shell,
}

/// Writes completions for `command`, the whole command line.
pub(crate) fn run(flags: &Flags, mut command: Command) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(flags.shell, &mut command, "stackglass", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(0)
}
