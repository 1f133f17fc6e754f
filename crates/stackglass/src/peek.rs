//! Shows what a running process does: SIGUSR1 prints all threads, and then where the next second goes.
//!
//! ```
//! stackglass::peek::install()?; // one line in main(); it costs nothing until a peek
//! # Ok::<(), stackglass::peek::PeekError>(())
//! ```
//!
//! Then run `kill -USR1 PID` or `stackglass peek --ask PID`. At once, `cmd: PROGRAM PID running R of N` and a stack of each thread
//! appear on standard error, or where `stackglass peek` runs. Then all threads are profiled for [`get_duration`]. Then the
//! report by thread and task follows, or the one set by [`set_report`]. A separate thread prints it, so the report
//! comes even if the program never yields.
//!
//! - A second signal during a peek shows the stacks again, and does not prolong the peek.
//! - Each peek is answered where it was requested. A `stackglass peek --ask PID` during another peek waits, and says so; a signal
//!   during a `stackglass peek` waits as well. `stackglass peek` may request another duration, delay and width. A
//!   peek ends when its requester has gone.
//! - Without `--ask`, `stackglass peek PID` looks from outside and sends no signal, unless perf events are refused.
//! - `stackglass peek PID` adds the async tasks of the program, which it reads from outside. A signal does not show them.
//! - During [`profile!`](crate::profile!) a peek shows that second of the running profile, and does not disturb it.
//! - A program that handles or ignores SIGUSR1 keeps the signal: [`install`] is then an error, and a handler that is installed
//!   later replaces the peek. `stackglass peek PID` reads such a program from outside.
//! - While `stackglass record` samples the program from inside, the command answers. Under `stackglass run` this module
//!   answers, because the command does not know the tasks.
//! - SIGUSR1 ends a forked child that has not called exec, as it would without this module.
//! - Each signal interrupts one thread, which the kernel picks. Calls such as `epoll_wait`, which never resume after a
//!   handler, return EINTR in it once.

use crate::{Recording, Style, running};
use stackglass_collect::peeks::request;
use stackglass_collect::peeks::responder::{RequestQueue, Responder};
use stackglass_profile::sanitize;
use stackglass_report::Peek;
use stackglass_report::peek::is_truthy;
use stackglass_sampler::peek as signal;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{IsTerminal, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// If set to 1, t, true, y or yes (any case), a peek takes a heap snapshot as well.
const HEAP_VARIABLE: &str = "STACKGLASS_PEEK_HEAP_SNAPSHOT";
/// How long a peek waits for the first stack of each thread. On a busy machine some threads wait for a CPU.
const FIRST_STACKS: Duration = Duration::from_millis(200);
/// Time between two checks for these stacks.
const CHECK_STACKS: Duration = Duration::from_millis(2);
/// Time between two checks whether the requester still waits.
const CHECK_REQUESTER: Duration = Duration::from_millis(200);
/// Longest wait for a request before the next check.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

type Report = Box<dyn FnMut(&Recording) + Send>;

static DURATION: Mutex<Duration> = Mutex::new(Duration::from_secs(1));
static REPORT: Mutex<Option<Report>> = Mutex::new(None);
/// The process that has the answering thread. A forked child has none.
static THREAD_OF: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The destination of the peek that this thread answers.
    static RESPONDER: RefCell<Responder> = RefCell::default();
}

/// An error of setting up peeks.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeekError {
    /// The program uses SIGUSR1 itself.
    #[error(
        "SIGUSR1 is handled or ignored by the program itself; `stackglass peek PID` reads it from outside"
    )]
    Owned,
    /// The kernel refused the handler.
    #[error("the system refused the handler of SIGUSR1 (error {0})")]
    Refused(i32),
    /// The answering thread could not start.
    #[error("cannot start the thread that answers peeks: {0}")]
    Thread(#[source] std::io::Error),
    /// The duration is zero or longer than an hour.
    #[error("a peek cannot take {0:?}; use 1 ms to 1 h")]
    Duration(Duration),
}

