//! Refused perf events, as in containers: nothing starts unless the user asks for ptrace, which works as it says.

use std::process::{Command, Output, Stdio};
use whole_programs::{
    Background, Compare, Folder, Language, Outcome, Record, awaits, host, host_with, repetitions, stackglass,
};

fn refused() -> String {
    host("refused", Language::C).to_str().expect("the path is text").to_owned()
}

fn record(program: impl AsRef<std::ffi::OsStr>) -> Record {
    Record::new(program).before(&[&refused()]).flag("--sampler=ptrace")
}

#[track_caller]
fn says_how(outcome: &Outcome) {
    let lines = outcome
        .stderr
        .lines()
        .filter(|line| line.starts_with("stackglass: sampled by ptrace, as asked. ptrace interrupts"))
        .count();
    assert_eq!(lines, 1, "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("from inside"), "{}", outcome.stderr);
}

#[test]
fn a_static_program_is_seen() {
    let outcome = record(host_with("ends", Language::C, &["-static"])).args(["exit"]).run();
    outcome.program_did("working\n", 3);
    outcome.seen("ends").has_share("work_before_the_end", 0.9, 1.0);
    says_how(&outcome);
}

#[test]
fn children_are_seen() {
    let outcome = record(host("processes", Language::C)).run();
    outcome.program_did("forked 21 cloned 22 vforked 0\n", 0);
    says_how(&outcome);
    let seen = outcome.seen("processes");
    let millis = |function: &str| seen.functions.get(function).copied().unwrap_or(0) / 1_000_000;
    // The time of a process before it is found is missing.
    assert!((300..=440).contains(&millis("parent_work")), "{seen:#?}");
    assert!((200..=330).contains(&millis("forked_work")), "{seen:#?}");
}

/// An exec ends all other threads and waits until their tracer has reaped them.
#[test]
fn a_program_of_many_threads_execs() {
    let visible = Compare::new(host("visible", Language::C)).before(&[&refused()]).flag("--sampler=ptrace");
    let equal = visible.each_line(|line| {
        let differs = ["TracerPid:", "FDSize:"].iter().any(|name| line.starts_with(name));
        // A thread that has ended is listed until its tracer has reaped it.
        (!differs && !line.contains(" threads, ")).then(|| line.to_owned())
    });
    let equal = equal.variable("LD_BIND_NOW", "1").times(20).is_equal();
    assert!(!equal.did.stdout.to_lowercase().contains("stackglass:"), "{}", equal.did.stdout);
}

#[test]
fn programs_behind_a_shell() {
    let outcome = record("sh").args(["-c", "true; sleep 0.2; cat /dev/null; exit 5"]).run();
    outcome.program_did("", 5);
    assert!(outcome.seen("sleep").processes == 1, "{}", outcome.stderr);
    says_how(&outcome);
}

/// An exec holds a lock that PTRACE_SEIZE needs, and waits for threads that only the tracer can reap.
#[test]
fn threads_that_have_just_begun_when_their_program_execs() {
    for _ in 0..repetitions(5) {
        let outcome = record(host("execs", Language::C)).flag("--delay=100us").args(["30"]).run();
        outcome.program_did("last\n", 7);
    }
}

#[test]
fn a_program_that_checks_for_leaks_ends_as_it_does_alone() {
    let program = host_with("ends", Language::C, &["-fsanitize=address"]);
    let outcome = record(&program).args(["exit"]).run();
    outcome.program_did("working\n", 3);
    assert!(outcome.stderr.contains("checks for leaks at its end"), "{}", outcome.stderr);
}

/// The command where perf events are refused.
fn without_perf(folder: &Folder, arguments: &[&str]) -> Output {
    let mut command = Command::new(refused());
    command.arg(stackglass()).args(arguments).current_dir(folder.path()).stdin(Stdio::null());
    command.output().expect("the command can be started")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A program that is ended with the test.
struct Busy(Background);

impl Busy {
    fn start(name: &str, arguments: &[&str]) -> Busy {
        let mut command = Command::new(name);
        let child = Background::start(command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()));
        let is_there = || {
            let name_now = std::fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap_or_default();
            name_now.trim() == name
        };
        while !is_there() {
            std::thread::yield_now();
        }
        Busy(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

#[track_caller]
fn names_the_ways_out(output: &Output) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.starts_with("stackglass: perf events are refused here (a seccomp filter"), "{said}");
    assert_eq!(said.lines().count(), 4, "{said}");
    for way in ["--cap-add PERFMON", "--security-opt seccomp=", "--sampler ptrace: at your risk"] {
        assert!(said.contains(way), "{said}");
    }
}

#[test]
fn without_a_choice_nothing_starts() {
    let folder = Folder::new();
    std::fs::write(folder.path().join("old.glass"), "precious").expect("a temporary file can be made");
    let script = "echo started > started";
    names_the_ways_out(&without_perf(&folder, &["record", "-o", "old.glass", "--", "sh", "-c", script]));
    names_the_ways_out(&without_perf(&folder, &["top", "--json", "--", "sh", "-c", script]));
    let walltime = without_perf(&folder, &["record", "--walltime", "--", "sh", "-c", script]);
    assert_eq!(walltime.status.code(), Some(125), "{walltime:?}");
    for way in ["--sampler ptrace: at your risk", "--sampler preload: threads"] {
        assert!(text(&walltime.stderr).contains(way), "{walltime:?}");
    }
    let busy = Busy::start("sh", &["-c", "while :; do :; done"]);
    names_the_ways_out(&without_perf(&folder, &["record", "--pid", &busy.pid()]));
    names_the_ways_out(&without_perf(&folder, &["top", "--json", &busy.pid()]));
    assert_eq!(std::fs::read_dir(folder.path()).expect("it is there").count(), 1, "only the old recording");
    assert_eq!(std::fs::read(folder.path().join("old.glass")).expect("it is there"), b"precious");
}

/// What copies a running program needs events that stop it in user code.
#[test]
fn without_stops_in_user_code_nothing_starts() {
    let program = awaits().to_str().expect("the path is text").to_owned();
    for (flags, other) in [
        (&["--walltime"][..], "--sampler preload"),
        (&["--no-time", "--allocs", "--heap-at", "peak"], "--heap-at exit"),
    ] {
        let folder = Folder::new();
        let words = [&["record", "-o", "r.glass"], flags, &["--", &program, "bulk", "10"]].concat();
        let output = without_perf(&folder, &words);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{told}");
        assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
        assert!(told.contains("cannot be copied without interrupting") && told.contains(other), "{told}");
        assert!(!told.contains("--sampler ptrace"), "{told}");
    }
}

#[test]
fn a_peek_reads_who_sleeps_and_stops_nobody() {
    let folder = Folder::new();
    let sleeps = Busy::start("sleep", &["60"]);
    let output = without_perf(&folder, &["peek", &sleeps.pid(), "--duration", "100ms"]);
    assert!(text(&output.stdout).contains("asleep in clock_nanosleep"), "{output:?}");
    let busy = Busy::start("sh", &["-c", "while :; do :; done"]);
    let output = without_perf(&folder, &["peek", &busy.pid(), "--duration", "100ms"]);
    assert!(text(&output.stdout).contains("(no stack could be taken)"), "{output:?}");
    assert!(text(&output.stderr).contains("threads that run have no stack"), "{output:?}");
}

/// A process that runs is copied or stopped only if the user accepts that its calls are interrupted.
#[test]
fn copies_interrupt_calls_on_request_alone() {
    let folder = Folder::new();
    let busy = Busy::start("sh", &["-c", "while :; do :; done"]);
    let pid = busy.pid();
    let take = ["heap", "take", &pid, "-o", "h.heapsnapshot"];
    for words in [&take[..], &[&take[..], &["--stop"]].concat(), &["tasks", &pid]] {
        let refused = without_perf(&folder, words);
        let said = text(&refused.stderr);
        assert_eq!((refused.status.code(), said.lines().count()), (Some(125), 1), "{words:?}: {said}");
        assert!(said.contains("without cutting its system calls short"), "{words:?}: {said}");
        assert!(said.contains("a seccomp filter") && said.contains("--cap-add PERFMON"), "{words:?}: {said}");
        assert!(!said.contains("perf_event_paranoid"), "{words:?}: {said}");
        assert!(said.contains("--interrupt-calls and its risk"), "{words:?}: {said}");
        assert!(!folder.path().join("h.heapsnapshot").exists(), "{words:?}");
        let asked = without_perf(&folder, &[words, &["--interrupt-calls"]].concat());
        let said = text(&asked.stderr);
        if words[0] == "tasks" {
            // It has none, which its copy shows.
            assert!(said.contains("has no await stacks"), "{said}");
        } else {
            assert_eq!(asked.status.code(), Some(0), "{words:?}: {said}");
            std::fs::remove_file(folder.path().join("h.heapsnapshot")).expect("the snapshot is there");
        }
        let help = without_perf(&folder, &[words, &["--help"]].concat());
        // The help is wrapped.
        let help = text(&help.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(help.contains("may return early, with less data"), "{words:?}: {help}");
    }
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    assert!(status.contains("State:\tR") && status.contains("TracerPid:\t0\n"), "{status}");
}

/// A process that often sleeps is read without a copy, and cannot be caught when it wakes up.
#[test]
fn what_runs_while_it_is_read_is_refused_for_its_reason() {
    let folder = Folder::new();
    let script = "while :; do sleep 0.001; done";
    let busy = Busy::start("bash", &["-c", script]);
    let pid = busy.pid();
    for _ in 0..repetitions(10) {
        let output = without_perf(&folder, &["heap", "take", &pid, "-o", "h.heapsnapshot"]);
        let said = text(&output.stderr);
        let is_named = said.contains("a seccomp filter") && said.contains("--cap-add PERFMON");
        assert!(output.status.success() || is_named, "{said}");
        assert!(!said.contains("memory is short"), "{said}");
    }
}

#[test]
fn the_doctor_finds_the_filter() {
    let folder = Folder::new();
    let output = without_perf(&folder, &["doctor", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("the output is JSON");
    assert_eq!(found["record_works"], false);
    let verdict = |name: &str| {
        let checks = found["checks"].as_array().expect("a list");
        let check = checks.iter().find(|check| check["check"] == name).expect("the check is made");
        check["verdict"].as_str().expect("a text").to_owned()
    };
    assert_eq!(
        (verdict("seccomp"), verdict("perf events"), verdict("ptrace")),
        ("no".into(), "no".into(), "ok".into())
    );
    let wide = without_perf(&folder, &["doctor", "--cols", "80"]);
    assert!(text(&wide.stdout).lines().all(|line| line.chars().count() <= 80), "{}", text(&wide.stdout));
    let allowed = Command::new(stackglass()).arg("doctor").output().expect("the command can be started");
    assert_eq!(allowed.status.code(), Some(0), "{allowed:?}");
}

/// What ptrace cuts short is counted: writes to a pipe that is read slowly.
#[test]
fn what_ptrace_cuts_short_is_said() {
    let outcome =
        record(host("bulk", Language::C)).flag("--delay=100us").args(["sendfile", "20000", "700"]).run();
    let is_short = !outcome.stdout.contains("in all: 0 short, 0 EINTR");
    // Notes are wrapped.
    let said: Vec<&str> = outcome.stderr.split_whitespace().collect();
    let is_said = said.join(" ").contains("when ptrace stopped their thread");
    assert!(is_said || !is_short, "{}{}", outcome.stdout, outcome.stderr);
}

/// A call that reads what has no end is made again.
#[test]
fn random_bytes_are_all_read() {
    let arguments = ["if=/dev/urandom", "of=/dev/null", "bs=8M", "count=12"];
    let outcome = record("dd").flag("--delay=100us").args(arguments).run();
    assert!(outcome.stderr.contains("12+0 records in"), "{}", outcome.stderr);
}
