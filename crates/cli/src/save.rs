//! `stackglass save`: write a complete copy of a recording in progress.

use crate::failure::{Failure, Outcome};
use crate::message;
use crate::values::process_id;
use clap::Args;
use stackglass_collect::session::folder;

const EXAMPLES: &str = "\
Recording continues. A complete recording is written beside the growing one
(server.glass: server-1.glass, server-2.glass, …), and its report is printed
where `stackglass record` runs. `kill -USR2` to the process of `stackglass
record` does the same.";

/// Save the recording in progress, as of now.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Process id of `stackglass record` [default: the only one running]
    #[arg(value_parser = process_id)]
    pid: Option<u32>,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let running = folder::running_launchers();
    let pid = match (flags.pid, running.as_slice()) {
        (Some(pid), running) if running.contains(&pid) => pid,
        (Some(pid), _) => {
            return Err(Failure::new(format!("process {pid} is not a `stackglass record` of this user")));
        }
        (None, [pid]) => *pid,
        (None, []) => return Err(Failure::new("nothing is being recorded by this user")),
        (None, several) => {
            let pids: Vec<String> = several.iter().map(u32::to_string).collect();
            return Err(Failure::new(format!(
                "several recordings are in progress: name one of {}",
                pids.join(", ")
            )));
        }
    };
    folder::ask_to_save(pid)
        .map_err(|error| Failure::new(format!("cannot signal process {pid}: {error}")))?;
    message::print(&format!("process {pid} is saving its recording"));
    Ok(0)
}
