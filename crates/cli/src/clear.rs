//! `stackglass clear PID`: discard the samples of a recording in progress.

use crate::failure::{Failure, Outcome};
use crate::message;
use crate::values::process_id;
use clap::Args;
use stackglass_collect::session::clearing::{self, Cleared};

const EXAMPLES: &str = "\
Examples:
  stackglass record -- ./server &
  stackglass clear $(pidof server)   after warming up

Recording continues. All samples and allocations so far are discarded, also in the file.";

/// Discard the samples so far of a recording in progress.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Id of the recorded process, or of its `stackglass record`
    #[arg(value_parser = process_id)]
    pid: u32,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let pid = flags.pid;
    let folder = clearing::session_of(pid).ok_or_else(|| {
        match std::path::Path::new(&format!("/proc/{pid}")).exists() {
            true => Failure::new(format!("process {pid} is not being recorded by this user")),
            false => Failure::new(format!("there is no process {pid}")),
        }
    })?;
    match clearing::ask(&folder) {
        Ok(Cleared::Done) => {
            message::print("all samples so far are discarded");
            Ok(0)
        }
        Ok(Cleared::NotAnswered) => Err(Failure::new(format!(
            "the stackglass of process {pid} does not answer: it does not record (stackglass run), or it is stopped"
        ))),
        Err(error) => Err(Failure::new(format!("cannot reach the recording of process {pid}: {error}"))),
    }
}
