//! Many threads, small stacks, deep stacks, switched stacks, and allocation everywhere.

use whole_programs::{Language, Record, host, workloads};

#[test]
fn ten_thousand_threads() {
    let outcome = Record::new(workloads()).args(["threads", "--work", "10000"]).run();
    assert!(outcome.stdout.contains("\"work\": 10000"), "{}", outcome.stdout);
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    let seen = outcome.seen("workloads");
    assert!(seen.threads > 5000, "{} threads seen", seen.threads);
}

#[test]
fn a_thousand_parked_threads() {
    let outcome = Record::new(workloads()).args(["parked", "--threads", "1000", "--work", "3000"]).run();
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    let seen = outcome.seen("workloads");
    assert_eq!(seen.threads, 1002, "{seen:#?}");
    seen.is_true(300);
    let parked = seen.sleeping_functions.get("parked_thread").copied().unwrap_or(0);
    assert!(parked as f64 > 0.97 * seen.asleep as f64, "{seen:#?}");
}

#[test]
fn stacks_of_64_kib() {
    let outcome = Record::new(host("stacks", Language::C)).run();
    outcome.program_did("16 of 16 right\n", 0);
    outcome.seen("stacks").is_true(300).has_share("small_stack_work", 0.9, 1.0);
}

#[test]
fn fibres() {
    let outcome = Record::new(host("stacks", Language::C)).args(["fibres"]).run();
    outcome.program_did("all switches made\n", 0);
    let seen = outcome.seen("stacks");
    seen.has_share("fibre_work", 0.9, 1.0);
    assert!(seen.hits > 300, "{seen:#?}");
}

#[test]
fn a_recursion_of_100_000_calls() {
    let outcome = Record::new(workloads()).args(["deep", "--work", "1500"]).run();
    assert!(outcome.stdout.contains("\"depth\": 100000"), "{}", outcome.stdout);
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    let seen = outcome.seen("workloads");
    assert!(seen.hits > 500 && seen.deepest >= 4000, "{} hits, {} deep", seen.hits, seen.deepest);
    assert!(seen.whole < seen.hits / 2, "deeper than fits is said to be cut");
    assert!(outcome.stderr.contains("deep"), "the report says so:\n{}", outcome.stderr);
    outcome.print();
}

#[test]
fn allocation_on_all_threads_at_the_highest_rate() {
    let outcome =
        Record::new(workloads()).args(["allocate", "--work", "4000"]).flag("--delay").flag("200us").run();
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    outcome.seen("workloads").is_true(1500).has_share("allocating_thread", 0.95, 1.0);
}

#[test]
fn six_busy_threads_get_their_time() {
    let outcome = Record::new(workloads()).args(["busy", "--threads", "6", "--work", "1500"]).run();
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    outcome.seen("workloads").is_true(500).has_share("busy_thread", 0.97, 1.0);
}
