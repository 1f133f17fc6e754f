//! `stackglass save`: have a recording that is being made saved now.

use crate::failure::{Failure, Outcome};
use crate::message;
use crate::values::process_id;
use clap::Args;
use stackglass_collect::session::folder;

const EXAMPLES: &str = "\
The recording goes on. A complete one as of now is written beside it
(server.glass: server-1.glass, server-2.glass, …), and its report appears where
`stackglass record` runs. `kill -USR2` to the process of `stackglass record`
does the same.";

/// Save a recording that is being made, as of now.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Process id of `stackglass record` [default: the only one that runs]
    #[arg(value_parser = process_id)]
    pid: Option<u32>,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let running = folder::running_launchers();
    let pid = match (flags.pid, running.as_slice()) {
        (Some(pid), running) if running.contains(&pid) => pid,
        (Some(pid), _) => return Err(Failure::new(format!("process {pid} is not recording"))),
        (None, [pid]) => *pid,
        (None, []) => return Err(Failure::new("nothing is being recorded by this user")),
        (None, several) => {
            let pids: Vec<String> = several.iter().map(u32::to_string).collect();
            return Err(Failure::new(format!(
                "several recordings are being made: name one of {}",
                pids.join(", ")
            )));
        }
    };
    folder::ask_to_save(pid)
        .map_err(|error| Failure::new(format!("cannot signal process {pid}: {error}")))?;
    message::print(&format!("process {pid} saves its recording"));
    Ok(0)
}
