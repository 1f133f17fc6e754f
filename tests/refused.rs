//! Refused perf events, as in containers: programs are sampled by ptrace, without a library in them.

use whole_programs::{Compare, Language, Outcome, Record, host, host_with};

fn refused() -> String {
    host("refused", Language::C).to_str().expect("the path is text").to_owned()
}

fn record(program: impl AsRef<std::ffi::OsStr>) -> Record {
    Record::of(program).before(&[&refused()])
}

#[track_caller]
fn says_how(outcome: &Outcome) {
    let lines = outcome
        .stderr
        .lines()
        .filter(|line| line.starts_with("stackglass: perf events are refused here"))
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
    let visible = Compare::of(host("visible", Language::C)).before(&[&refused()]);
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
    for _ in 0..5 {
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
