//! Calls that move data in steps come back whole, and calls that wait come back with their own result, through every door.
//!
//! The host `bulk` makes sixteen kinds of such calls and counts those that are short or end with EINTR. A stop of one of its
//! threads inside a call shows there, whatever requested the stop.
//!
//! `BULK_CALLS` in the environment is the number of calls of each kind, instead of as many as fit into an eighth of a second.
//! `BULK_BESIDE` is a number of busy loops that run beside each door.
#![allow(unsafe_code, reason = "calls the C library")]

use ::stackglass as stackglass_crate;
use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use whole_programs::{BusyLoops, Folder, Language, Outcome, Record, awaits, host, host_with, stackglass};

/// Milliseconds for each kind of call, if there is no number of calls.
const EACH: &str = "125";
/// A program with that number of calls takes longer only if it hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// The same for a number of calls that was asked for.
const LONG_PATIENCE: Duration = Duration::from_secs(3600);

/// How a command comes to the program.
enum Door {
    /// It starts the program, with these words before `--`.
    Starts(&'static [&'static str]),
    /// The same; its threads are sampled as where perf events are refused.
    StartsAtTicks(&'static [&'static str]),
    /// It is run again and again while the program runs; `PID` stands for the program.
    Attaches(&'static [&'static str]),
    /// The same; the program was started by `stackglass run`.
    AttachesPrepared(&'static [&'static str]),
    /// It starts the program, and gets SIGUSR1 again and again.
    StartsSignalled(&'static [&'static str]),
}

use Door::{Attaches, AttachesPrepared, Starts, StartsAtTicks, StartsSignalled};

const KERNEL: Door = Starts(&["record", "--quiet", "--delay", "100us", "-o", "r.glass"]);
const THREADS: Door = Starts(&["record", "--quiet", "--delay", "100us", "--walltime", "-o", "r.glass"]);
/// From inside: timers interrupt no call.
const INSIDE: Door = Starts(WORDS_INSIDE);
const INSIDE_AT_TICKS: Door = StartsAtTicks(WORDS_INSIDE);
const WORDS_INSIDE: &[&str] =
    &["record", "--quiet", "--delay", "100us", "-o", "r.glass", "--sampler", "preload"];
const ALLOCATIONS: Door = Starts(&["record", "--quiet", "--delay", "100us", "-o", "r.glass", "--allocs"]);
const AT_EXIT: Door =
    Starts(&["record", "--quiet", "--delay", "100us", "-o", "r.glass", "--allocs", "--heap-at", "exit"]);
const AT_SIGNAL: Door =
    StartsSignalled(&["record", "--delay", "100us", "-o", "r.glass", "--allocs", "--heap-at", "USR1"]);
const ATTACHED: Door =
    Attaches(&["record", "--quiet", "--delay", "100us", "--duration", "1s", "-o", "r.glass", "--pid", "PID"]);
const PEEK: Door = Attaches(&["peek", "PID", "--delay", "100us", "--duration", "50ms"]);
const PEEK_PREPARED: Door = AttachesPrepared(&["peek", "PID", "--delay", "100us", "--duration", "50ms"]);
const PEEK_BY_SIGNAL: Door = StartsSignalled(&["run", "--delay", "100us", "--peek-duration", "50ms"]);
const TOP: Door = Attaches(&["top", "--json", "--delay", "100us", "PID"]);
const ALLOCS: Door = AttachesPrepared(&["allocs", "--pid", "PID", "--duration", "300ms"]);
const HEAP: Door = Attaches(&["heap", "take", "PID", "-o", "h.heapsnapshot"]);
const HEAP_STOPPED: Door = Attaches(&["heap", "take", "--stop", "PID", "-o", "h.heapsnapshot"]);
/// It has no tasks; whether that is a failure is not asked here.
const TASKS: Door = Attaches(&["tasks", "PID"]);

/// What the program counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Counts {
    calls: u64,
    short: u64,
    interrupted: u64,
    failed: u64,
}

