//! Calls that move data in steps come back whole, and calls that wait come back with their own result, through every door.
//!
//! The host `bulk` makes sixteen kinds of such calls and counts those that are short or end with EINTR. A stop of one of its
//! threads inside a call shows there, whatever requested the stop.

use std::fs::File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use whole_programs::{Compare, Folder, Language, Outcome, Record, awaits, host, stackglass};

/// Milliseconds for each kind of call.
const EACH: &str = "250";

fn program() -> std::path::PathBuf {
    host("bulk", Language::C)
}

/// Records the program with these flags.
fn recorded(flags: &[&str]) {
    let mut compare = Compare::of(program()).args(["all", "0", EACH]).each_line(|line| {
        // The numbers of calls differ from run to run.
        (!line.ends_with(" calls")).then(|| line.to_owned())
    });
    for flag in flags {
        compare = compare.flag(flag);
    }
    let did = compare.is_equal().did;
    assert!(did.stdout.ends_with("in all: 0 short, 0 EINTR, 0 other errors\n"), "{}", did.stdout);
}

/// Runs a command again and again while the program runs; `PID` stands for the program. Returns how often it succeeded.
fn attached(words: &[&str]) -> usize {
    let folder = Folder::new();
    let path = |name: &str| folder.path().join(name);
    let file = |name: &str| File::create(path(name)).expect("a temporary file can be made");
    let mut program = Command::new(program());
    program.args(["all", "0", EACH]).stdin(Stdio::null()).stdout(file("out")).stderr(file("errors"));
    let mut program = program.spawn().expect("the program can be started");
    let pid = program.id().to_string();
    let begin = Instant::now();
    let mut succeeded = 0;
    while program.try_wait().expect("a child can be waited for").is_none() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{words:?}: the program hangs");
        let mut look = Command::new(stackglass());
        look.args(words.iter().map(|word| if *word == "PID" { pid.as_str() } else { word }));
        look.current_dir(folder.path()).stdin(Stdio::null()).stdout(file("said")).stderr(file("told"));
        succeeded += usize::from(look.status().expect("the command can be started").success());
    }
    let status = program.wait().expect("a child can be waited for");
    let read = |name: &str| std::fs::read_to_string(path(name)).unwrap_or_default();
    let printed = read("out");
    assert!(
        status.success() && printed.ends_with("in all: 0 short, 0 EINTR, 0 other errors\n"),
        "{words:?}, {succeeded} times: {status}\n{printed}{}\n{}",
        read("errors"),
        read("told")
    );
    succeeded
}

#[test]
fn recorded_by_the_kernel() {
    recorded(&[]);
}

#[test]
fn recorded_with_allocations() {
    recorded(&["--allocs"]);
}

#[test]
fn recorded_with_a_heap_snapshot_at_the_end() {
    recorded(&["--allocs", "--heap-at", "exit"]);
}

/// Records a program with async tasks whose threads make such calls for some milliseconds. Returns what it did.
fn recorded_with_tasks(flags: &[&str], milliseconds: &str) -> Outcome {
    let mut record = Record::of(awaits()).args(["bulk", milliseconds]);
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
fn looked_at_by_wall_time() {
    // A look sees three threads and a task. The first one reads types, which takes seconds on a busy machine.
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

#[test]
fn attached_to() {
    let times = attached(&[
        "record",
        "--quiet",
        "--delay",
        "100us",
        "--duration",
        "1s",
        "-o",
        "r.glass",
        "--pid",
        "PID",
    ]);
    assert!(times > 0, "nothing was recorded");
}

#[test]
fn peeked_at() {
    assert!(attached(&["peek", "PID", "--duration", "50ms"]) > 0, "no peek succeeded");
}

#[test]
fn its_heap_is_copied_again_and_again() {
    assert!(attached(&["heap", "take", "PID", "-o", "h.heapsnapshot"]) > 0, "no snapshot was taken");
}

#[test]
fn its_tasks_are_asked_for_again_and_again() {
    // It has none; whether that is a failure is not asked here.
    attached(&["tasks", "PID"]);
}
