//! `stackglass top PID` and `top -- PROGRAM`: where a program spends its time now, live.

mod full_screen;
mod help;
mod keys;
mod model;
mod program;
mod screen;
mod view;
mod watch;

use crate::driver::DriverFlag;
use crate::failure::{Failure, Outcome};
use crate::message;
use crate::output::{default_output_of_process, output_file};
use crate::values::{delay, process_id};
use clap::Args;
use full_screen::FullScreen;
use program::Started;
use stackglass_attach::{AttachMode, Driver, Stopped};
use stackglass_collect::attached::Attached;
use stackglass_collect::session::signals::Signals;
use stackglass_procfs::process;
use stackglass_procfs::status::process_of;
use stackglass_profile::harmless;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;
use watch::{Leave, Top};

const EXAMPLES: &str = "\
Examples:
  stackglass top 1234             a program that runs; it runs on
  stackglass top -- ./server      start one; its output is not shown

Keys: up and down choose, enter shows callers and callees (of a thread: its
functions), / filters, p pauses, s saves a recording, ? helps, q leaves.

A program that top has started: when it ends, top ends with its exit status.
q ends it first (SIGTERM, two seconds later SIGKILL), and the status is 0.
Signals to top are passed on to it. Otherwise a signal ends top alone, with
128 + its number.";

/// Watch where a program spends its time.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Id of the process
    #[arg(value_parser = process_id, required_unless_present = "command")]
    pid: Option<u32>,

    /// Time between two looks at each thread (100us to 1h)
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = delay)]
    delay: Duration,

    #[command(flatten)]
    driver: DriverFlag,

    /// File that the key s saves to [default: PROGRAM.glass in this folder]
    #[arg(short, long, value_name = "FILE", value_parser = output_file())]
    output: Option<PathBuf>,

    /// Program to run, and its arguments.
    #[arg(last = true, conflicts_with = "pid", value_name = "PROGRAM")]
    command: Vec<OsString>,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return Err(Failure::new("top needs a terminal; `stackglass peek PID` writes to a file or a pipe"));
    }
    let signals = Signals::block_as_onlooker()
        .map_err(|error| Failure::new(format!("cannot watch for signals: {error}")))?;
    let mut started = match flags.command.split_first() {
        Some((name, arguments)) => Some(Started::start(name, arguments, &signals)?),
        None => None,
    };
    let pid = match &started {
        Some(started) => started.pid(),
        None => process_of(flags.pid.unwrap_or_default()),
    };
    let attached = match Attached::begin(pid, flags.delay, flags.driver.asked(), AttachMode::Long) {
        Ok(attached) => attached,
        Err(why) => {
            let line = why.to_string();
            return match (Stopped::from(why), &mut started) {
                // Some programs are faster than we are.
                (Stopped::Gone, Some(started)) => Ok(started.gone()),
                _ => Err(Failure::new(line)),
            };
        }
    };
    let executable = process::executable(pid);
    let output = flags.output.clone().unwrap_or_else(|| default_output_of_process(&executable));
    let driver = match attached.choice().driver {
        Driver::Ptrace => "ptrace",
        Driver::Perf => "perf",
    };
    let name = or_process(&executable).file_name().unwrap_or_default().to_string_lossy();
    let head = format!("{} {pid}  by {driver}", harmless(&name));
    let mut top = Top::new(attached, pid, flags.delay, output, head);
    let mut full_screen = FullScreen::enter()?;
    let leave = top.watch(&mut full_screen, &signals, started.as_ref());
    // What is told from here on can be read: the screen is back to what it was.
    full_screen.leave();
    top.let_go();
    end(leave, pid, started, &signals)
}

/// The exit status, once whatever was started has ended.
fn end(leave: Leave, pid: u32, started: Option<Started>, signals: &Signals) -> Outcome {
    match (leave, started) {
        (Leave::Asked, Some(mut started)) => started.end_it(signals),
        (Leave::Asked, None) => {}
        (Leave::Stopped(Stopped::Gone), Some(mut started)) => return Ok(started.gone()),
        (Leave::Stopped(Stopped::Gone), None) => message::print(&format!("process {pid} has ended")),
        (Leave::Stopped(Stopped::Locked(why)), started) => {
            message::print(&why);
            return Ok(started.map_or(0, |mut started| started.wait(signals)));
        }
        (Leave::Signal(_) | Leave::TerminalGone, Some(mut started)) => return Ok(started.wait(signals)),
        (Leave::Signal(number), None) => return Ok(128 + number),
        (Leave::TerminalGone, None) => return Err(Failure::new("the terminal is gone")),
    }
    Ok(0)
}

fn or_process(executable: &Path) -> &Path {
    if executable.as_os_str().is_empty() { Path::new("process") } else { executable }
}
