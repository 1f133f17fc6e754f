//! Programs that work in short bursts: the recorded time of each function is that of its thread's clock.
//!
//! The checks and bounds are those of `cargo xtask bench bursts`, which runs more shapes, eight times each.

use truth::{NamedStacks, bursts};
use whole_programs::{Record, workloads};

/// Runs a workload, alone or next to two busy threads, and checks the recording.
#[track_caller]
fn holds(program: &[&str], beside: bool) {
    let workloads = workloads().to_str().expect("the path is text");
    let mut record = Record::of(workloads).args(program);
    if beside {
        record = record.before(&[workloads, "beside", "2"]);
    }
    let outcome = record.run();
    assert_eq!(outcome.code(), 0, "stderr:\n{}", outcome.stderr);
    let said = serde_json::from_str(&outcome.stdout).expect("the workload prints its account");
    let recording = outcome.recording();
    let named = NamedStacks::of_recording(&recording, "workloads");
    let judgement = bursts::judge(&named, recording.info.delay.0, &said).expect("the account is one");
    assert!(judgement.faults().is_empty(), "{:#?}\n{judgement:#?}\n{}", judgement.faults(), outcome.stderr);
}

#[test]
fn short_bursts_between_sleeps() {
    holds(&["burst-sleep", "--burst", "60", "--pause", "300", "--work", "15000"], false);
}

#[test]
fn two_processes_that_answer_each_other() {
    holds(&["burst-socket", "--burst", "60", "--pause", "0", "--work", "10000"], false);
}

#[test]
fn bursts_by_a_timer_beside_busy_neighbours() {
    holds(&["burst-timer", "--burst", "400", "--pause", "1000", "--work", "3000"], true);
}
