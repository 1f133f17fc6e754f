//! `stackglass man`: the manual page, made from the flags.

use crate::Outcome;
use crate::arguments::Stackglass;
use clap::{Args, CommandFactory};
use std::io::Write;

/// Write the manual page to stdout (`stackglass man | man -l -`).
#[derive(Args, Debug)]
pub(crate) struct Flags {
    /// The page of this verb instead of the overview
    verb: Option<String>,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let mut command = Stackglass::command();
    command.build();
    let command = match &flags.verb {
        None => command,
        Some(verb) => command
            .find_subcommand(verb)
            .cloned()
            .ok_or_else(|| {
                crate::failure::Failure::new(format!("there is no verb {verb}: see stackglass --help"))
            })?
            .name(format!("stackglass-{verb}").leak() as &'static str),
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    std::io::stdout().lock().write_all(&page)?;
    Ok(0)
}
