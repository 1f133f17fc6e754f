//! Cost of a sample for the profiled thread, compared with an empty handler.

use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::setup::Setup;
use crate::bench::statistics::{Interval, median};
use crate::run::output;
use crate::tools::in_process_program;
use anyhow::{Context, Result};
use serde_json::Value;
use std::process::Command;

/// At least 40 pairs of blocks in one process at 10 kHz: plain, empty handler, whole sample.
pub fn measure(setup: &Setup) -> Result<Vec<Figure>> {
    let mut command = Command::new(in_process_program()?);
    command.args(["pairs", setup.either("60", "12")]);
    let report: Value = serde_json::from_str(&output(&mut command)?)?;
    let rounds = report["rounds"].as_array().context("in-process lists its rounds")?;
    let rounds: Vec<[f64; 3]> = rounds
        .iter()
        .map(|round| ["plain_ns", "empty_ns", "whole_ns"].map(|key| round[key].as_f64().unwrap_or(f64::NAN)))
        .collect();
    let added = |rounds: &[[f64; 3]], which: usize| {
        median(&rounds.iter().map(|round| round[which] / round[0] - 1.0).collect::<Vec<_>>())
    };
    let ratio = Interval::bootstrap(&rounds, |rounds| added(rounds, 2) / added(rounds, 1));
    let percent = |what: &str, which| {
        Figure::told(what, Interval::bootstrap(&rounds, |rounds| added(rounds, which)), Unit::Percent)
    };
    Ok(vec![
        Figure::must("sample ÷ empty handler", ratio, Unit::Times, Bound::AtMost(1.15))
            .note(format!("{} rounds, 10 kHz, 20 frames", rounds.len())),
        percent("an empty handler adds", 1),
        percent("a whole sample adds", 2),
    ])
}