/// A run of the program behind a door.
struct Ran {
    counts: Counts,
    /// How often the command succeeded, or did what the signal asks for.
    times: usize,
    /// All that program and command said.
    said: String,
}

/// How many calls the program makes, and beside how many busy loops.
struct Amount {
    calls: Option<String>,
    beside: usize,
}

impl Amount {
    fn from_environment() -> Amount {
        let beside = std::env::var("BULK_BESIDE").map_or(0, |number| number.parse().expect("it is a number"));
        Amount { calls: std::env::var("BULK_CALLS").ok(), beside }
    }

    fn arguments(&self) -> [&str; 3] {
        match &self.calls {
            Some(calls) => ["all", calls, "0"],
            None => ["all", "0", EACH],
        }
    }

    fn patience(&self) -> Duration {
        if self.calls.is_some() { LONG_PATIENCE } else { PATIENCE }
    }
}

impl Door {
    /// Runs the program behind this door, to its end.
    fn run(&self, amount: &Amount) -> Ran {
        let _beside = BusyLoops::start(amount.beside);
        let folder = Folder::new();
        let file = |name: &str| {
            let path = folder.path().join(name);
            File::create(path).expect("a temporary file can be made")
        };
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
        let (Starts(words)
        | StartsAtTicks(words)
        | Attaches(words)
        | AttachesPrepared(words)
        | StartsSignalled(words)) = self;
        let bulk = host("bulk", Language::C);
        let mut command = match self {
            Attaches(_) => Command::new(&bulk),
            AttachesPrepared(_) => {
                let mut command = Command::new(stackglass());
                command.args(["run", "--"]).arg(&bulk);
                command
            }
            Starts(_) | StartsAtTicks(_) | StartsSignalled(_) => {
                let mut command = Command::new(stackglass());
                command.args(*words).arg("--").arg(&bulk);
                command
            }
        };
        if matches!(self, StartsAtTicks(_)) {
            command.env("STACKGLASS_TEST_TIMERS", "rare");
        }
        command.args(amount.arguments()).current_dir(folder.path()).stdin(Stdio::null());
        command.stdout(file("out")).stderr(file("errors"));
        let mut started = command.spawn().expect("the program can be started");
        let begin = Instant::now();
        let mut times = 0;
        let status = loop {
            if let Some(status) = started.try_wait().expect("a child can be waited for") {
                break status;
            }
            assert!(begin.elapsed() < amount.patience(), "{words:?}: the program hangs: {}", read("errors"));
            match self {
                Starts(_) | StartsAtTicks(_) => std::thread::sleep(Duration::from_millis(5)),
                StartsSignalled(_) => {
                    // Before, the command does not expect it.
                    if program_of(&started).is_some() {
                        // SAFETY: two numbers; the child was not reaped, so its id is valid.
                        unsafe { libc::kill(started.id() as i32, libc::SIGUSR1) };
                    }
                    std::thread::sleep(Duration::from_millis(20));
                }
                Attaches(_) | AttachesPrepared(_) => {
                    let Some(pid) = program_of(&started) else { continue };
                    let mut look = Command::new(stackglass());
                    look.args(words.iter().map(|word| if *word == "PID" { &*pid } else { word }));
                    look.current_dir(folder.path()).stdin(Stdio::null());
                    look.stdout(file("said")).stderr(file("told"));
                    times += usize::from(look.status().expect("the command can be started").success());
                }
            }
        };
        if matches!(self, StartsSignalled(_)) {
            // The last one may be complete only when the program waits for it at its end.
            times = read("errors").matches("heap snapshot of").count();
        }
        let said = format!("{status}\n{}{}\n{}", read("out"), read("errors"), read("told"));
        assert!(status.success() || status.code() == Some(1), "{words:?}, {times} times: {said}");
        Ran { counts: Counts::from_output(&read("out"), &read("errors")), times, said }
    }

