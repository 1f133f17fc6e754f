//! Look into this process while it runs: SIGUSR1 shows what all threads do, and where the next second goes.
//!
//! ```
//! stackglass::peek::install()?; // one line in main(); costs nothing until somebody asks
//! # Ok::<(), stackglass::peek::PeekError>(())
//! ```
//!
//! Then `kill -USR1 PID`, or `stackglass peek PID`. On standard error (or where `stackglass peek` runs) appear, at once, `cmd: PROGRAM PID running R of
//! N` and a stack of each thread; then all threads are profiled for [`get_duration`]; then the report by thread and task
//! follows, or whatever [`set_report`] has set. It comes from a thread of its own, so it comes also when the program never yields.
//!
//! - A second signal during a peek shows the stacks again; the profile that goes on is not made longer.
//! - Each peek is answered where it was asked for: a `stackglass peek PID` that comes during another peek is told so and gets
//!   its own afterwards, a signal that comes during the peek of a `stackglass peek` as well. `stackglass peek` may wish another
//!   duration, delay and width; where nobody waits for the answer any more, the peek ends.
//! - During [`profile!`](crate::profile!) a peek shows that second of the running profile, which is not disturbed by it.
//! - A program that handles or ignores SIGUSR1 keeps it: [`install`] is then an error, and a handler that is set
//!   later takes the place of the peek. `stackglass peek PID` looks at such a program from outside.
//! - While `stackglass record` samples the program from inside, the command answers, and this module leaves it to it. Under
//!   `stackglass run` it answers itself, in place of the command, which knows no tasks.
//! - A forked child that has not called exec dies of SIGUSR1, as it would without this.
//! - One thread, whichever the kernel picks, is interrupted by each signal: calls like `epoll_wait` that are never
//!   resumed after a handler return EINTR in it once.

use crate::{Recording, Style, running};
use stackglass_collect::peeks::request;
use stackglass_collect::peeks::responder::{RequestQueue, Responder};
use stackglass_profile::harmless;
use stackglass_report::Peek;
use stackglass_report::peek::{NO_HEAP_SNAPSHOT, is_truthy};
use stackglass_sampler::peek as signal;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{IsTerminal, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Set to 1, t, true, y or yes (any case), a peek takes a heap snapshot as well, once there are any.
const HEAP_VARIABLE: &str = "STACKGLASS_PEEK_HEAP_SNAPSHOT";
/// How long a first stack of each thread is waited for: on a busy machine some wait for a processor.
const FIRST_STACKS: Duration = Duration::from_millis(200);
/// Time between two looks whether they are there.
const A_TICK: Duration = Duration::from_millis(2);
/// Time between two looks whether who asked still waits.
const A_MOMENT: Duration = Duration::from_millis(200);
/// The longest wait for a request before looking again.
const WHILE: Duration = Duration::from_secs(3600);

type Report = Box<dyn FnMut(&Recording) + Send>;

static DURATION: Mutex<Duration> = Mutex::new(Duration::from_secs(1));
static REPORT: Mutex<Option<Report>> = Mutex::new(None);
/// The process that has the answering thread: a forked child has none.
static THREAD_OF: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// For whom the peek is that this thread answers.
    static RESPONDER: RefCell<Responder> = RefCell::default();
}

/// Why there is no peek by signal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeekError {
    /// SIGUSR1 is taken.
    #[error(
        "SIGUSR1 is handled or ignored by the program itself; `stackglass peek PID` looks at it from outside"
    )]
    Owned,
    /// The kernel refused the handler.
    #[error("the system refused the handler of SIGUSR1 (error {0})")]
    Refused(i32),
    /// The thread that answers could not be started.
    #[error("cannot start the thread that answers peeks: {0}")]
    Thread(#[source] std::io::Error),
    /// A profile of no time, or of more than an hour.
    #[error("a peek of {0:?} makes no sense; ask for 1 ms to 1 h")]
    Duration(Duration),
}

/// Makes SIGUSR1 show what this process does. Harmless when repeated.
///
/// # Errors
/// When the program has taken SIGUSR1, or the system refuses handler or thread. The program is as before then.
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

/// Asks for a peek from within, as the signal does.
pub fn request() {
    signal::request();
}

/// How long the profile of a peek takes: one second unless set.
pub fn get_duration() -> Duration {
    *DURATION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets how long the profile of later peeks takes.
///
/// # Errors
/// Less than a millisecond or more than an hour.
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

/// What happens when the profile of a peek is there, instead of [`default_report`]. It is called on a thread of
/// its own, with names. A panic in it is told, and later peeks still work (unless panics abort).
///
/// ```
/// stackglass::peek::set_report(|recording| eprintln!("{} samples", recording.samples.len()));
/// ```
pub fn set_report(report: impl FnMut(&Recording) + Send + 'static) {
    *REPORT.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(report));
}

