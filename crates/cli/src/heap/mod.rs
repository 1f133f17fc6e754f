//! `stackglass heap`: snapshots of the heap, one file per verb.

mod take;

use crate::failure::Outcome;
use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  stackglass heap take 1234                 save the heap of process 1234

Chrome DevTools opens these files (Memory, Load).";

/// Take heap snapshots: what is alive, what holds it, what leaked.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    Take(take::Flags),
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    match &flags.verb {
        Verb::Take(flags) => take::run(flags),
    }
}
