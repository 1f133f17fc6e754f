//! `stackglass peek PID`: what each thread of a process is doing now, then a short profile.

use crate::driver::{DriverFlag, harmless_driver};
use crate::failure::{Failure, Outcome};
use crate::heap;
use crate::message;
use crate::peek_answer_parts::AnswerParts;
use crate::peek_children::ChildrenBefore;
use crate::peek_tasks::{self, PeekTasks};
use crate::peek_text;
use crate::perf_refused;
use crate::terminal::{Layout, LayoutFlags};
use crate::values::{delay, positive_duration, process_id};
use clap::Args;
use stackglass_attach::choice;
use stackglass_collect::attached::{self, OutsidePeek};
use stackglass_collect::peeks::request::{PeekOptions, PeekRequest, ResponseEnd};
use stackglass_collect::peeks::{PeekPart, handler};
use stackglass_procfs::status::process_of;
use stackglass_procfs::{ImageKey, Status};
use stackglass_report::Style;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// Length of the profile and time between two samples, if the program sets no defaults.
const DURATION: Duration = Duration::from_secs(1);
const DELAY: Duration = Duration::from_millis(1);
/// After the process has ended, its launcher may still look up names for the rest of the answer.
const WAIT_AFTER_END: Duration = Duration::from_secs(3);
/// How long to wait until a request is taken.
const WAIT_FOR_RESPONDER: Duration = Duration::from_secs(5);
/// Time between two reads of the answer.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

const EXAMPLES: &str = "\
Examples:
  stackglass peek 1234                  all threads now, then one second
  stackglass peek $(pidof server) --duration 5s

Works on any process, without preparation. The process runs on and receives no
signal. Where perf events are refused, a program that answers peeks itself
(stackglass::peek::install), or that runs under `stackglass run`, gets SIGUSR1.
In other programs, running threads then have no stack. --sampler ptrace stops
them, and their reads and writes may come back short. Threads that are ready
to run count as running, as in Julia: \"running R of N\" and Utilization include
threads that wait for a CPU.

Threads that wait for a lock or for the end of a thread follow, with the thread
that holds it, and deadlocks among them.

If the process uses tokio, and its own crate has full debug information
(`debug = 2`), its async tasks follow, as of `stackglass tasks`: it is copied
for that, which holds it up for some milliseconds. So do tasks that a program
names by `.task(\"name\")` of the crate stackglass.

Exit status: 0, or 125 if there was nothing to see, stdout is closed, or the
process ended during the peek (what was seen until then is printed).";

/// Print what each thread of a process is doing now, then a one-second profile.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Id of the process
    #[arg(value_parser = process_id)]
    pid: u32,

    /// Length of the profile [default: 1s; with --ask, what the program has set for its own answers]
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    duration: Option<Duration>,

    /// Time between two samples of each thread (100us to 1h) [default: 1ms; with --ask, what the program has set]
    #[arg(long, value_name = "TIME", value_parser = delay)]
    delay: Option<Duration>,

    /// Print the stacks and the profile as one JSON object (docs/json.md)
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    driver: DriverFlag,

    /// Ask a program that answers peeks itself, by SIGUSR1. This interrupts system calls: reads and writes may come back short
    #[arg(long, conflicts_with_all = ["json", "name"])]
    ask: bool,

    #[command(flatten)]
    layout: LayoutFlags,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    if stackglass_collect::launch::stdout_was_closed() {
        return Err(Failure::new("stdout is closed: the peek cannot be printed"));
    }
    let pid = process_of(flags.pid);
    let layout = flags.layout.of_stdout();
    if is_asked(flags, pid)? {
        let options = PeekOptions {
            duration: flags.duration,
            delay: flags.delay,
            columns: Some(layout.columns),
            colours: layout.style == Style::Ansi,
        };
        return ask(pid, &options, &layout);
    }
    let options = OutsidePeek {
        pid,
        duration: flags.duration.unwrap_or(DURATION),
        delay: flags.delay.unwrap_or(DELAY),
        driver: harmless_driver(pid, flags.driver.driver()),
    };
    let before = ChildrenBefore::read(pid);
    if flags.json {
        let outcome = write_json(&options);
        before.that_ran().iter().for_each(|line| message::print(line));
        return outcome;
    }
    let mut written = Ok(());
    let mut tasks = PeekTasks::default();
    let early = attached::peek(&options, &mut |line| message::print(line), &mut |part| {
        let mut text = Vec::new();
        let made = match part {
            PeekPart::Threads { recording, activity, profile } => {
                tasks.start(pid);
                peek_text::threads(recording, activity, *profile, &layout, &mut text)
            }
            PeekPart::Report { recording, early } => {
                let waits = tasks.take_waits(*early);
                let shown = peek_tasks::write_waits(&waits, Some(recording), &layout, &mut text);
                let dump = tasks.take(*early);
                let shown = shown
                    .and_then(|()| dump.map_or(Ok(()), |dump| peek_tasks::write(&dump, &layout, &mut text)));
                shown.and_then(|()| peek_text::report(recording, &layout, &mut text))
            }
            PeekPart::Nothing { why } => {
                message::print(why);
                Ok(())
            }
        };
        if written.is_ok() {
            let mut out = io::stdout().lock();
            written = made.and_then(|()| out.write_all(&text)).and_then(|()| out.flush());
        }
    })
    .map_err(|error| perf_refused::of_process(&error))?;
    written?;
    before.that_ran().iter().for_each(|line| message::print(line));
    if early.is_none() && peek_text::wants_heap_snapshot() {
        heap::save_at_peek(pid, &mut |line| message::print(line));
    }
    early.map_or(Ok(0), |why| Err(Failure::new(why)))
}

