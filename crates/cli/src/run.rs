//! `stackglass run -- PROGRAM ARGS`: run a program that answers peeks; nothing is recorded.

use crate::failure::{Failure, Outcome};
use crate::heap::PeekSnapshots;
use crate::message;
use crate::values::{delay, positive_duration};
use crate::{library, peek_text};
use clap::Args;
use stackglass_collect::allocations::AllocationSettings;
use stackglass_collect::launch::{self, Options, Program};
use stackglass_collect::peeks::PeekPart;
use stackglass_collect::peeks::responder::Responder;
use stackglass_collect::recording::{Observer, Saved};
use stackglass_profile::{AllocationSampling, Recording};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  stackglass run -- ./server &      until it ends
  stackglass peek $(pidof server)   what is it doing?
  kill -USR1 %1                     the same, on stderr of the server
  stackglass run --allocs -- ./server
  stackglass heap take PID          what is in its memory?

SIGUSR1 to this stackglass prints on stderr what each thread of the program is
doing now, and then a profile of the next second. Until then nothing is
sampled: the program gets a handler for SIGUSR1 and no thread. SIGUSR1 to the
program, or to a process that it starts, does the same, but the signal may cut
short one of its reads or writes. A program that handles SIGUSR1 itself keeps its
handler, and gets the signal; `stackglass peek PID` works for it, too. A program
that calls stackglass::peek::install answers SIGUSR1 by itself.";

/// Run a program so that SIGUSR1 prints what it is doing; record nothing.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Length of the profile that follows SIGUSR1
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive_duration)]
    peek_duration: Duration,

    /// Time between two samples of each thread during a peek (100us to 1h)
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = delay)]
    delay: Duration,

    /// Prepare only the program itself, not the processes it starts
    #[arg(long)]
    no_children: bool,

    /// Record allocations from the start, so that heap snapshots know the type and the place of each block. Without it, `allocs --pid` can record them for a while
    #[arg(long)]
    allocs: bool,

    /// Program to run, and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

pub(crate) fn run(flags: Flags) -> Outcome {
    let every = AllocationSettings { sampling: AllocationSampling::Every };
    let mut words = flags.command.into_iter();
    let name = words.next().unwrap_or_default();
    let program = Program::find(&name)
        .map_err(|error| Failure { status: error.exit_status(), line: error.to_string() })?;
    let options = Options {
        program,
        arguments: words.collect(),
        folder: None,
        variables: Vec::new(),
        library: library::unpack,
        sampler: None,
        output: PathBuf::new(),
        delay: flags.delay,
        capacity: 10_000_000,
        duration: None,
        delay_start: None,
        follow_children: !flags.no_children,
        peek: flags.peek_duration,
        walltime: false,
        allocations: flags.allocs.then_some(every),
        heap_at: None,
        time: true,
        writer: concat!("stackglass ", env!("CARGO_PKG_VERSION")).into(),
    };
    let end =
        launch::run(&options, &mut PeekObserver::default()).map_err(|error| Failure::of_launch(&error))?;
    Ok(launch::exit_status(end))
}

/// Prints notes and peeks on stderr.
#[derive(Default)]
struct PeekObserver {
    snapshots: PeekSnapshots,
}

impl Observer for PeekObserver {
    fn note(&mut self, line: &str) {
        message::print(line);
    }

    fn recorded(&mut self, _: &Recording, _: &Saved) {}

    fn snapshot(&mut self, _: &Recording, _: &Saved) {}

    fn peek(&mut self, pid: u32, part: &PeekPart, responder: &Responder) {
        peek_text::answer(pid, part, responder, &mut self.snapshots);
    }
}
