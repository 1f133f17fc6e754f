//! `stackglass man`: the manual page, made from the flags.

use crate::failure::Outcome;
use clap::{Args, Command};
use std::io::Write;

/// Write the manual page to stdout (`stackglass man | man -l -`)
#[derive(Args, Debug)]
pub(crate) struct Flags {
    /// Write the page of this command instead of the overview
    #[arg(value_name = "COMMAND")]
    verb: Option<String>,
}

/// Writes the page of `command`, the whole command line.
pub(crate) fn run(flags: &Flags, mut command: Command) -> Outcome {
    command.build();
    let command = match &flags.verb {
        None => command,
        Some(verb) => command
            .find_subcommand(verb)
            .cloned()
            .ok_or_else(|| {
                crate::failure::Failure::new(format!("there is no command {verb}: see stackglass --help"))
            })?
            .name(format!("stackglass-{verb}").leak() as &'static str),
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    std::io::stdout().lock().write_all(&page)?;
    Ok(0)
}
