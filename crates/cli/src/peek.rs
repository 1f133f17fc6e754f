//! `stackglass peek PID`: what a running program does now, and where the next second goes.

use crate::driver::DriverFlag;
use crate::failure::{Failure, Outcome};
use crate::message;
use crate::peek_text;
use crate::terminal::LayoutFlags;
use crate::values::{delay, positive_duration, process_id};
use clap::Args;
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat, makedev};
use stackglass_collect::attached::{self, OutsidePeek};
use stackglass_collect::peeks::request::{PeekOptions, PeekRequest, ResponseEnd};
use stackglass_collect::peeks::{PeekPart, handler};
use stackglass_procfs::status::process_of;
use stackglass_procfs::{ImageKey, Status};
use stackglass_report::Style;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How long a profile takes, and time between two looks, of a program that has no defaults of its own.
const DURATION: Duration = Duration::from_secs(1);
const DELAY: Duration = Duration::from_millis(1);
/// How long the rest of an answer is waited for when the process is gone: its names may have to be looked for.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// How long somebody is waited for who takes the question to answer it.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time between two looks for more of it.
const PAUSE: Duration = Duration::from_millis(10);

const EXAMPLES: &str = "\
Examples:
  stackglass peek 1234                  what each thread does, then a second
  stackglass peek $(pidof server) --duration 5s

Any program: nothing need be prepared. It runs on and is sent no signal; a
thread that sleeps is not woken. A program that answers peeks by itself (by
stackglass::peek::install: it knows its async tasks), or whose stackglass does
(under stackglass run), is asked to, by SIGUSR1. One peek at a time: yours may
have to wait for another's end. Ready threads count as running, as in Julia: R of
\"running R of N\" and Utilization hold also those that wait for a processor.

Status: 0; 125 when there was nothing to see, or the process ended before
the peek's end (what was seen until then is shown), or stdout is closed.";

/// See what a running program does now, and where the next second goes.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Id of the process
    #[arg(value_parser = process_id)]
    pid: u32,

    /// How long the profile takes [default: 1s, or what a program that answers itself has set]
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    duration: Option<Duration>,

    /// Time between two looks at each thread (100us to 1h) [default: 1ms, or as above]
    #[arg(long, value_name = "TIME", value_parser = delay)]
    delay: Option<Duration>,

    #[command(flatten)]
    driver: DriverFlag,

    #[command(flatten)]
    look: LayoutFlags,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    if is_closed(&io::stdout()) {
        return Err(Failure::new("standard output is closed: there is nowhere to show the peek"));
    }
    let pid = process_of(flags.pid);
    let look = flags.look.of_stdout();
    if flags.driver.asked().is_none() && handler::carries_our_handler(pid) {
        let options = PeekOptions {
            duration: flags.duration,
            delay: flags.delay,
            columns: Some(look.columns),
            colours: look.style == Style::Ansi,
        };
        return ask(pid, &options);
    }
    let options = OutsidePeek {
        pid,
        duration: flags.duration.unwrap_or(DURATION),
        delay: flags.delay.unwrap_or(DELAY),
        driver: flags.driver.asked(),
    };
    let mut written = Ok(());
    let early = attached::peek(&options, &mut |line| message::print_wrapped(line), &mut |part| {
        let mut text = Vec::new();
        let made = match part {
            PeekPart::Threads { recording, activity, profile } => {
                peek_text::threads(recording, activity, *profile, &look, &mut text)
            }
            PeekPart::Report { recording, .. } => peek_text::report(recording, &look, &mut text),
            PeekPart::Nothing { why } => {
                message::print_wrapped(why);
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
    early.map_or(Ok(0), |why| Err(Failure::new(why)))
}

/// Nothing was shown here.
const NO_ANSWER: i32 = 125;

/// Sends the signal that the program has put up a sign for, and shows what it answers.
fn ask(pid: u32, options: &PeekOptions) -> Outcome {
    let image = ImageKey::read(pid);
    let request = PeekRequest::new(pid, options);
    handler::ask(pid).map_err(|error| Failure::new(format!("process {pid} cannot be asked: {error}")))?;
    let elsewhere = |why: &dyn std::fmt::Display| {
        message::print_wrapped(&format!(
            "process {pid} answers peeks itself, on its standard error or that of the stackglass which runs it \
             ({why}; --driver ptrace looks from here)"
        ));
        Ok(NO_ANSWER)
    };
    let mut request = match request {
        Ok(request) => request,
        Err(error) => return elsewhere(&error),
    };
    let asked = Instant::now();
    // Since when the program that was asked is not there any more.
    let mut gone: Option<Instant> = None;
    let mut out = io::stdout().lock();
    while request.end().is_none() {
        if Status::read(pid).is_none_or(|status| status.has_ended()) || ImageKey::read(pid) != image {
            gone.get_or_insert_with(Instant::now);
        }
        let text = request.read_more()?;
        out.write_all(&text)?;
        out.flush()?;
        if !text.is_empty() {
            continue;
        }
        // The stackglass that runs it may have something to say still.
        if gone.is_some_and(|since| since.elapsed() > LAST_WORDS) {
            break;
        }
        if !request.is_accepted() && gone.is_none() && asked.elapsed() > PATIENCE {
            return elsewhere(
                &"it sees another /tmp, is stopped, or has another version of stackglass in it",
            );
        }
        std::thread::sleep(PAUSE);
    }
    match (request.end(), gone) {
        (Some(ResponseEnd::Complete), _) => Ok(0),
        (_, Some(since)) => {
            let what = if Status::read(pid).is_none_or(|status| status.has_ended()) {
                "ended"
            } else {
                "began to run another program"
            };
            Err(Failure::new(format!("process {pid} {what} after {:.1?} of the peek", since - asked)))
        }
        (_, None) => Err(Failure::new(format!("the peek at process {pid} was broken off by who answers it"))),
    }
}

/// Whether there is no standard output: where it was closed, the standard library has opened /dev/null for reading and
/// writing in its place, which nobody does who wants nothing shown.
fn is_closed(out: &impl AsFd) -> bool {
    let both = fcntl_getfl(out).is_ok_and(|flags| flags & OFlags::ACCMODE == OFlags::RDWR);
    both && fstat(out).is_ok_and(|stat| {
        FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && stat.st_rdev == makedev(1, 3)
    })
}
