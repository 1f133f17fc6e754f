//! `stackglass heap`: snapshots of the heap, one file per verb.

mod assemble;
mod at_peek;
mod diff;
pub(crate) mod open;
mod show;
pub(crate) mod stored;
mod table_flags;
mod take;
mod watch;
mod watched;

pub(crate) use at_peek::{PeekSnapshots, save_at_peek};
pub(crate) use take::save_during_recording;

use crate::failure::Outcome;
use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  stackglass heap take 1234                 save the heap of process 1234
  stackglass heap show app.heapsnapshot     what is alive, and what holds it
  stackglass heap show app.heapsnapshot --path-to Session
  stackglass heap diff a.heapsnapshot b.heapsnapshot    what grew
  stackglass heap watch 1234                what grows in process 1234
  stackglass record --allocs --heap-at peak -- app && stackglass heap show app.glass

Chrome DevTools opens the same files (Memory, Load). Snapshots of V8 and of Julia
can be read as well.";

/// Take heap snapshots and look into them: what is alive, what holds it, what leaked.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    Take(take::Flags),
    Show(show::Flags),
    Diff(diff::Flags),
    Watch(watch::Flags),
    Assemble(assemble::Flags),
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    match &flags.verb {
        Verb::Take(flags) => take::run(flags),
        Verb::Show(flags) => show::run(flags),
        Verb::Diff(flags) => diff::run(flags),
        Verb::Watch(flags) => watch::run(flags),
        Verb::Assemble(flags) => assemble::run(flags),
    }
}
