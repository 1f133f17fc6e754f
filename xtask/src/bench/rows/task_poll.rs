//! Additional cost of a poll if the future is a Stackglass task, sampled or not.

use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::setup::Setup;
use crate::bench::statistics::{Interval, median};
use crate::run::output;
use crate::tools::in_process_program;
use anyhow::{Context, Result};
use serde_json::Value;
use std::process::Command;

/// Alternating blocks of polls in one process, of the bare and the instrumented future.
pub fn measure(setup: &Setup) -> Result<Vec<Figure>> {
    let mut command = Command::new(in_process_program()?);
    command.args(["task-poll", setup.either("201", "41")]);
    let report: Value = serde_json::from_str(&output(&mut command)?)?;
    let rounds = report["rounds"].as_array().context("in-process lists its rounds")?;
    let rounds: Vec<[f64; 2]> = rounds
        .iter()
        .map(|round| ["bare_ns", "task_ns"].map(|key| round[key].as_f64().unwrap_or(f64::NAN)))
        .collect();
    let each =
        |rounds: &[[f64; 2]], f: fn(&[f64; 2]) -> f64| median(&rounds.iter().map(f).collect::<Vec<_>>());
    let added = Interval::bootstrap(&rounds, |rounds| each(rounds, |[bare, task]| task - bare));
    let bare = Interval::bootstrap(&rounds, |rounds| each(rounds, |[bare, _]| *bare));
    Ok(vec![
        Figure::must("a task adds to each poll, ns", added, Unit::Count, Bound::AtMost(10.0))
            .note(format!("{} pairs of 4 million polls", rounds.len())),
        Figure::told("a poll of the bare future, ns", bare, Unit::Count),
    ])
}
