//! A program whose tasks wait at places that are known beforehand.
//!
//! `awaits shapes` starts a task of each shape and prints a line for each: its name, its id and its await stack. `awaits many N`
//! starts many, `awaits scattered N K` with K KiB after each, `awaits busy N` tasks that never rest, `awaits churn` tasks that end
//! at once, `awaits deadlock` tasks that wait for each other, `awaits cycles` more of them, `awaits branches` those with several
//! branches, `awaits leaves` tasks that wait for tasks, `awaits ends` tasks that wait for what others have, `awaits thread-ends`
//! functions on threads that do, `awaits selects` tasks that wait in `select!`, `awaits holds` tasks that hold locks in many ways,
//! `awaits polled` tasks that are polled again and again or not at all, `awaits services` requests to
//! stacks of services, `awaits hang` a server in which all requests wait for one, `awaits bare` a task of a library without
//! debug information, `awaits block KIND` tasks whose polls last. The last line is
//! `READY`.
//!
//! With the feature `wrapped`, there are only `shapes`, `many`, `bare`, `deadlock` and those that end by themselves: this program
//! takes long to compile. `awaits wrapped` then starts the tasks of all shapes with names, by the crate's own wrapper,
//! `awaits wrapped-many N` many of them, `awaits executors` tasks of other executors. `awaits own-dump shapes`,
//! `wrapped` or `deadlock` prints what the program reads of its own tasks, `awaits own-walltime` its own profile.
//!
//! `awaits bulk MS` makes calls that move data in steps for MS milliseconds. `awaits waits N` and `awaits timers N` end after N seconds, `awaits work N M` after M repetitions of some work.
//!
//! A stack is written as names of lines, outermost first, with `>` between them: the comment `// @name` marks a line. Branches
//! are in parentheses. `!Type` is a future that is no coroutine, `!*` any such future.

#[cfg(not(feature = "wrapped"))]
mod blockers;
#[cfg(not(feature = "wrapped"))]
mod branches;
#[cfg(not(feature = "wrapped"))]
mod bulk;
#[cfg(not(feature = "wrapped"))]
mod cycles;
mod deadlocks;
#[cfg(not(feature = "wrapped"))]
mod ends;
#[cfg(feature = "wrapped")]
mod executors;
#[cfg(not(feature = "wrapped"))]
mod hang;
#[cfg(not(feature = "wrapped"))]
mod holds;
#[cfg(not(feature = "wrapped"))]
mod leaves;
#[cfg(not(feature = "wrapped"))]
mod never_rest;
#[cfg(feature = "wrapped")]
mod own;
#[cfg(not(feature = "wrapped"))]
mod polled;
#[cfg(not(feature = "wrapped"))]
mod scattered;
#[cfg(not(feature = "wrapped"))]
mod selects;
#[cfg(not(feature = "wrapped"))]
mod services;
mod shapes;
mod waits;

#[cfg(feature = "wrapped")]
use stackglass::task::TaskExt;
use std::future::Future;
use std::io::Write;
#[cfg(feature = "wrapped")]
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Longer than any test.
pub const HOUR: Duration = Duration::from_secs(3600);

/// Whether tasks get names, by the crate's own wrapper.
#[cfg(feature = "wrapped")]
static WRAPS: AtomicBool = AtomicBool::new(false);

/// Starts a task, and prints what is known of it.
#[track_caller]
pub fn start<F>(name: &str, stack: &str, future: F)
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    #[cfg(feature = "wrapped")]
    let task = match WRAPS.load(Ordering::Relaxed) {
        true => tokio::spawn(future.task(name)),
        false => tokio::spawn(future),
    };
    #[cfg(not(feature = "wrapped"))]
    let task = tokio::spawn(future);
    println!("{name} {} {stack}", task.id());
}

/// Says that all tasks are started.
pub fn ready() {
    println!("READY");
    let _ = std::io::stdout().flush();
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse().ok()).unwrap_or(1);
    match words.first() {
        Some(&"local") => return shapes::local(),
        #[cfg(not(feature = "wrapped"))]
        Some(&"block") => return blockers::run(words[1]),
        #[cfg(feature = "wrapped")]
        Some(&"executors") => return executors::start_tasks(),
        #[cfg(feature = "wrapped")]
        Some(&("wrapped" | "wrapped-many")) => {
            WRAPS.store(true, Ordering::Relaxed);
            stackglass::peek::install().expect("SIGUSR1 is free");
        }
        #[cfg(feature = "wrapped")]
        Some(&"own-walltime") => return own::print_walltime(),
        #[cfg(feature = "wrapped")]
        Some(&"own-dump") => {
            WRAPS.store(words.get(1) == Some(&"wrapped"), Ordering::Relaxed);
        }
        _ => {}
    }
    let mut builder = match words.first() {
        Some(&"current-thread") => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder.worker_threads(2).enable_all().build().expect("a runtime can be made");
    runtime.block_on(async {
        match words[..] {
            ["many" | "wrapped-many", ..] => shapes::many(number(1)),
            #[cfg(not(feature = "wrapped"))]
            ["scattered", ..] => scattered::start_tasks(number(1), number(2)),
            #[cfg(not(feature = "wrapped"))]
            ["busy", ..] => never_rest::start_tasks(number(1)),
            #[cfg(not(feature = "wrapped"))]
            ["churn"] => never_rest::start_and_end(),
            ["deadlock"] | ["own-dump", "deadlock"] => deadlocks::start_tasks().await,
            #[cfg(not(feature = "wrapped"))]
            ["cycles"] => cycles::start_tasks().await,
            #[cfg(not(feature = "wrapped"))]
            ["ends"] => ends::start_tasks().await,
            #[cfg(not(feature = "wrapped"))]
            ["thread-ends"] => ends::start_functions().await,
            #[cfg(not(feature = "wrapped"))]
            ["leaves"] => leaves::start_tasks().await,
            ["bare"] => shapes::with_a_bare_one(),
            #[cfg(not(feature = "wrapped"))]
            ["selects"] => selects::start_tasks().await,
            #[cfg(not(feature = "wrapped"))]
            ["hang"] => hang::serve().await,
            #[cfg(not(feature = "wrapped"))]
            ["services"] => services::start_tasks().await,
            #[cfg(not(feature = "wrapped"))]
            ["polled"] => polled::start_tasks(),
            #[cfg(not(feature = "wrapped"))]
            ["branches"] => branches::start_tasks().await,
            #[cfg(not(feature = "wrapped"))]
            ["holds"] => holds::start_tasks().await,
            ["work", ..] => {
                shapes::many(number(1));
                ready();
                return waits::work(number(2)).await;
            }
            #[cfg(not(feature = "wrapped"))]
            ["bulk", ..] => return bulk::run(Duration::from_millis(number(1))).await,
            ["crowd", ..] => return waits::crowd(number(1)).await,
            ["timers", ..] => return waits::timers(number(1)).await,
            ["waits", ..] => return waits::run(number(1)).await,
            _ => shapes::all().await,
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        #[cfg(feature = "wrapped")]
        if words.first() == Some(&"own-dump") {
            let thread = std::thread::spawn(own::print_dump);
            tokio::task::spawn_blocking(|| thread.join()).await.expect("it ends").expect("it does not panic");
        }
        ready();
        tokio::time::sleep(HOUR).await; // @block_on
    });
}
