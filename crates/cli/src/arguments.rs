//! The verbs and how their values are read. Each verb's flags are in its own file.

use crate::{
    annotate, callers, cargo_verb, clear, completions, convert, demo, demo_workload, diff, flamegraph, info,
    man, peek, print, record, run, save, top,
};
use clap::builder::Styles;
use clap::builder::styling::AnsiColor;
use clap::{Parser, Subcommand};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const EXAMPLES: &str = "\
Examples:
  stackglass demo                         what it looks like, in three seconds
  stackglass record -- ./server --port 1  profile a program; Ctrl-C reports
  stackglass record -- sh -c 'make -j4'   children are followed
  stackglass run -- ./server              ready to be peeked at (SIGUSR1)
  stackglass peek 1234                    what is process 1234 doing?
  stackglass top 1234                     the same, live
  stackglass print                        this folder's newest recording again
  stackglass callers malloc               who called it, from which lines
  stackglass annotate --file search.rs    source lines with their times
  stackglass flamegraph                   a picture of it, in a page
  stackglass diff before.glass after.glass  which functions became slower
  stackglass convert rg.glass rg.folded   for other tools
  cargo stackglass --bin server           build with line tables, record, report

Status: that of the program (128+N when signal N ended it); 125 when
stackglass itself failed before the program was started, 126 when the program
cannot be executed, 127 when it or its interpreter does not exist, 2 for wrong
flags.";

/// See where a program spends its time: each thread, running or asleep, down to the line.
#[derive(Parser, Debug)]
#[command(name = "stackglass", version, styles = STYLES, after_help = EXAMPLES)]
pub(crate) struct Stackglass {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Verb {
    Record(record::Flags),
    Run(run::Flags),
    Peek(peek::Flags),
    Top(top::Flags),
    Print(print::Flags),
    Callers(callers::Flags),
    Annotate(annotate::Flags),
    Flamegraph(flamegraph::Flags),
    Diff(diff::Flags),
    Convert(convert::Flags),
    Info(info::Flags),
    Save(save::Flags),
    Clear(clear::Flags),
    Demo(demo::Flags),
    #[command(hide = true)]
    DemoWorkload(demo_workload::Flags),
    Man(man::Flags),
    Completions(completions::Flags),
}

/// Cargo's view: `cargo stackglass …`.
#[derive(Parser, Debug)]
#[command(name = "cargo", bin_name = "cargo", version, styles = STYLES)]
pub(crate) struct CargoCommand {
    #[command(subcommand)]
    pub(crate) verb: CargoVerb,
}

#[derive(Subcommand, Debug)]
pub(crate) enum CargoVerb {
    Stackglass(cargo_verb::Flags),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn flags_are_consistent() {
        Stackglass::command().debug_assert();
        CargoCommand::command().debug_assert();
    }
}
