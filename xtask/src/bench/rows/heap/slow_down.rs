//! The time that a program loses if it writes all its memory all the time. This is the worst case for a copy: each page is
//! duplicated when the program writes it for the first time.
//!
//! Passes over the memory are counted while a snapshot is taken, and in the second before, in the same process.

use super::program::Program;
use crate::bench::figure::{Figure, Unit};
use crate::bench::setup::Setup;
use crate::bench::statistics::{Interval, median};
use anyhow::{Context, Result};
use std::path::Path;
use std::time::Duration;

/// Slow-down while the snapshot is taken, and the time that it costs.
pub fn measure(setup: &Setup, workloads: &Path) -> Result<Vec<Figure>> {
    let prefix = setup.scratch("bench-parts.heapsnapshot");
    let program = Program::start(setup, workloads, &["rewritten-heap", "--work", "1000000"])?;
    let resident = program.resident()?;
    let mut taken = Vec::new();
    for _ in 0..setup.either(8, 2) {
        std::thread::sleep(Duration::from_millis(1500));
        // The copy lives as long as the command, which does not assemble one file.
        let run = program.take(setup, &prefix, &["--streaming"])?;
        taken.push((run.end - run.wall, run.end));
    }
    std::thread::sleep(Duration::from_millis(300));
    let report = program.end()?;
    let ends = report["ends"].as_array().context("the program reports the ends of its passes")?;
    let ends: Vec<f64> = ends.iter().filter_map(|end| end.as_f64()).map(|end| end * 1e-9).collect();
    let rounds: Vec<(f64, f64)> = taken
        .iter()
        .map(|(begin, end)| {
            let undisturbed = rate(&ends, begin - 1.0, *begin);
            let disturbed = rate(&ends, *begin, *end);
            (undisturbed / disturbed, (end - begin) * (1.0 - disturbed / undisturbed) * 1e3)
        })
        .collect();
    let of = |number: fn(&(f64, f64)) -> f64| {
        Interval::bootstrap(&rounds.iter().map(number).collect::<Vec<f64>>(), median)
    };
    let lengths: Vec<f64> = taken.iter().map(|(begin, end)| (end - begin) * 1e3).collect();
    Ok(vec![
        Figure::told(
            "a program that writes all its memory: its time ÷ undisturbed",
            of(|r| r.0),
            Unit::Times,
        )
        .note(format!("while a copy lives, {:.0} ms; {resident:.2} GB of memory", median(&lengths))),
        Figure::told("the same: time lost by one snapshot", of(|r| r.1), Unit::Millis)
            .note(format!("{} snapshots", rounds.len())),
    ])
}

/// Passes a second from one moment to another, of which the first and the last count in part.
fn rate(ends: &[f64], from: f64, to: f64) -> f64 {
    let passes: f64 = ends
        .windows(2)
        .map(|pass| {
            let within = pass[1].min(to) - pass[0].max(from);
            within.max(0.0) / (pass[1] - pass[0])
        })
        .sum();
    passes / (to - from)
}
