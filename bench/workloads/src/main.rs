//! `workloads NAME [--seconds S] [--work N] [--depth N] [--threads N] [--seed N]` runs one workload and
//! prints one line of JSON: wall and CPU time by the kernel, the work done, and its known profile. With `--work`, the amount of
//! work is fixed, so that two runs can be compared; else it runs for `--seconds`.
#![allow(unsafe_code, reason = "calls the C library")]

mod allocator;

use std::process::ExitCode;
use workloads::clock::{Reading, resident_kib};
use workloads::options::Options;
use workloads::report::Report;
use workloads::{
    allocate, beside, bursts, chain, churn, deep, fib, handed_over, heaps, hostile, live_graph, measured,
    parked, small_objects, text_tree, threads, waiters,
};

/// Name, description, and the function that runs it.
type Workload = (&'static str, &'static str, fn(&Options, &mut Report));

const WORKLOADS: &[Workload] = &[
    ("chain", "one thread below --depth known callers (20)", chain::run),
    ("busy", "--threads threads that compute (6)", threads::busy),
    ("parked", "--threads threads that wait (1000) and one that computes", parked::run),
    ("deep", "--depth calls deep (100000) on a large stack", deep::run),
    ("allocate", "--threads threads (4) that allocate and free as fast as they can", allocate::run),
    ("text-tree", "a text becomes a tree, a copy and a text, --work times", text_tree::run),
    ("small-objects", "small objects of every container, --work times", small_objects::run),
    ("live-graph", "a heap of known blocks and edges, --work items (1000), for --seconds", live_graph::run),
    ("rewritten-heap", "--work blocks (1000) that are written all the time, for --seconds", heaps::rewritten),
    ("blocks-of-32", "--work blocks of 32 bytes (1000), which stay", heaps::of_32),
    ("blocks-of-24", "--work blocks of 24 bytes (1000), which stay", heaps::of_24),
    ("handed-over", "--threads threads (4), of which half free what the others allocate", handed_over::run),
    ("threads", "--work threads (10000) that start and end", churn::threads),
    ("forks", "--work forked children (200) that live on for a while", churn::forks),
    ("hostile", "all of this and more at once", hostile::run),
    ("burst-sleep", "bursts of --burst US (60), a sleep of --pause US (300) after each", bursts::sleep),
    ("burst-timer", "a burst at each expiry of a timer", bursts::timer),
    ("burst-socket", "two processes that burst in turn, over sockets", bursts::socket),
    ("fib", "Fibonacci numbers by recursion, --work of them (1)", fib::run),
    ("waiters", "--threads processes (20) that only wait for --seconds", waiters::run),
    ("execs", "--work programs (100) started one after the other", churn::execs),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "measured") {
        return measured::run(&arguments[1..]);
    }
    if arguments.first().is_some_and(|first| first == "beside") {
        return beside::run(&arguments[1..]);
    }
    let options = match Options::parse(&arguments) {
        Ok(options) => options,
        Err(message) => return usage(&message),
    };
    let Some((name, _, run)) = WORKLOADS.iter().find(|(name, ..)| *name == options.name) else {
        return usage(&format!("there is no workload {:?}", options.name));
    };
    let mut report = Report::new(name);
    #[cfg(any(feature = "stackglass", feature = "dhat"))]
    let _recording = match options.allocs.as_deref().map(allocator::start).transpose() {
        Ok(recording) => recording,
        Err(message) => return usage(&message),
    };
    let before = Reading::now();
    run(&options, &mut report);
    before.until_now(&mut report);
    report.number("rss_kib", resident_kib());
    println!("{report}");
    ExitCode::SUCCESS
}

fn usage(message: &str) -> ExitCode {
    eprintln!(
        "{message}\n\nworkloads NAME [--seconds S] [--work N] [--depth N] [--threads N] [--seed N]
          [--burst US] [--pause US]"
    );
    for (name, what, _) in WORKLOADS {
        eprintln!("  {name:<12} {what}");
    }
    eprintln!("  beside N PROGRAM ARGS: runs a program while N threads compute beside it");
    eprintln!("  measured FILE PROGRAM ARGS: runs a program; FILE gets what its tree cost and when it ended");
    ExitCode::from(2)
}
