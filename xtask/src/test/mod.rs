//! `cargo xtask test`: all checks that decide whether a change may land.
//!
//! Every step runs, even after failures; long ones only with `--full` or by name. The last line is the sum: `N passed, N failed`.

mod allocating;
mod boundary;
mod browser;
mod documents;
mod effects;
mod fuzz;
mod heap_readers;
mod ignored;
mod licences;
mod lints;
mod packages;
mod page;
mod programs;
mod registry;
mod stress;
mod suites;
mod tokio_versions;

use crate::run::{cargo, succeeds};
use anyhow::{Result, bail};
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

    /// Adds the checks of another.
    pub fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
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

/// Steps of a full run, or by name. They build programs of other workspaces, or install large readers, which takes minutes.
const LONG_STEPS: [&str; 3] = ["heap-readers", "tokio-versions", "registry"];

const STEPS: &[Step] = &[
    ("programs", |_| programs::check()),
    ("format", |_| Ok(Tally::one(succeeds(&mut cargo(&["fmt", "--all", "--check"]))?))),
    ("ignored", |_| ignored::check()),
    ("documents", |_| documents::check()),
    ("licences", |_| licences::check()),
    ("lints", |_| lints::lints()),
    ("docs", |_| lints::docs()),
    ("tests", suites::tests),
    ("doctests", |_| suites::doc_tests()),
    ("boundary", |_| boundary::check()),
    ("page", |_| page::run()),
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
    let mut sum = Tally::default();
    let mut failed = Vec::new();
    let is_asked_for = |name: &str| match named.is_empty() {
        true => extent == Extent::Full || !LONG_STEPS.contains(&name),
        false => named.contains(&name),
    };
    for (name, step) in STEPS.iter().filter(|(name, _)| is_asked_for(name)) {
        eprintln!("\n--- {name}");
        let started = Instant::now();
        let tally = step(extent).unwrap_or_else(|error| {
            eprintln!("{name}: {error:#}");
            Tally::one(false)
        });
        sum.passed += tally.passed;
        sum.failed += tally.failed;
        let seconds = started.elapsed().as_secs_f64();
        eprintln!("--- {name}: {} passed, {} failed in {seconds:.1} s", tally.passed, tally.failed);
        if tally.failed > 0 {
            failed.push((*name, seconds));
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
