//! Async tasks of a program that links the crate, recorded by the command: names, source lines and shares.
//!
//! This file is its own host: called with `host`, it runs three tasks with CPU shares 1 : 2 : 5 on a runtime of two threads
//! and prints their CPU times. A host must be a plain program, so this test has no harness and handles nextest's arguments
//! itself.

use stackglass::model::State;
use std::hint::black_box;
use std::time::Duration;
use whole_programs::{Outcome, Record};
use workloads::clock::thread_cpu;

const NAME: &str = "tasks_with_shares_of_one_two_and_five";
const LONG: &str = "tasks_with_shares_of_one_two_and_five_in_each_of_ten_runs";
const WALLTIME: &str = "tasks_by_wall_time";
const TASKS: [(&str, u64); 3] = [("one", 1), ("two", 2), ("five", 5)];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    if has("host") {
        host();
    } else if has("--list") {
        match has("--ignored") {
            true => println!("{LONG}: test"),
            false => println!("{NAME}: test\n{WALLTIME}: test"),
        }
    } else if has(WALLTIME) {
        walltime();
    } else if has(LONG) {
        let worst: Vec<f64> = (0..10).map(|_| worst()).collect();
        println!("{worst:.1?} sigma");
        assert!(worst.iter().all(|worst| *worst <= 4.0), "{worst:.1?}");
    } else {
        let worst = worst();
        assert!(worst <= 4.0, "{worst:.1} sigma");
    }
}

/// Some hundred microseconds.
#[inline(never)]
fn work() {
    for _ in 0..9 {
        black_box((0..4000u64).fold(1, |a, b| (black_box(a) * 31 % 1_000_003) ^ b));
    }
}

fn host() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build();
    runtime.expect("a runtime can be made").block_on(async {
        let spawn = |(name, part)| {
            let measured = async move {
                let mut used = Duration::ZERO;
                for _ in 0..part * 600 {
                    let begin = thread_cpu();
                    work();
                    used += thread_cpu() - begin;
                    tokio::task::yield_now().await;
                }
                used
            };
            stackglass::task::spawn(name, measured)
        };
        for (task, (name, _)) in TASKS.map(spawn).into_iter().zip(TASKS) {
            println!("{name} {}", task.await.expect("no task panics").as_nanos());
        }
    });
}

/// With `--walltime` and the preload library, every sample is of a task, with its waiting time if it waits.
fn walltime() {
    let me = std::env::current_exe().expect("a test knows its own path");
    let outcome = Record::new(&me).args(["host"]).flag("--walltime").flag("--sampler=preload").run();
    assert_eq!(outcome.code(), 0);
    let recording = outcome.recording();
    let looks = |task: bool| -> u32 {
        recording.samples.iter().filter(|sample| (sample.task != 0) == task).map(|sample| sample.hits).sum()
    };
    assert!(recording.samples.iter().all(|sample| sample.state == State::Task));
    // Before the first task and after the last, there are threads only.
    assert!(looks(true) > 100 && looks(false) < looks(true) / 2, "{} and {}", looks(true), looks(false));
    for (name, _) in TASKS {
        let task = recording.tasks.iter().find(|task| &*task.name == name).expect("a task with this name");
        assert!(recording.samples.iter().any(|sample| sample.task == task.id.0), "{name} was looked at");
    }
    let report = outcome.print();
    assert!(report.contains("task five") && report.contains("[waiting]"), "{report}");
}

/// The largest deviation of a task's share from its CPU time, in standard errors.
fn worst() -> f64 {
    let me = std::env::current_exe().expect("a test knows its own path");
    let outcome: Outcome = Record::new(&me).args(["host"]).run();
    assert_eq!(outcome.code(), 0);
    let recording = outcome.recording();
    let used: Vec<f64> = outcome
        .stdout
        .lines()
        .map(|line| line.split(' ').next_back().and_then(|ns| ns.parse().ok()).expect("a number"))
        .collect();
    let of = |name: &str| {
        let task = recording.tasks.iter().find(|task| &*task.name == name).expect("a task with this name");
        assert!(task.file.ends_with("tests/tasks.rs") && task.line > 0, "{task:?}");
        let samples = recording.samples.iter().filter(|s| s.task == task.id.0 && s.state.uses_cpu());
        samples.fold((0.0, 0), |(time, hits), s| (time + s.time.millis(), hits + s.hits))
    };
    let seen: Vec<(f64, u32)> = TASKS.iter().map(|(name, _)| of(name)).collect();
    let (time, hits) = seen.iter().fold((0.0, 0), |(time, hits), seen| (time + seen.0, hits + seen.1));
    let says = |name: &str| outcome.stderr.contains(&format!("1  {name}  "));
    assert!(TASKS.iter().all(|(name, _)| says(name)), "{}", outcome.stderr);
    let all: f64 = used.iter().sum();
    let sigma = |(seen, used): (&(f64, u32), &f64)| {
        let share = used / all;
        (seen.0 / time - share).abs() / (share * (1.0 - share) / f64::from(hits)).sqrt()
    };
    seen.iter().zip(&used).map(sigma).fold(0.0, f64::max)
}