/// Whether the program is asked by its signal: if the user wants that, or nothing from outside sees its running threads.
fn is_asked(flags: &Flags, pid: u32) -> Result<bool, Failure> {
    // The answer of a program is text.
    let is_of_outside = flags.json || flags.driver.driver().is_some();
    if !flags.ask && (is_of_outside || choice::perf(pid).is_ok()) {
        return Ok(false);
    }
    match handler::may_be_asked(pid) {
        Ok(()) => Ok(true),
        Err(why) if flags.ask => Err(Failure::new(format!("process {pid} cannot be asked: {why}"))),
        Err(_) => Ok(false),
    }
}

/// Exit status if the answer was printed elsewhere.
const NO_ANSWER: i32 = 125;

/// Sends SIGUSR1 to a program that announces its handler, and prints the answer.
fn ask(pid: u32, options: &PeekOptions, layout: &Layout) -> Outcome {
    let image = ImageKey::read(pid);
    let request = PeekRequest::new(pid, options);
    handler::ask(pid).map_err(|error| Failure::new(format!("cannot ask process {pid}: {error}")))?;
    let elsewhere = |why: &dyn std::fmt::Display| {
        message::print(&format!(
            "process {pid} answers peeks on its own stderr, or on that of the stackglass that runs it \
             ({why}; --sampler perf samples it from here)"
        ));
        Ok(NO_ANSWER)
    };
    let mut request = match request {
        Ok(request) => request,
        Err(error) => return elsewhere(&error),
    };
    let asked = Instant::now();
    // When the program that was asked was first missing.
    let mut gone: Option<Instant> = None;
    let mut answer = AnswerParts::new(pid, layout, io::stdout().lock());
    while request.end().is_none() {
        if Status::read(pid).is_none_or(|status| status.has_ended()) || ImageKey::read(pid) != image {
            gone.get_or_insert_with(Instant::now);
        }
        let text = request.read_more()?;
        answer.push(&text)?;
        if !text.is_empty() {
            continue;
        }
        // The stackglass that runs it may still be writing.
        if gone.is_some_and(|since| since.elapsed() > WAIT_AFTER_END) {
            break;
        }
        if !request.is_accepted() && gone.is_none() && asked.elapsed() > WAIT_FOR_RESPONDER {
            return elsewhere(&"it sees another /tmp, is stopped, or contains another version of stackglass");
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    answer.finish(request.end() != Some(ResponseEnd::Complete))?;
    match (request.end(), gone) {
        (Some(ResponseEnd::Complete), _) => Ok(0),
        (_, Some(since)) => {
            let what = if Status::read(pid).is_none_or(|status| status.has_ended()) {
                "ended"
            } else {
                "started another program"
            };
            Err(Failure::new(format!("process {pid} {what} after {:.1?} of the peek", since - asked)))
        }
        (_, None) => {
            Err(Failure::new(format!("the peek at process {pid} was interrupted before it was complete")))
        }
    }
}

/// Prints a peek as JSON.
fn write_json(options: &OutsidePeek) -> Outcome {
    let (mut threads, mut profile) = (None, None);
    let mut tasks = PeekTasks::default();
    let early = attached::peek(options, &mut |line| message::print(line), &mut |part| match part {
        PeekPart::Threads { recording, activity, .. } => {
            tasks.start(options.pid);
            threads = Some((recording.clone(), activity.clone()));
        }
        PeekPart::Report { recording, .. } => profile = Some(recording.clone()),
        PeekPart::Nothing { why } => message::print(why),
    })
    .map_err(|error| perf_refused::of_process(&error))?;
    let waits = tasks.take_waits(early.is_some());
    let tasks = tasks.take(early.is_some());
    let mut out = io::stdout().lock();
    let threads = threads.as_ref().map(|(recording, activity)| (recording, activity));
    stackglass_report::peek::write_json(
        options.pid,
        threads,
        &waits,
        tasks.as_ref(),
        profile.as_ref(),
        &mut out,
    )?;
    out.flush()?;
    early.map_or(Ok(0), |why| Err(Failure::new(why)))
}
