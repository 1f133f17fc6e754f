//! Look into this process while it runs: on SIGUSR1, it shows what all threads do, and profiles the next second.
//!
//! ```
//! stackglass::peek::install()?; // one line in main(); costs nothing until somebody asks
//! # Ok::<(), stackglass::peek::PeekError>(())
//! ```
//!
//! Then use `kill -USR1 PID`, or `stackglass peek PID`. The result goes to standard error, or to the terminal of
//! `stackglass peek`. First comes the line `cmd: PROGRAM PID running R of N`, with a stack of each thread. Then all
//! threads are profiled for [`get_duration`]. At the end comes the report by thread and task, or the result of
//! [`set_report`]. A thread of its own does all this, so it works even if the program never yields.
//!
//! - A second signal during a peek shows the stacks again; it does not prolong the profile.
//! - Each request gets its own peek, and its own response. A request during a peek is told to wait, and its peek
//!   follows. `stackglass peek` can set another duration, delay and width. If it ends early, so does its peek.
//! - During [`profile!`](crate::profile!), a peek shows that second of the running profile, which is not affected.
//! - A program that handles or ignores SIGUSR1 keeps it: [`install`] then returns an error. A handler that is
//!   installed later replaces the peek. `stackglass peek PID` samples such a program from outside.
//! - While `stackglass record` samples the program from inside, the command answers instead of this module. Under
//!   `stackglass run`, this module answers, because it knows the tasks.
//! - A forked child that has not called exec is killed by SIGUSR1, as without this module.
//! - Each signal interrupts one thread, which the kernel chooses. Calls like `epoll_wait`, which are never restarted
//!   after a handler, return EINTR in it once.

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

/// Set to 1, t, true, y or yes (any case): a peek takes a heap snapshot as well, once they are supported.
const HEAP_VARIABLE: &str = "STACKGLASS_PEEK_HEAP_SNAPSHOT";
/// Longest wait for a first stack of each thread: on a busy machine, some threads wait for a processor.
const FIRST_STACKS: Duration = Duration::from_millis(200);
/// Time between two checks for these stacks.
const CHECK_STACKS: Duration = Duration::from_millis(2);
/// Time between two checks whether the client still waits.
const CHECK_CLIENT: Duration = Duration::from_millis(200);
/// Longest wait for a request before checking again.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

type Report = Box<dyn FnMut(&Recording) + Send>;

static DURATION: Mutex<Duration> = Mutex::new(Duration::from_secs(1));
static REPORT: Mutex<Option<Report>> = Mutex::new(None);
/// Id of the process that has the responding thread: a forked child has none.
static THREAD_OF: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The responder of the current peek, on the responding thread.
    static RESPONDER: RefCell<Responder> = RefCell::default();
}

/// Why there are no peeks by signal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeekError {
    /// The program handles or ignores SIGUSR1.
    #[error(
        "SIGUSR1 is handled or ignored by the program itself; `stackglass peek PID` looks at it from outside"
    )]
    Owned,
    /// The kernel refused the handler.
    #[error("the system refused the handler of SIGUSR1 (error {0})")]
    Refused(i32),
    /// The responding thread could not be started.
    #[error("cannot start the thread that answers peeks: {0}")]
    Thread(#[source] std::io::Error),
    /// A duration below 1 ms or above an hour.
    #[error("a peek of {0:?} is not possible; use 1 ms to 1 h")]
    Duration(Duration),
}

/// Makes SIGUSR1 show what this process does. It can be called repeatedly.
///
/// # Errors If the program handles or ignores SIGUSR1, or the system refuses the handler or the thread. The program
/// is then unchanged.
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

/// Requests a peek from within the program, as the signal does.
pub fn request() {
    signal::request();
}

/// Duration of a peek's profile: one second unless set.
pub fn get_duration() -> Duration {
    *DURATION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets the duration of the profiles of later peeks.
///
/// # Errors If it is less than a millisecond or more than an hour.
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

/// Replaces [`default_report`], which is called at the end of a peek with the symbolized profile. The function is
/// called on a thread of its own. If it panics, a line says so, and later peeks still work (unless panics abort).
///
/// ```
/// stackglass::peek::set_report(|recording| eprintln!("{} samples", recording.samples.len()));
/// ```
pub fn set_report(report: impl FnMut(&Recording) + Send + 'static) {
    *REPORT.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(report));
}

/// Prints the profile by thread and task, and a summary of where the time went. The output goes to standard error, or
/// to `stackglass peek` if that requested the peek.
pub fn default_report(recording: &Recording) {
    respond(|peek, text| {
        // Writing to memory does not fail.
        let _ = peek.report(recording, text);
    });
}

/// Requests to this process, and their responders.
struct Requests {
    seen: u32,
    queue: RequestQueue,
    waiting: VecDeque<Responder>,
}

impl Requests {
    /// Responders of the requests since the last call.
    fn new_responders(&mut self) -> Vec<Responder> {
        let now = signal::requests();
        self.queue.receive(now.wrapping_sub(std::mem::replace(&mut self.seen, now)))
    }
}

/// Answers requests for the rest of the process's life.
fn answer(seen: u32) {
    let queue = RequestQueue::of(std::process::id());
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
            // `stackglass record` has begun to answer meanwhile.
            Ok(None) => responder.finish(false),
            Err(error) => {
                print_line(&format!("no peek: {error}"));
                responder.finish(false);
            }
        }
    }
}

/// Runs a peek that has begun.
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
        signal::wait_for(requests.seen, if responder.is_stderr() { left } else { left.min(CHECK_CLIENT) });
        for late in requests.new_responders() {
            if responder.is_stderr() && late.is_stderr() {
                show_threads();
                continue;
            }
            let left = until.saturating_duration_since(Instant::now());
            late.write(request::wait_notice(std::process::id(), left).as_bytes());
            // One report for standard error is enough.
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
        respond(|_, text| text.extend_from_slice(format!("{NO_HEAP_SNAPSHOT}\n").as_bytes()));
    }
}

/// Duration of its profile.
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

/// Symbolizes the recording, and returns the memory that this needed.
fn symbolize(recording: &mut Recording) {
    // On this thread alone: further threads would appear in a profile of the program.
    let options = stackglass_symbols::Options { threads: Some(1), ..Default::default() };
    stackglass_symbols::symbolize(recording, &options, &mut |_| {});
    stackglass_collect::give_back_memory();
}

fn report(recording: &Recording) {
    // Taken out, so that the function may set another one.
    let own = REPORT.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(mut own) = own else { return default_report(recording) };
    if catch_unwind(AssertUnwindSafe(|| own(recording))).is_err() {
        print_line("the report function of the peek panicked; later peeks call it again");
    }
    REPORT.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(own);
}

fn print_line(line: &str) {
    respond(|_, text| text.extend_from_slice(format!("stackglass: {}\n", harmless(line)).as_bytes()));
}

/// Writes in one piece to the responder of the current peek, or to standard error. A closed one is ignored.
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
