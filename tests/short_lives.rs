//! Lives shorter than the sampling period, and loops that take about as long: their CPU time is the kernel's, and where whole CPUs
//! may be sampled, their shares are those of their own clocks.

use stackglass_profile::Recording;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use whole_programs::{Language, Outcome, Record, host, stackglass};

/// Standard errors of a share that is right. More happens once in 100 000 runs.
const SIGMAS: f64 = 4.5;
/// A thread's start and end are known to this, ns.
const CLOSE: u64 = 200_000;

/// Becomes a user without rights.
const NOBODY: [&str; 6] = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];

/// A run of the program by this user: with events of CPUs if that is root, otherwise with inherited events.
fn run(arguments: &[&str], as_nobody: bool) -> Option<Outcome> {
    let program = host("lives", Language::C);
    let record = Record::new(&program).args(arguments);
    if !as_nobody {
        return Some(record.run());
    }
    // Only root becomes another user, and that user may be kept out of the folder of the build.
    let mut reach = Command::new(NOBODY[0]);
    reach.args(&NOBODY[1..]).args(["test", "-x"]).arg(&program).args(["-a", "-x"]).arg(stackglass());
    if !reach.status().is_ok_and(|status| status.success()) {
        eprintln!("not tested: another user cannot start the program here");
        return None;
    }
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(record.folder(), open).expect("the folder is this test's");
    Some(record.before(&NOBODY).run())
}

/// Whether the recording has events of CPUs.
fn is_of_cpus(recording: &Recording) -> bool {
    let mut counters = recording.processes.iter().flat_map(|process| process.counters.keys());
    counters.any(|counter| counter.contains("on every CPU"))
}

/// The sum of all threads is the kernel's count, and no thread has more CPU time than its life.
///
/// An ordinary user's events end before the thread does, and their end costs the kernel time: some 45 µs a thread in a virtual machine. For
/// threads of 100 µs, that is a fifth of all time. The sum then has at least what the program measured, and the rest is a row of its own.
#[track_caller]
fn has_the_kernels_time(outcome: &Outcome, recording: &Recording) {
    let kernel = recording.info.kernel_cpu.expect("the kernel has counted").0;
    let sum: u64 = recording.threads.iter().map(|thread| thread.cpu.0).sum();
    assert!(sum <= kernel + kernel / 20 + 10_000_000, "{sum} ns of {kernel}");
    let lost = recording.info.remarks.iter().any(|remark| remark.contains("of what threads did were lost"));
    let is_whole = sum + kernel / 5 + 10_000_000 >= kernel;
    let is_told = || !is_of_cpus(recording) && outcome.says("[unaccounted]");
    assert!(lost || is_whole || is_told(), "{sum} ns of {kernel}: {}", outcome.stderr);
    let measured = 1000 * own_account(outcome).iter().sum::<f64>() as u64;
    assert!(lost || sum >= measured, "{sum} ns, and the program measured {measured}");
    for thread in &recording.threads {
        let life = thread.end.map_or(u64::MAX, |end| end.0 - thread.start.0 + CLOSE);
        assert!(thread.cpu.0 <= life, "{thread:?} ran longer than it lived");
    }
}

/// CPU time of `first` and `second` by the program's own clock, µs.
fn own_account(outcome: &Outcome) -> Vec<f64> {
    outcome.stdout.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

/// The share of `first` is that of the program's own account.
#[track_caller]
fn has_the_true_share(outcome: &Outcome) {
    let seen = outcome.seen("lives");
    let truth = own_account(outcome);
    let share = truth[0] / (truth[0] + truth[1]);
    let of = |name: &str| seen.functions.get(name).copied().unwrap_or(0) as f64;
    let (first, second) = (of("first"), of("second"));
    // Each stack stands for a period of 0.55 to 1.65 ms.
    let stacks = (truth[0] + truth[1]) / 1000.0 / 1.1;
    let sigma = (share * (1.0 - share) / stacks).sqrt();
    let found = first / (first + second);
    assert!((found - share).abs() < SIGMAS * sigma, "{found:.3} for {share:.3}, sigma {sigma:.3}: {seen:#?}");
    // All of both: nothing is without a stack because it was short.
    let both = (first + second) / 1000.0 / (truth[0] + truth[1]);
    assert!((both - 1.0).abs() < 0.1 + SIGMAS / stacks.sqrt(), "{both:.3} of the time: {seen:#?}");
}

#[test]
fn five_hundred_threads_at_once() {
    for as_nobody in [false, true] {
        if let Some(outcome) = run(&["at-once", "500", "1300"], as_nobody) {
            assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
            has_the_kernels_time(&outcome, &outcome.recording());
        }
    }
}

#[test]
fn lives_of_any_length_have_their_share() {
    for life in [["threads", "2000", "100"], ["threads", "400", "1300"], ["processes", "800", "200"]] {
        for as_nobody in [false, true] {
            let Some(outcome) = run(&life, as_nobody) else { continue };
            assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
            let recording = outcome.recording();
            has_the_kernels_time(&outcome, &recording);
            if is_of_cpus(&recording) {
                has_the_true_share(&outcome);
            } else {
                assert!(!as_nobody || outcome.says("[no stack: too short]"), "{}", outcome.stderr);
            }
        }
    }
}

#[test]
fn loops_as_long_as_the_period_have_their_share() {
    for turn in ["500", "1003", "2000"] {
        let outcome = run(&["loop", turn, "700"], false).expect("this user");
        assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
        let recording = outcome.recording();
        has_the_kernels_time(&outcome, &recording);
        if is_of_cpus(&recording) {
            has_the_true_share(&outcome);
        }
    }
}