    /// Runs it; no call may be short, and none interrupted.
    #[track_caller]
    fn is_harmless(&self) -> Ran {
        let ran = self.run(&Amount::from_environment());
        let Counts { calls, .. } = ran.counts;
        let whole = Counts { calls, ..Counts::default() };
        assert!(calls > 0 && ran.counts == whole, "{:?}, {} times: {}", ran.counts, ran.times, ran.said);
        println!("{calls} calls, {} times", ran.times);
        ran
    }
}

/// The id of the program that a child is, or has started.
fn program_of(started: &Child) -> Option<String> {
    let name = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/comm")).ok();
    let own = started.id().to_string();
    let children = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
    let mut all = children.split_ascii_whitespace().map(str::to_owned).chain([own]);
    all.find(|pid| name(pid).is_some_and(|name| name.trim() == "bulk"))
}

impl Counts {
    fn from_output(printed: &str, errors: &str) -> Counts {
        let calls = errors.lines().filter_map(|line| line.strip_suffix(" calls"));
        let calls = calls.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum();
        let sum = printed.lines().find_map(|line| line.strip_prefix("in all: ")).expect("it has ended");
        let numbers: Vec<u64> = sum.split(' ').filter_map(|word| word.parse().ok()).collect();
        Counts { calls, short: numbers[0], interrupted: numbers[1], failed: numbers[2] }
    }
}

#[test]
fn recorded_by_the_kernel() {
    KERNEL.is_harmless();
}

#[test]
fn recorded_by_wall_time() {
    THREADS.is_harmless();
}

#[test]
fn recorded_with_allocations() {
    ALLOCATIONS.is_harmless();
}

#[test]
fn recorded_from_inside() {
    INSIDE.is_harmless();
}

#[test]
fn recorded_from_inside_without_perf_events() {
    let ran = INSIDE_AT_TICKS.is_harmless();
    assert!(!ran.said.contains("was interrupted by signals"), "{}", ran.said);
}

/// The same calls in a program that links the crate, and profiles itself: this one.
#[test]
fn profiled_by_themselves() {
    let library = host_with("bulk", Language::C, &["-shared", "-fPIC", "-Dmain=bulk_main"]);
    let words = [c"bulk", c"all", c"0", c"125"];
    assert_eq!(words[3].to_str(), Ok(EACH));
    let mut arguments = words.map(|word| word.as_ptr().cast_mut()).to_vec();
    arguments.push(std::ptr::null_mut());
    let path =
        std::ffi::CString::new(library.to_str().expect("the path is text")).expect("a path has no zero byte");
    // SAFETY: the library has no constructors. Its function has the type of `main`, reads its arguments, and does not change them.
    let main: extern "C" fn(i32, *mut *mut std::ffi::c_char) -> i32 = unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        assert!(!library.is_null(), "{path:?} cannot be opened");
        let main = libc::dlsym(library, c"bulk_main".as_ptr());
        assert!(!main.is_null(), "the library has a main function");
        std::mem::transmute(main)
    };
    stackglass_crate::init(None, Duration::from_micros(100)).expect("a delay that is allowed");
    let status = stackglass_crate::profile!(main(4, arguments.as_mut_ptr()));
    assert_eq!(status, 0, "some calls came back short, see above");
}

#[test]
fn recorded_with_a_heap_snapshot_at_the_end() {
    let ran = AT_EXIT.is_harmless();
    assert!(!ran.said.contains("no heap snapshot"), "{}", ran.said);
}

#[test]
fn recorded_with_a_heap_snapshot_at_each_signal() {
    assert!(AT_SIGNAL.is_harmless().times > 0, "no snapshot was taken");
}

#[test]
fn attached_to() {
    assert!(ATTACHED.is_harmless().times > 0, "nothing was recorded");
}

#[test]
fn peeked_at() {
    assert!(PEEK.is_harmless().times > 0, "no peek succeeded");
}

#[test]
fn watched_live() {
    assert!(TOP.is_harmless().times > 0, "it was not watched");
}

#[test]
fn its_allocations_are_recorded_now_and_then() {
    assert!(ALLOCS.is_harmless().times > 0, "no allocation was recorded");
}

#[test]
fn its_heap_is_copied_again_and_again() {
    assert!(HEAP.is_harmless().times > 0, "no snapshot was taken");
}

