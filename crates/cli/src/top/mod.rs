//! `stackglass top PID` and `top -- PROGRAM`: a live view of where a program spends its time.

mod child;
mod figures;
#[cfg(test)]
mod fixtures;
mod full_screen;
mod help;
mod json_lines;
mod keys;
mod live_view;
mod model;
mod screen;
mod table;
mod tasks_model;
mod tasks_reader;
mod tasks_view;
mod view;

use crate::driver::{DriverFlag, harmless_driver};
use crate::failure::{Failure, Outcome};
use crate::message;
use crate::output::output_file;
use crate::perf_refused;
use crate::values::{delay, process_id};
use child::ChildProgram;
use clap::Args;
use figures::Figures;
use full_screen::FullScreen;
use live_view::{ExitReason, LiveView, SaveTo};
use model::{Model, WINDOW};
use stackglass_attach::choice::perf;
use stackglass_attach::{AttachMode, Driver, Refusal, Stopped};
use stackglass_collect::attached::Attached;
use stackglass_collect::session::signals::Signals;
use stackglass_procfs::process;
use stackglass_procfs::status::process_of;
use stackglass_profile::sanitize;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  stackglass top 1234             a running process; it runs on
  stackglass top -- ./server      start a program; its output is discarded
  stackglass top 1234 --json      one JSON object per second, for programs

Keys: up and down select, enter shows callers and callees (of a thread: its
functions), 4 shows async tasks, / filters, p pauses, s saves a recording,
? shows help, q quits. While tasks are shown, the process is copied once a
second, which holds it up for some milliseconds.

A program started by top: when it ends, top exits with its status. q ends it
first (SIGTERM, after two seconds SIGKILL), and top exits with 0. Signals to
top are passed on to it. In all other cases a signal ends only top, with status
128 + its number.";

/// Watch live where a program spends its time.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Id of the process
    #[arg(value_parser = process_id, required_unless_present = "command")]
    pid: Option<u32>,

    /// Time between two samples of each thread (100us to 1h)
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = delay)]
    delay: Duration,

    #[command(flatten)]
    driver: DriverFlag,

    /// Print the figures of each second as a JSON object on one line (docs/json.md)
    #[arg(long, conflicts_with = "output")]
    json: bool,

    /// File for the key s [default: PROGRAM.glass in this folder, or with the next free number: -2, -3, …]
    #[arg(short, long, value_name = "FILE", value_parser = output_file())]
    output: Option<PathBuf>,

    /// Program to run, and its arguments
    #[arg(last = true, conflicts_with = "pid", value_name = "PROGRAM")]
    command: Vec<OsString>,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    if !flags.json && (!std::io::stdout().is_terminal() || !std::io::stdin().is_terminal()) {
        return Err(Failure::new(
            "top needs a terminal; `stackglass peek PID` and `stackglass top --json` write to a file or a pipe",
        ));
    }
    let signals = Signals::block_as_onlooker()
        .map_err(|error| Failure::new(format!("cannot receive signals: {error}")))?;
    let asked = flags.driver.driver();
    // Before anything starts: whoever may sample itself may sample its child.
    if !flags.command.is_empty()
        && asked != Some(Driver::Ptrace)
        && let Err(refused) = perf(std::process::id())
    {
        return Err(perf_refused::of_refusal(&Refusal::NoPerf(refused)));
    }
    let mut child = match flags.command.split_first() {
        Some((name, arguments)) => Some(ChildProgram::start(name, arguments, &signals)?),
        None => None,
    };
    let pid = match &child {
        Some(child) => child.pid(),
        None => process_of(flags.pid.unwrap_or_default()),
    };
    let attached = match Attached::begin(pid, flags.delay, harmless_driver(pid, asked), AttachMode::Long) {
        Ok(attached) => attached,
        Err(why) => {
            if let Refusal::NoPerf(_) | Refusal::Traced { .. } | Refusal::Taken { .. } = why {
                return Err(perf_refused::of_refusal(&why));
            }
            let line = why.to_string();
            return match (Stopped::from(why), &mut child) {
                // The program ended before it could be sampled.
                (Stopped::Gone, Some(child)) => Ok(child.report_end()),
                _ => Err(Failure::new(line)),
            };
        }
    };
    let executable = process::executable(pid);
    let output = match &flags.output {
        Some(path) => SaveTo::Named(path.clone()),
        None => SaveTo::NewFileOf(executable.clone()),
    };
    let driver = match attached.choice().driver {
        Driver::Ptrace => "ptrace",
        Driver::Perf | Driver::Asleep => "perf",
    };
    let name = or_process(&executable).file_name().unwrap_or_default().to_string_lossy();
    let head = format!("{} {pid}  by {driver}", sanitize(&name));
    if flags.json {
        // Each object is of its own second.
        let mut figures = Figures::new(attached, pid, flags.delay, Model::of_intervals(1));
        let reason = json_lines::run(&mut figures, pid, &signals, child.as_ref());
        figures.detach();
        return exit_status(reason, pid, child, &signals);
    }
    let figures = Figures::new(attached, pid, flags.delay, Model::of_intervals(WINDOW));
    let mut live_view = LiveView::new(figures, pid, output, head);
    let mut full_screen = FullScreen::enter()?;
    let reason = live_view.run(&mut full_screen, &signals, child.as_ref());
    // Messages from here on go to the normal screen.
    full_screen.leave();
    live_view.detach();
    exit_status(reason, pid, child, &signals)
}

/// Ends or waits for a program that top started, and returns the exit status.
fn exit_status(reason: ExitReason, pid: u32, child: Option<ChildProgram>, signals: &Signals) -> Outcome {
    match (reason, child) {
        (ExitReason::Asked, Some(mut child)) => child.terminate(signals),
        (ExitReason::Asked, None) => {}
        (ExitReason::Stopped(Stopped::Gone), Some(mut child)) => return Ok(child.report_end()),
        (ExitReason::Stopped(Stopped::Gone), None) => message::print(&format!("process {pid} has ended")),
        (ExitReason::Stopped(Stopped::Locked(why)), child) => {
            message::print(&why);
            return Ok(child.map_or(0, |mut child| child.wait(signals)));
        }
        (ExitReason::Signal(_) | ExitReason::TerminalGone, Some(mut child)) => return Ok(child.wait(signals)),
        (ExitReason::Signal(number), None) => return Ok(128 + number),
        (ExitReason::TerminalGone, None) => return Err(Failure::new("the terminal is gone")),
    }
    Ok(0)
}

fn or_process(executable: &Path) -> &Path {
    if executable.as_os_str().is_empty() { Path::new("process") } else { executable }
}
