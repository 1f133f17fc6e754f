//! `stackglass record`: record a program, or a process that runs already.

use crate::chosen_processes::ChosenFlags;
use crate::failure::{Failure, Outcome};
use crate::output::{Output, default_output, output_file};
use crate::record_pid;
use crate::record_program::{self, Job};
use crate::sampling_flags::SamplingFlags;
use clap::Args;
use stackglass_collect::launch::Program;
use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  stackglass record -- ./server                 until it ends, or Ctrl-C
  stackglass record --duration 30s -- ./server  30 s; the server runs on
  stackglass record -o build.glass -- make      make and its child processes
  stackglass record --delay 10ms -- ./batch     fewer samples, for a long run
  stackglass record --pid 1234 --duration 10s   a process, with its children
  stackglass record --name nginx --duration 10s all processes of this name
  stackglass record --walltime -- ./server      where its async tasks wait
  stackglass record --track-allocation -- ./job bytes beside source lines

The program keeps its terminal, input, output, signals and exit status.
Stackglass prints to stderr. Child processes are recorded as well. The
recording is written while the program runs: whatever happens, `stackglass
print` reads all of it but the last quarter of a second.

Ctrl-C goes to the program as usual, and the report follows when the program
has ended. A second Ctrl-C prints the report at once. `stackglass save` (or
SIGUSR2 to stackglass) writes a complete recording beside the growing one and
prints the report so far.";

/// Record a program, or a running process, and print where its time goes.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// File for the recording [default: PROGRAM.glass in this folder, or with the next free number: -2, -3, …]
    #[arg(short, long, value_name = "FILE", value_parser = output_file())]
    output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) sampling: SamplingFlags,

    #[command(flatten)]
    running: ChosenFlags,

    /// Program to run, and its arguments
    #[arg(required_unless_present = "running", trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

pub(crate) fn run(flags: Flags) -> Outcome {
    if flags.running.are_given() {
        return record_pid::record(&flags.running, flags.output, flags.sampling);
    }
    let mut words = flags.command.into_iter();
    let name = words.next().unwrap_or_default();
    let program = Program::find(&name)
        .map_err(|error| Failure { status: error.exit_status(), line: error.to_string() })?;
    let output = flags.output.map(Output::named).unwrap_or_else(|| default_output(&program.path));
    record_program::record(Job {
        program,
        arguments: words.collect(),
        folder: None,
        variables: Vec::new(),
        output,
        sampling: flags.sampling,
    })
}
