//! `stackglass record -- PROGRAM ARGS`: run a program and see where its time goes.

use crate::driver::DriverFlag;
use crate::failure::{Failure, Outcome};
use crate::output::{default_output, output_file};
use crate::record_pid;
use crate::record_program::{self, Job};
use crate::sampling_flags::SamplingFlags;
use crate::values::process_id;
use clap::Args;
use stackglass_collect::launch::Program;
use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  stackglass record -- ./server                 until it ends, or Ctrl-C
  stackglass record --duration 30s -- ./server  30 s; the server goes on
  stackglass record -o build.glass -- make      make and all it starts
  stackglass record --delay 10ms -- ./batch     fewer samples for a long run
  stackglass record --pid 1234 --duration 10s   a program that runs already

The program keeps its terminal, its input and output, its signals and its
exit status; what stackglass says goes to stderr. Programs it starts are
followed. The recording is written while the program runs: whatever happens,
`stackglass print` reads it up to the last quarter of a second.

Ctrl-C reaches the program as always and the report follows when it has
ended; a second Ctrl-C reports at once although it has not. `stackglass save`
(or SIGUSR2 to stackglass) writes a complete recording beside the growing one
and shows the report so far.";

/// Run a program, or look at one that runs, and see where its time goes.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// File for the recording [default: PROGRAM.glass in this folder, replaced each time]
    #[arg(short, long, value_name = "FILE", value_parser = output_file())]
    output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) sampling: SamplingFlags,

    /// Record the running process with this id; it runs on
    #[arg(long, value_name = "PID", value_parser = process_id, conflicts_with_all = ["command", "no_children"])]
    pid: Option<u32>,

    #[command(flatten)]
    driver: DriverFlag,

    /// Program to run, and its arguments.
    #[arg(required_unless_present = "pid", trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

pub(crate) fn run(flags: Flags) -> Outcome {
    if let Some(pid) = flags.pid {
        return record_pid::record(pid, flags.output, flags.sampling, flags.driver.asked());
    }
    let mut words = flags.command.into_iter();
    let name = words.next().unwrap_or_default();
    let program = Program::find(&name)
        .map_err(|error| Failure { status: error.exit_status(), line: error.to_string() })?;
    let output = flags.output.unwrap_or_else(|| default_output(&program.path));
    record_program::record(Job {
        program,
        arguments: words.collect(),
        folder: None,
        variables: Vec::new(),
        output,
        sampling: flags.sampling,
    })
}
