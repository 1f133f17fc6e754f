//! `cargo xtask test`: all checks that decide whether a change may land.
//!
//! Every step runs, even after failures; long ones only with `--full` or by name. The last line is the sum: `N passed, N failed`.
//!
//! Many tests have the machine for themselves and leave a CPU idle. Steps that only compile use it: they run beside the tests.

mod boundary;
mod browser;
mod documents;
mod effects;
mod fuzz;
mod heap_readers;
mod ignored;
mod licences;
mod packages;
mod programs;
mod registry;
mod stress;
mod suites;
mod tokio_versions;

use crate::run::{cargo, on_idle_cpus, succeeds};
use anyhow::{Result, bail};
use std::process::Command;
use std::sync::mpsc;
use std::time::Instant;

/// Result of a step.
#[derive(Clone, Copy, Default)]
pub struct Tally {
    /// Checks or tests that passed.
    pub passed: u64,
    /// Checks or tests that failed.
    pub failed: u64,
}

impl Tally {
    /// One check.
    pub fn one(passed: bool) -> Tally {
        Tally { passed: passed.into(), failed: (!passed).into() }
    }
}

/// How thorough the tests are.
#[derive(Clone, Copy, PartialEq)]
pub enum Extent {
    /// Minutes.
    Quick,
    /// With the long tests.
    Full,
}

type Step = (&'static str, fn(Extent) -> Result<Tally>);

/// Steps of a full run, or by name. They build programs of other workspaces, which takes minutes.
const LONG_STEPS: [&str; 2] = ["tokio-versions", "registry"];

/// Steps that run while the tests do, on CPUs that these leave idle. None of them measures anything.
const BESIDE_TESTS: [&str; 2] = ["lints", "docs"];

const STEPS: &[Step] = &[
    ("programs", |_| programs::check()),
    ("format", |_| check(&mut cargo(&["fmt", "--all", "--check"]))),
    ("ignored", |_| ignored::check()),
    ("documents", |_| documents::check()),
    ("licences", |_| licences::check()),
    ("boundary", |_| boundary::check()),
    ("lints", |_| {
        check(&mut on_idle_cpus(&[
            "clippy",
            "--quiet",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ]))
    }),
    ("docs", |_| {
        let mut doc = on_idle_cpus(&["doc", "--quiet", "--workspace", "--no-deps"]);
        check(doc.env("RUSTDOCFLAGS", "-D warnings"))
    }),
    ("tests", |extent| suites::tests(extent, || ())),
    ("doctests", |_| suites::doc_tests()),
    ("browser", browser::run),
    ("heap-readers", |_| heap_readers::run()),
    ("stress", stress::run),
    ("tokio-versions", tokio_versions::run),
    ("effects", effects::run),
    ("registry", registry::run),
    ("fuzz", fuzz::run),
];

/// Runs the named steps, or all.
pub fn run(arguments: &[&str]) -> Result<bool> {
    let extent = if arguments.contains(&"--full") { Extent::Full } else { Extent::Quick };
    let named: Vec<&str> = arguments.iter().copied().filter(|argument| *argument != "--full").collect();
    if named == ["list"] {
        STEPS.iter().for_each(|(name, _)| println!("{name}"));
        return Ok(true);
    }
    if let Some(unknown) = named.iter().find(|name| STEPS.iter().all(|(step, _)| step != *name)) {
        bail!("there is no step {unknown:?}; `cargo xtask test list` names them");
    }
    let begin = Instant::now();
    let is_asked_for = |name: &str| match named.is_empty() {
        true => extent == Extent::Full || !LONG_STEPS.contains(&name),
        false => named.contains(&name),
    };
    let is_beside = |name: &str| is_asked_for("tests") && BESIDE_TESTS.contains(&name);
    let asked = STEPS.iter().filter(|(name, _)| is_asked_for(name));
    let (beside, in_turn): (Vec<&Step>, Vec<&Step>) = asked.partition(|(name, _)| is_beside(name));
    let mut done = Vec::new();
    for (name, step) in in_turn {
        match *name {
            "tests" => done.extend(tests_and_others(extent, &beside)),
            _ => done.push(timed(name, || step(extent))),
        }
    }
    let mut sum = Tally::default();
    let mut failed = Vec::new();
    for Done { name, tally, seconds } in done {
        sum.passed += tally.passed;
        sum.failed += tally.failed;
        if tally.failed > 0 {
            failed.push((name, seconds));
        }
    }
    // In the form of nextest, so that whatever reads the log of its tests finds steps as well.
    for (name, seconds) in failed {
        eprintln!("        FAIL [{seconds:>8.3}s] xtask {name}");
    }
    eprintln!("\n{:.0} s in all", begin.elapsed().as_secs_f64());
    println!("{} passed, {} failed", sum.passed, sum.failed);
    Ok(sum.failed == 0)
}

/// A step that has run.
struct Done {
    name: &'static str,
    tally: Tally,
    seconds: f64,
}

/// Runs a step, and tells its outcome and its time.
fn timed(name: &'static str, step: impl FnOnce() -> Result<Tally>) -> Done {
    eprintln!("\n--- {name}");
    let started = Instant::now();
    let tally = step().unwrap_or_else(|error| {
        eprintln!("{name}: {error:#}");
        Tally::one(false)
    });
    let seconds = started.elapsed().as_secs_f64();
    eprintln!("--- {name}: {} passed, {} failed in {seconds:.1} s", tally.passed, tally.failed);
    Done { name, tally, seconds }
}

/// Runs the tests, and the other steps from the moment when all tests are built: one Cargo at a time uses the target folder.
fn tests_and_others(extent: Extent, others: &[&Step]) -> Vec<Done> {
    std::thread::scope(|scope| {
        let (built, is_built) = mpsc::channel();
        let others = scope.spawn(move || -> Vec<Done> {
            // An error means that the tests have ended, and were never built.
            let _ = is_built.recv();
            others.iter().map(|(name, step)| timed(name, || step(extent))).collect()
        });
        let tests = timed("tests", || {
            suites::tests(extent, move || {
                let _ = built.send(());
            })
        });
        let others = others.join().expect("steps return their errors");
        std::iter::once(tests).chain(others).collect()
    })
}

/// A step that is one call of Cargo.
fn check(cargo: &mut Command) -> Result<Tally> {
    Ok(Tally::one(succeeds(cargo)?))
}
