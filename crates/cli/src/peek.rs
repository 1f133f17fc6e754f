//! `stackglass peek PID`: what a running program does now, and where the next second goes.

use crate::arguments::{delay, positive_duration, process_id};
use crate::failure::{self, Failure};
use crate::terminal::LookFlags;
use crate::{Outcome, peek_text};
use clap::Args;
use stackglass_collect::attach::{self, PeekOptions, access, recognise};
use stackglass_collect::launch::PeekPart;
use std::io::{self, Write};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  stackglass peek 1234                  what each thread does, then a second
  stackglass peek $(pidof server) --duration 5s

Any program: nothing need be prepared. It runs on and is sent no signal; a
thread that sleeps is not woken, one that runs stands for some ten
microseconds each millisecond. A program that answers peeks by itself
(under stackglass record or run, or by stackglass::peek::install) is asked to;
its answer appears on its own standard error, or where stackglass runs it.";

/// See what a running program does now, and where the next second goes.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Id of the process
    #[arg(value_parser = process_id)]
    pid: u32,

    /// How long the profile takes
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive_duration)]
    duration: Duration,

    /// Time between two looks at each thread (100us to 1h)
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = delay)]
    delay: Duration,

    /// Look from outside also where the program answers peeks itself
    #[arg(long)]
    outside: bool,

    #[command(flatten)]
    look: LookFlags,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let pid = access::process_of(flags.pid);
    if !flags.outside && recognise::carries_our_handler(pid) {
        return ask(pid);
    }
    let options = PeekOptions { pid, duration: flags.duration, delay: flags.delay, driver: None };
    let look = flags.look.of_stdout();
    let mut written = Ok(());
    attach::peek(&options, &mut |part| {
        let mut text = Vec::new();
        let made = match part {
            PeekPart::Threads { recording, activity, profile } => {
                peek_text::threads(recording, activity, *profile, &look, &mut text)
            }
            PeekPart::Report { recording } => peek_text::report(recording, &look, &mut text),
            PeekPart::Nothing { why } => {
                failure::say(why);
                Ok(())
            }
        };
        if written.is_ok() {
            let mut out = io::stdout().lock();
            written = made.and_then(|()| out.write_all(&text)).and_then(|()| out.flush());
        }
    })
    .map_err(Failure::new)?;
    written?;
    Ok(0)
}

/// Sends the signal that the program has put up a sign for.
fn ask(pid: u32) -> Outcome {
    recognise::ask(pid).map_err(|error| Failure::new(format!("process {pid} cannot be asked: {error}")))?;
    failure::say(&format!(
        "process {pid} answers peeks itself: see its standard error, or that of the stackglass which runs it \
         (--outside looks from here)"
    ));
    Ok(0)
}
