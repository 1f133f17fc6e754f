//! Sleeping threads are not woken, their calls are not interrupted, and their stacks are right.

use crate::launcher::*;
use stackglass_wire::Counter;

/// The outermost function of each kind of sleeping thread.
const KINDS: [&str; 8] =
    ["poll", "epoll", "nanosleep", "socket", "select", "condition", "semaphore", "usleep"];

fn check(threads: usize, seconds: &str) {
    let program = compile("sleepers", &[]);
    let session = Session::new();
    let run = session.run(session.command(&program).args([&threads.to_string(), seconds]));
    assert!(run.status.success(), "{}", run.stderr);
    let process = &run.processes[0];
    eprintln!("{:#?}", process.counters);
    eprintln!("interrupted: {}", run.stdout);
    let seen = process.threads(&Symbols::from_program(&program));
    let (mut right, mut all) = (0, 0);
    for kind in KINDS {
        for thread in seen.values().filter(|t| t.name == kind) {
            right += thread.time_in(&format!("run;in_{kind}"));
            all += thread.awake + thread.asleep;
        }
    }
    let share = right as f64 / all as f64;
    eprintln!("right: {share}");
    assert!(share >= 0.99, "share of right stacks {share}");
    let interrupted: Vec<u32> = run.stdout.split_whitespace().map(|w| w.parse().unwrap()).collect();
    assert_eq!(interrupted, [0; 8], "{KINDS:?}");
}

#[test]
fn a_few_sleepers() {
    check(16, "1.5");
}

#[test]
fn a_hundred_sleepers() {
    check(104, "2");
}

#[test]
fn a_signal_that_meets_a_thread_going_to_sleep_leaves_no_trace() {
    let program = compile("sleepers", &[]);
    let session = Session::new();
    session.page().delay_ns.store(100_000, std::sync::atomic::Ordering::Relaxed);
    // Timers meet no thread that goes to sleep.
    let run = session
        .run(session.command(&program).args(["2", "3", "racing"]).env("STACKGLASS_TEST_TIMERS", "none"));
    assert!(run.status.success(), "{}", run.stderr);
    let put_back = run.processes[0].counter(Counter::CallsPutBack);
    assert!(put_back > 0, "not one of {} signals met a thread going to sleep", {
        run.processes[0].counter(Counter::SignalsRunning)
    });
    let interrupted: Vec<u32> = run.stdout.split_whitespace().map(|w| w.parse().unwrap()).collect();
    assert_eq!(interrupted, [0; 8], "{KINDS:?}, put back {put_back}");
}
