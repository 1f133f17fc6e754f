//! The command line: all verbs. The flags of a verb are in the file of that verb.

use crate::{
    allocs, annotate, callers, cargo_verb, clear, completions, convert, demo, demo_workload, diff, doctor,
    environment_help, flamegraph, heap, hot, info, man, peek, print, record, report_help, run, save, tasks,
    top, view,
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
  stackglass demo                         profile a bundled program (3 s)
  stackglass record -- ./server --port 1  profile a program; Ctrl-C stops it
  stackglass record -- sh -c 'make -j4'   child processes are included
  stackglass run -- ./server              let the program answer SIGUSR1
  stackglass peek 1234                    what is process 1234 doing?
  stackglass top 1234                     the same, live
  stackglass print                        the newest recording in this folder
  stackglass hot                          its hottest functions
  stackglass allocs                       what it allocates, by type and line
  stackglass callers malloc               its callers, by line
  stackglass annotate --file search.rs    source lines with their times
  stackglass flamegraph                   a flame graph as an HTML page
  stackglass view                         its threads over time, in the browser
  stackglass diff before.glass after.glass   which functions became slower
  stackglass heap show app.heapsnapshot   what is alive, and what holds it
  stackglass convert rg.glass rg.folded   for other tools
  cargo stackglass --bin server           build with line tables, then record
  stackglass doctor                       what works here, and what is refused
  stackglass help report                  what the words of a report mean
  stackglass help environment             all variables that are read

Exit status: that of the program (128+N if signal N killed it).
  2    wrong flags
  125  stackglass itself failed before it started the program
  126  the program cannot be executed
  127  the program or its interpreter does not exist";

/// Show where a program spends its time: every thread, running or asleep, down to the source line.
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
    Tasks(tasks::Flags),
    Top(top::Flags),
    Print(print::Flags),
    Hot(hot::Flags),
    Allocs(allocs::Flags),
    Callers(callers::Flags),
    Annotate(annotate::Flags),
    Flamegraph(flamegraph::Flags),
    View(view::Flags),
    Diff(diff::Flags),
    Heap(heap::Flags),
    Convert(convert::Flags),
    Info(info::Flags),
    Save(save::Flags),
    Clear(clear::Flags),
    Doctor(doctor::Flags),
    Demo(demo::Flags),
    #[command(hide = true)]
    DemoWorkload(demo_workload::Flags),
    /// Explain the columns, words and marks of a report
    #[command(hide = true, override_help = report_help::TEXT)]
    Report,
    /// Explain the variables of the environment that are read
    #[command(hide = true, override_help = environment_help::TEXT)]
    Environment,
    Man(man::Flags),
    Completions(completions::Flags),
}

/// The command line as Cargo passes it on: `cargo stackglass …`.
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