/// Makes SIGUSR1 show what this process does. Harmless if repeated.
///
/// # Errors
/// If the program uses SIGUSR1 itself, or the system refuses the handler or the thread. Nothing has changed then.
pub fn install() -> Result<(), PeekError> {
    if stackglass_sampler::is_delegated() {
        return Ok(());
    }
    let pid = std::process::id();
    if THREAD_OF.swap(pid, Ordering::AcqRel) != pid {
        let seen = signal::requests();
        stackglass_sampler::expect_helper();
        let spawned = std::thread::Builder::new().name("stackglass-peek".into()).spawn(move || {
            stackglass_sampler::leave_out_this_thread();
            answer(seen);
        });
        if let Err(error) = spawned {
            stackglass_sampler::expect_no_helper();
            THREAD_OF.store(0, Ordering::Release);
            return Err(PeekError::Thread(error));
        }
    }
    signal::install().map_err(|error| match error {
        signal::NotInstalled::Owned => PeekError::Owned,
        signal::NotInstalled::Refused(errno) => PeekError::Refused(errno),
    })
}

/// Requests a peek, as the signal does.
pub fn request() {
    signal::request();
}

/// How long a peek profiles; one second by default.
pub fn get_duration() -> Duration {
    *DURATION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets how long later peeks profile.
///
/// # Errors
/// If the duration is less than a millisecond or more than an hour.
///
/// ```
/// use stackglass::peek::{get_duration, set_duration};
/// use std::time::Duration;
/// set_duration(Duration::from_millis(200))?;
/// assert!(set_duration(Duration::ZERO).is_err());
/// assert_eq!(get_duration(), Duration::from_millis(200));
/// # Ok::<(), stackglass::peek::PeekError>(())
/// ```
pub fn set_duration(duration: Duration) -> Result<(), PeekError> {
    if !(Duration::from_millis(1)..=Duration::from_secs(3600)).contains(&duration) {
        return Err(PeekError::Duration(duration));
    }
    *DURATION.lock().unwrap_or_else(PoisonError::into_inner) = duration;
    Ok(())
}

/// Sets the function that reports the profile of a peek, in place of [`default_report`]. It is called on the answering
/// thread, with a recording that has names. If it panics, a line says so, and later peeks still work (unless panics abort).
///
/// ```
/// stackglass::peek::set_report(|recording| eprintln!("{} samples", recording.samples.len()));
/// ```
pub fn set_report(report: impl FnMut(&Recording) + Send + 'static) {
    *REPORT.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(report));
}

/// Prints the profile by thread and task, and a short digest, to standard error. A peek that `stackglass peek` has requested
/// prints them there.
pub fn default_report(recording: &Recording) {
    respond(|peek, text| {
        // Writing to memory does not fail.
        let _ = peek.report(recording, text);
    });
}

/// Requests that are not answered yet, with the destinations of their answers.
struct Requests {
    seen: u32,
    queue: RequestQueue,
    waiting: VecDeque<Responder>,
}

impl Requests {
    /// The destinations of the requests since the last call.
    fn new_responders(&mut self) -> Vec<Responder> {
        let now = signal::requests();
        self.queue.receive(now.wrapping_sub(std::mem::replace(&mut self.seen, now)))
    }
}

/// Answers requests for as long as the process lives.
fn answer(seen: u32) {
    let queue = RequestQueue::new(std::process::id());
    let mut requests = Requests { seen, queue, waiting: VecDeque::new() };
    loop {
        let new = requests.new_responders();
        requests.waiting.extend(new);
        let Some(responder) = requests.waiting.pop_front() else {
            signal::wait_for(requests.seen, LONGEST_WAIT);
            continue;
        };
        if responder.is_abandoned() {
            continue;
        }
        RESPONDER.set(responder.clone());
        match running::peek::begin(responder.options().delay) {
            Ok(Some(delay)) => {
                peek(&responder, delay, &mut requests);
                responder.finish(true);
            }
            // `stackglass record` answers from now on.
            Ok(None) => responder.finish(false),
            Err(error) => {
                print_line(&format!("no peek: {error}"));
                responder.finish(false);
            }
        }
    }
}