#[test]
fn its_heap_is_read_while_it_is_stopped() {
    assert!(HEAP_STOPPED.is_harmless().times > 0, "no snapshot was taken");
}

#[test]
fn its_tasks_are_asked_for_again_and_again() {
    TASKS.is_harmless();
}

/// All doors, one after the other, quiet and beside four busy loops, with a table at the end.
#[test]
#[ignore = "long: a hundred thousand calls behind each door, twice"]
fn a_hundred_thousand_calls() {
    const CALLS: &str = "8400";
    let doors = [
        ("record", &KERNEL),
        ("record --walltime", &THREADS),
        ("--sampler preload", &INSIDE),
        ("the same at ticks", &INSIDE_AT_TICKS),
        ("record --allocs", &ALLOCATIONS),
        ("--heap-at exit", &AT_EXIT),
        ("--heap-at USR1", &AT_SIGNAL),
        ("record --pid", &ATTACHED),
        ("peek", &PEEK),
        ("peek at a program under run", &PEEK_PREPARED),
        ("SIGUSR1 to run", &PEEK_BY_SIGNAL),
        ("top", &TOP),
        ("allocs --pid", &ALLOCS),
        ("heap take", &HEAP),
        ("heap take --stop", &HEAP_STOPPED),
        ("tasks", &TASKS),
    ];
    let mut harmed = Vec::new();
    for beside in [0, 4] {
        for (name, door) in doors {
            let ran = door.run(&Amount { calls: Some(CALLS.to_owned()), beside });
            let Counts { calls, short, interrupted, failed } = ran.counts;
            println!(
                "{name:18} {beside} beside {:5} times {calls:7} calls {short:4} short {interrupted:4} EINTR {failed:4} other",
                ran.times
            );
            assert!(calls > 100_000, "{}", ran.said);
            let has_come = ran.times > 0 || name == "tasks" || matches!(door, Starts(_) | StartsAtTicks(_));
            assert!(has_come, "{name}: {}", ran.said);
            if short + interrupted + failed > 0 {
                harmed.push((name, beside, ran.said));
            }
        }
    }
    assert!(harmed.is_empty(), "{harmed:#?}");
}

/// Records a program with async tasks whose threads make such calls for some milliseconds. Returns what it did.
fn recorded_with_tasks(flags: &[&str], milliseconds: &str) -> Outcome {
    let mut record = Record::new(awaits()).args(["bulk", milliseconds]);
    for flag in flags {
        record = record.flag(flag);
    }
    let outcome = record.run();
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    let (calls, rest) = outcome.stdout.split_once(" calls\n").expect("the program says what it did");
    assert_eq!(rest, "0 short, 0 failed\n", "of {calls}: {}", outcome.stderr);
    assert!(calls.parse::<u32>().is_ok_and(|calls| calls > 20), "{calls}");
    outcome
}

#[test]
fn peeks_at_a_program_under_run() {
    assert!(PEEK_PREPARED.is_harmless().times > 0);
    let ran = PEEK_BY_SIGNAL.is_harmless();
    assert!(ran.said.contains("Total snapshots: "), "{}", ran.said);
}

#[test]
fn looked_at_by_wall_time() {
    // A task snapshot has three threads and a task. The first one reads types, which takes seconds on a busy machine.
    let samples = |outcome: &Outcome| {
        outcome.recording().samples.iter().map(|sample| u64::from(sample.hits)).sum::<u64>()
    };
    let record = |milliseconds| recorded_with_tasks(&["--walltime", "--delay", "10ms"], milliseconds);
    let mut outcome = record("3000");
    if samples(&outcome) < 12 {
        outcome = record("25000");
    }
    assert!(samples(&outcome) >= 12, "{}", outcome.stderr);
}

#[test]
fn copied_at_each_peak() {
    let outcome = recorded_with_tasks(&["--allocs", "--heap-at", "peak"], "2000");
    assert!(outcome.says("% of the peak of live bytes"), "{}", outcome.stderr);
}
