//! Functions with known shares of the CPU time: deviation of the hits in sigmas.

use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::setup::Setup;
use crate::bench::statistics::Interval;
use anyhow::{Context, Result, ensure};

/// Ten runs with ten orders; z = (hits − N·p) / √(N·p·(1−p)).
pub fn measure(setup: &Setup) -> Result<Vec<Figure>> {
    let mut runs = Vec::new();
    let mut hits_of_all = 0.0;
    for seed in 1..=10 {
        let file = setup.scratch("shares.glass");
        let seconds = setup.either("5", "1");
        let run =
            setup.recorded(&file, "1ms", &["shares", "--seconds", seconds, "--seed", &seed.to_string()])?;
        let seen = setup.truth("shares", &file, &["share_"])?;
        let truth = run.report["truth"].as_array().context("the workload tells its truth")?;
        let rounds: f64 = truth.iter().filter_map(|function| function["rounds"].as_f64()).sum();
        let hits = |name: &str| seen[name]["hits"].as_f64().unwrap_or(0.0);
        let names: Vec<&str> = truth.iter().filter_map(|function| function["function"].as_str()).collect();
        let all: f64 = names.iter().map(|name| hits(name)).sum();
        ensure!(all > 0.0, "no hits in any of the functions");
        hits_of_all += all;
        let z: Vec<f64> = truth
            .iter()
            .zip(&names)
            .map(|(function, name)| {
                let p = function["rounds"].as_f64().unwrap_or(f64::NAN) / rounds;
                (hits(name) - all * p) / (all * p * (1.0 - p)).sqrt()
            })
            .collect();
        runs.push(z);
    }
    let worst: Vec<f64> =
        runs.iter().map(|z| z.iter().fold(0.0_f64, |worst, z| worst.max(z.abs()))).collect();
    let worst_of_all = worst.iter().copied().fold(0.0, f64::max);
    let mean = |runs: &[Vec<f64>]| {
        let all: Vec<f64> = runs.iter().flatten().map(|z| z.abs()).collect();
        all.iter().sum::<f64>() / all.len() as f64
    };
    let note = format!("{hits_of_all} hits, 6 functions with shares from 1 to 20 of 41, 10 runs");
    Ok(vec![
        Figure::must(
            "worst absolute z of 10 runs",
            Interval::exact(worst_of_all),
            Unit::Count,
            Bound::AtMost(4.0),
        )
        .note(note),
        Figure::must("mean absolute z", Interval::bootstrap(&runs, mean), Unit::Count, Bound::AtMost(1.2)),
    ])
}