/// Makes one peek, which has begun.
fn peek(responder: &Responder, delay: Duration, requests: &mut Requests) {
    let until = Instant::now() + duration_for(responder);
    if responder.options().delay.is_some_and(|asked| asked != delay) {
        print_line(&format!("a profile is running with a delay of {delay:?}: --delay has no effect"));
    }
    respond(|peek, text| {
        let _ = peek.begin(text);
    });
    show_threads();
    while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        signal::wait_for(requests.seen, if responder.is_stderr() { left } else { left.min(CHECK_REQUESTER) });
        for late in requests.new_responders() {
            if responder.is_stderr() && late.is_stderr() {
                show_threads();
                continue;
            }
            let left = until.saturating_duration_since(Instant::now());
            late.write(request::wait_notice(std::process::id(), left).as_bytes());
            // On standard error one report is enough.
            if !late.is_stderr() || !requests.waiting.iter().any(Responder::is_stderr) {
                requests.waiting.push_back(late);
            }
        }
        if responder.is_abandoned() {
            break;
        }
    }
    let mut recording = running::peek::end();
    if responder.is_abandoned() {
        return;
    }
    symbolize(&mut recording);
    respond(|peek, text| {
        let _ = peek.end(text);
    });
    report(&recording);
    if is_truthy(std::env::var_os(HEAP_VARIABLE).as_deref()) {
        save_heap_snapshot();
    }
}

#[cfg(feature = "heap")]
fn save_heap_snapshot() {
    use stackglass_report::peek::{SAVING_HEAP_SNAPSHOT, heap_snapshot_saved};
    let say = |line: &str| respond(|_, text| text.extend_from_slice(format!("{line}\n").as_bytes()));
    say(SAVING_HEAP_SNAPSHOT);
    match crate::take_heap_snapshot_with(&crate::HeapSnapshotOptions::default()) {
        Ok(path) => say(&heap_snapshot_saved(&path.display().to_string())),
        Err(error) => print_line(&format!("no heap snapshot: {error}")),
    }
}

#[cfg(not(feature = "heap"))]
fn save_heap_snapshot() {
    print_line(&format!("{HEAP_VARIABLE} is set, but the crate was built without its feature `heap`"));
}

/// How long the peek profiles.
fn duration_for(responder: &Responder) -> Duration {
    responder.options().duration.unwrap_or_else(get_duration)
}

fn show_threads() {
    let began = Instant::now();
    let (mut recording, activity) = loop {
        std::thread::sleep(CHECK_STACKS);
        let recording = running::peek::latest();
        let activity =
            stackglass_collect::peeks::activity::of_process(std::process::id(), stackglass_sampler::is_ours);
        let complete = recording.samples.len() >= activity.len() && !stackglass_sampler::expects_helper();
        if complete || began.elapsed() > FIRST_STACKS {
            break (recording, activity);
        }
    };
    symbolize(&mut recording);
    respond(|peek, text| {
        let _ = peek.threads(&recording, &activity, text);
    });
}

/// Reads the debug information that is needed, and frees it.
fn symbolize(recording: &mut Recording) {
    // On this thread alone: other threads would appear in a profile of the program.
    let options = stackglass_symbols::Options { threads: Some(1), ..Default::default() };
    stackglass_symbols::symbolize(recording, &options, &mut |_| {});
    stackglass_collect::give_back_memory();
}

fn report(recording: &Recording) {
    // The function is removed while it runs, so that it may set another one.
    let own = REPORT.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(mut own) = own else { return default_report(recording) };
    if catch_unwind(AssertUnwindSafe(|| own(recording))).is_err() {
        print_line("the report function of the peek panicked; later peeks call it again");
    }
    REPORT.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(own);
}

fn print_line(line: &str) {
    respond(|_, text| text.extend_from_slice(format!("stackglass: {}\n", sanitize(line)).as_bytes()));
}

/// Writes in one piece to the `stackglass peek` that has requested this thread's peek, otherwise to standard error. A closed
/// output is ignored.
fn respond(write: impl FnOnce(&Peek, &mut Vec<u8>)) {
    let responder = RESPONDER.with_borrow(Responder::clone);
    let out = std::io::stderr();
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let colours = if responder.is_stderr() {
        out.is_terminal() && !set("NO_COLOR")
    } else {
        responder.options().colours
    };
    let style = if colours { Style::Ansi } else { Style::Plain };
    let columns = responder
        .options()
        .columns
        .or_else(|| std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()))
        .unwrap_or(if out.is_terminal() { 80 } else { 120 });
    let mut text = Vec::new();
    write(&Peek::new(duration_for(&responder)).cols(columns).style(style), &mut text);
    if !responder.write(&text) {
        let _ = out.lock().write_all(&text);
    }
}