/// Prints the profile by thread and task, and where the time went in a few lines, to standard error; in a peek that
/// `stackglass peek` asked for, there.
pub fn default_report(recording: &Recording) {
    respond(|peek, text| {
        // Writing to memory does not fail.
        let _ = peek.report(recording, text);
    });
}

/// Requests, and for whom they are.
struct Requests {
    seen: u32,
    queue: RequestQueue,
    waiting: VecDeque<Responder>,
}

impl Requests {
    /// For whom the requests are that have come since the last call.
    fn heard(&mut self) -> Vec<Responder> {
        let now = signal::requests();
        self.queue.receive(now.wrapping_sub(std::mem::replace(&mut self.seen, now)))
    }
}

/// Answers requests for the rest of the process's life.
fn answer(seen: u32) {
    let queue = RequestQueue::of(std::process::id());
    let mut requests = Requests { seen, queue, waiting: VecDeque::new() };
    loop {
        let new = requests.heard();
        requests.waiting.extend(new);
        let Some(responder) = requests.waiting.pop_front() else {
            signal::wait_for(requests.seen, WHILE);
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
            // `stackglass record` has begun to answer since.
            Ok(None) => responder.finish(false),
            Err(error) => {
                say(&format!("no peek: {error}"));
                responder.finish(false);
            }
        }
    }
}

/// One peek, that has begun.
fn peek(responder: &Responder, delay: Duration, requests: &mut Requests) {
    let until = Instant::now() + duration_for(responder);
    if responder.options().delay.is_some_and(|wished| wished != delay) {
        say(&format!("a profile goes on, with a look every {delay:?}: --delay changes nothing"));
    }
    respond(|peek, text| {
        let _ = peek.begin(text);
    });
    show_threads();
    while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        signal::wait_for(requests.seen, if responder.is_stderr() { left } else { left.min(A_MOMENT) });
        for late in requests.heard() {
            if responder.is_stderr() && late.is_stderr() {
                show_threads();
                continue;
            }
            let left = until.saturating_duration_since(Instant::now());
            late.write(request::wait_notice(std::process::id(), left).as_bytes());
            // To standard error one report is enough.
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
    name(&mut recording);
    respond(|peek, text| {
        let _ = peek.end(text);
    });
    report(&recording);
    if is_truthy(std::env::var_os(HEAP_VARIABLE).as_deref()) {
        respond(|_, text| text.extend_from_slice(format!("{NO_HEAP_SNAPSHOT}\n").as_bytes()));
    }
}

/// How long its profile takes.
fn duration_for(responder: &Responder) -> Duration {
    responder.options().duration.unwrap_or_else(get_duration)
}

fn show_threads() {
    let began = Instant::now();
    let (mut recording, activity) = loop {
        std::thread::sleep(A_TICK);
        let recording = running::peek::latest();
        let activity =
            stackglass_collect::peeks::activity::of_process(std::process::id(), stackglass_sampler::is_ours);
        let complete = recording.samples.len() >= activity.len() && !stackglass_sampler::expects_helper();
        if complete || began.elapsed() > FIRST_STACKS {
            break (recording, activity);
        }
    };
    name(&mut recording);
    respond(|peek, text| {
        let _ = peek.threads(&recording, &activity, text);
    });
}

/// Reads the debug information that is needed, and gives its memory back.
fn name(recording: &mut Recording) {
    // On this thread alone: others of ours would show up in a profile of the program.
    let options = stackglass_symbols::Options { threads: Some(1), ..Default::default() };
    stackglass_symbols::symbolize(recording, &options, &mut |_| {});
    stackglass_collect::give_back_memory();
}

fn report(recording: &Recording) {
    // Taken out, so that the function may set another one.
    let own = REPORT.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(mut own) = own else { return default_report(recording) };
    if catch_unwind(AssertUnwindSafe(|| own(recording))).is_err() {
        say("the report function of the peek panicked; later peeks call it again");
    }
    REPORT.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(own);
}

fn say(line: &str) {
    respond(|_, text| text.extend_from_slice(format!("stackglass: {}\n", harmless(line)).as_bytes()));
}

/// Writes in one piece: to whoever asked by `stackglass peek` for the peek that this thread answers, else to standard error.
/// Nothing can be done about one that is closed.
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
