//! `stackglass peek PID`: what a running program does now, and where the next second goes.

use crate::arguments::{delay, positive_duration, process_id};
use crate::driver::DriverFlag;
use crate::failure::{self, Failure};
use crate::terminal::LookFlags;
use crate::{Outcome, peek_text};
use clap::Args;
use stackglass_collect::attach::{self, PeekOptions, access, recognise};
use stackglass_collect::launch::PeekPart;
use stackglass_collect::peek_answer::Question;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// How long the beginning of an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(3);
/// Time between two looks for more of it.
const PAUSE: Duration = Duration::from_millis(10);

const EXAMPLES: &str = "\
Examples:
  stackglass peek 1234                  what each thread does, then a second
  stackglass peek $(pidof server) --duration 5s

Any program: nothing need be prepared. It runs on and is sent no signal; a
thread that sleeps is not woken. A program that answers peeks by itself
(under stackglass record or run, or by stackglass::peek::install) is asked to,
by SIGUSR1: it knows its async tasks, and how long it shall look.";

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

    #[command(flatten)]
    driver: DriverFlag,

    #[command(flatten)]
    look: LookFlags,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let pid = access::process_of(flags.pid);
    if flags.driver.asked().is_none() && recognise::carries_our_handler(pid) {
        if flags.duration != Duration::from_secs(1) {
            failure::say(&format!(
                "process {pid} answers peeks itself and looks for as long as it was told to at its start; \
                 --duration is for --driver ptrace"
            ));
        }
        return ask(pid);
    }
    let options =
        PeekOptions { pid, duration: flags.duration, delay: flags.delay, driver: flags.driver.asked() };
    let look = flags.look.of_stdout();
    let mut written = Ok(());
    attach::peek(&options, &mut |line| failure::say(line), &mut |part| {
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

/// Sends the signal that the program has put up a sign for, and shows what it answers.
fn ask(pid: u32) -> Outcome {
    let question = Question::new(pid);
    recognise::ask(pid).map_err(|error| Failure::new(format!("process {pid} cannot be asked: {error}")))?;
    let elsewhere = |why: &dyn std::fmt::Display| {
        failure::say(&format!(
            "process {pid} answers peeks itself, on its standard error or that of the stackglass which runs it \
             ({why}; --driver ptrace looks from here)"
        ));
        Ok(0)
    };
    let mut question = match question {
        Ok(question) => question,
        Err(error) => return elsewhere(&error),
    };
    let asked = Instant::now();
    let mut began = false;
    let mut out = io::stdout().lock();
    while !question.is_answered() {
        let lives = std::path::Path::new(&format!("/proc/{pid}")).exists();
        let text = question.more()?;
        began |= !text.is_empty();
        out.write_all(&text)?;
        out.flush()?;
        if text.is_empty() && !lives {
            return Err(Failure::new(format!("process {pid} ended during the peek")));
        }
        if !began && asked.elapsed() > PATIENCE {
            return elsewhere(&"it sees another /tmp, or is stopped");
        }
        std::thread::sleep(PAUSE);
    }
    Ok(0)
}
