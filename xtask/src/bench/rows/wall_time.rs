//! What a wall-time profile costs a program with 20 000 tasks and one busy worker.
//!
//! The worker repeats the same work and measures each repetition, in wall time, since a stopped thread uses no CPU time. Runs with
//! and without the profile alternate. The first repetitions are left out: the command reads types meanwhile, once.

use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::setup::Setup;
use crate::bench::statistics::{Interval, median};
use crate::run::output;
use anyhow::{Context, Result};
use serde_json::Value;
use std::process::Command;

/// Tasks that wait.
const TASKS: &str = "20000";
/// Repetitions of the work, of some 100 ms each, and how many are left out.
const REPETITIONS: usize = 60;
const LEFT_OUT: usize = 20;

/// The additional time of the work, and the task snapshots that were taken.
pub fn measure(setup: &Setup) -> Result<Vec<Figure>> {
    let (mut pairs, mut stacks) = (Vec::new(), Vec::new());
    for round in 0..setup.either(20, 2) {
        let file = setup.scratch("wall-time.glass");
        let mut times = [0.0; 2];
        for turn in 0..2 {
            let recorded = (turn + round) % 2;
            times[recorded] = work(setup, (recorded == 1).then_some(&*file))?;
        }
        pairs.push(times);
        let mut info = Command::new(&setup.tools.stackglass);
        let info: Value = serde_json::from_str(&output(info.arg("info").arg(&file).arg("--json"))?)?;
        stacks.push(info["samples"].as_f64().context("no samples")?);
    }
    let added = |pairs: &[[f64; 2]]| {
        median(&pairs.iter().map(|[plain, recorded]| recorded / plain - 1.0).collect::<Vec<_>>())
    };
    let added = Interval::bootstrap(&pairs, added);
    Ok(vec![
        Figure::must(
            "20 000 tasks at 1 kHz: time of a busy worker added",
            added,
            Unit::Percent,
            Bound::AtMost(0.03),
        )
        .note(format!("{} pairs of runs", pairs.len())),
        Figure::told("stacks of tasks that were taken in a run", Interval::range(&stacks), Unit::Count),
    ])
}

/// The mean time of the work, s.
fn work(setup: &Setup, output: Option<&std::path::Path>) -> Result<f64> {
    let mut words = Vec::new();
    if let Some(file) = output {
        words.push(setup.tools.stackglass.display().to_string());
        words.extend(["record", "-q", "--walltime", "-o"].map(str::to_owned));
        words.extend([file.display().to_string(), "--".to_owned()]);
    }
    words.push(setup.tools.awaits.display().to_string());
    words.extend(["work", TASKS, &REPETITIONS.to_string()].map(str::to_owned));
    let said = setup.scratch("work.txt");
    setup.run_into(&words, &said)?;
    let said = std::fs::read_to_string(said)?;
    let times: Vec<f64> =
        said.lines().filter_map(|line| line.strip_prefix("slice ")?.parse::<f64>().ok()).collect();
    let late = times.get(LEFT_OUT..).filter(|late| !late.is_empty()).context("the work was not measured")?;
    // The mean: a pause is in few of them.
    Ok(late.iter().sum::<f64>() / late.len() as f64 * 1e-9)
}
