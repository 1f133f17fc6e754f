//! `stackglass completions SHELL`: completions, made from the flags.

use crate::Outcome;
use crate::arguments::Stackglass;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::io::Write;

/// Write completions for a shell to stdout
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  source <(stackglass completions bash)")]
pub(crate) struct Flags {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(flags.shell, &mut Stackglass::command(), "stackglass", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(0)
}
