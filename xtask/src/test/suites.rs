//! The tests: nextest for all targets, Cargo for the examples in the documentation.

use super::{Extent, Tally};
use crate::run::{cargo, on_path, shown_and_returned, succeeds};
use crate::tools::Tools;
use anyhow::{Context, Result, bail};

/// Random cases of each property in a full run.
const FULL_CASES: &str = "20000";

/// All tests of the workspace; those marked `long: …` only in a full run.
pub fn tests(extent: Extent) -> Result<Tally> {
    install_nextest()?;
    let tools = Tools::with_tests()?;
    let mut nextest = cargo(&["nextest", "run", "--workspace", "--no-fail-fast", "--status-level", "slow"]);
    nextest.args(["--hide-progress-bar", "--final-status-level", "flaky"]);
    nextest.arg(format!("--test-threads={}", test_threads()));
    nextest.env("AWAITS_BIN", &tools.awaits);
    nextest.env("STACKGLASS_BIN", &tools.stackglass).env("WORKLOADS_BIN", &tools.workloads);
    if extent == Extent::Full {
        nextest.args(["--run-ignored", "all"]).env("PROPTEST_CASES", FULL_CASES).env("REPETITIONS", "all");
    }
    let (succeeded, text) = shown_and_returned(&mut nextest, false)?;
    let tally = summary(&text).context("nextest printed no summary: the tests do not build")?;
    if !succeeded && tally.failed == 0 {
        bail!("nextest failed without naming a test");
    }
    Ok(tally)
}

/// Most tests at once: many wait for a program, so two fill a CPU. Those that need the machine for themselves run alone in any case.
fn test_threads() -> usize {
    2 * std::thread::available_parallelism().map_or(1, |cpus| cpus.get())
}

fn install_nextest() -> Result<()> {
    if on_path("cargo-nextest") {
        return Ok(());
    }
    eprintln!("installing cargo-nextest (once)");
    if !succeeds(&mut cargo(&["install", "--locked", "cargo-nextest"]))? {
        bail!(
            "cargo-nextest is missing and could not be installed; try: cargo install --locked cargo-nextest"
        );
    }
    Ok(())
}

/// Reads `Summary [ 1.0s] 12 tests run: 10 passed (1 slow), 1 failed, 1 timed out, 3 skipped`.
pub(super) fn summary(text: &str) -> Option<Tally> {
    let line = text.lines().rev().find(|line| line.contains("tests run:") || line.contains("test run:"))?;
    // The text in parentheses tells how they passed: slowly, or at the second try.
    let counts: String = line.split_once("run:")?.1.split(['(', ')']).step_by(2).collect();
    let mut tally = Tally::default();
    for part in counts.split(',') {
        let mut words = part.split_whitespace();
        let (Some(Ok(n)), Some(what)) = (words.next().map(str::parse::<u64>), words.next()) else { continue };
        match what {
            "passed" => tally.passed += n,
            "skipped" => {}
            _ => tally.failed += n,
        }
    }
    Some(tally)
}

/// The examples in the documentation.
pub fn doc_tests() -> Result<Tally> {
    let (succeeded, text) =
        shown_and_returned(&mut cargo(&["test", "--quiet", "--workspace", "--doc"]), true)?;
    let mut tally = Tally::default();
    for line in text.lines().filter(|line| line.starts_with("test result:")) {
        let number = |what: &str| -> Option<u64> {
            let before = line.split(what).next()?.trim_end();
            before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        tally.passed += number(" passed").unwrap_or(0);
        tally.failed += number(" failed").unwrap_or(0);
    }
    if !succeeded && tally.failed == 0 {
        bail!("the examples in the documentation do not build");
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn failures_of_all_kinds_count() {
        let text = "x\n     Summary [   1.5s] 12 tests run: 9 passed (1 slow, 1 flaky), 2 failed, 1 timed out, 3 skipped\n";
        let tally = summary(text).expect("there is a summary");
        assert_eq!((tally.passed, tally.failed), (9, 3));
        assert!(summary("error: could not compile").is_none());
    }
}
