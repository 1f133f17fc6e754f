//! Programs that work in short bursts: the recorded time of each function is that of its thread's clock.
//!
//! `truth::bursts` has the checks and bounds.

use truth::bursts::Judgement;
use truth::{NamedStacks, bursts};
use whole_programs::{Record, workloads};

/// A run compares some 14 numbers, of which one is beyond 3 sigma by chance in one of 30 runs. Then more runs are added: chance evens
/// out, and a real deviation grows.
const MOST_RUNS: usize = 4;

/// Runs a workload, alone or next to two busy threads, and checks the recording.
#[track_caller]
fn holds(program: &[&str], beside: bool) {
    let mut all = judged(program, beside);
    for _ in 1..MOST_RUNS {
        if all.faults().is_empty() {
            return;
        }
        all.add(judged(program, beside));
    }
    assert!(all.faults().is_empty(), "{:#?}\n{all:#?}", all.faults());
}

fn judged(program: &[&str], beside: bool) -> Judgement {
    let workloads = workloads().to_str().expect("the path is text");
    let mut record = Record::new(workloads).args(program);
    if beside {
        record = record.before(&[workloads, "beside", "2"]);
    }
    let outcome = record.run();
    assert_eq!(outcome.code(), 0, "stderr:\n{}", outcome.stderr);
    let said = serde_json::from_str(&outcome.stdout).expect("the workload prints its account");
    let recording = outcome.recording();
    let named = NamedStacks::of_recording(&recording, "workloads");
    bursts::judge(&named, recording.info.delay.0, &said).expect("the account is one")
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
