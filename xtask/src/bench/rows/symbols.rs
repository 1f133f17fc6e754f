//! Symbolizing addresses of a large program, compared with a plain loop over the `addr2line` crate.

use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::setup::Setup;
use crate::bench::statistics::{Interval, median};
use crate::run::{cargo, output, succeeds, target_folder};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Smallest size of the program in bytes.
const LARGE: u64 = 150_000_000;

/// Wall time, CPU time and peak memory of one way.
type Cost = [f64; 3];

/// New processes in turn, with the program's file in the page cache.
pub fn measure(setup: &Setup) -> Result<Vec<Figure>> {
    let large = setup.peers.samply.as_ref().context("samply with full debug info is missing")?;
    let bytes = std::fs::metadata(large)?.len();
    if bytes < LARGE {
        bail!("{} has {bytes} bytes, less than {LARGE}: `cargo xtask bench install`", large.display());
    }
    let build = ["build", "--quiet", "--release", "-p", "stackglass-symbols", "--example", "cold"];
    if !succeeds(&mut cargo(&build))? {
        bail!("the example `cold` does not build");
    }
    let cold = target_folder().join("release/examples/cold");
    run(&cold, large, false)?;
    let rounds = (0..setup.either(11, 3))
        .map(|round| {
            let plain_first = round % 2 == 0;
            let first = run(&cold, large, plain_first)?;
            let second = run(&cold, large, !plain_first)?;
            Ok(if plain_first { [second, first] } else { [first, second] })
        })
        .collect::<Result<Vec<[Cost; 2]>>>()?;
    let middle = |rounds: &[[Cost; 2]], way: usize, what: usize| {
        median(&rounds.iter().map(|round| round[way][what]).collect::<Vec<_>>())
    };
    let ratio = |what: usize| {
        Interval::bootstrap(&rounds, |rounds| {
            median(&rounds.iter().map(|[ours, theirs]| ours[what] / theirs[what]).collect::<Vec<_>>())
        })
    };
    let both = |what: usize| (middle(&rounds, 0, what), middle(&rounds, 1, what));
    let [wall, cpu, memory] = [both(0), both(1), both(2)];
    let millis = |(ours, theirs): (f64, f64)| format!("{:.0} and {:.0} ms", ours * 1e-6, theirs * 1e-6);
    Ok(vec![
        Figure::must("wall time ÷ addr2line", ratio(0), Unit::Times, Bound::AtMost(0.6)).note(format!(
            "10 000 addresses of samply ({} MB); {} rounds; {}",
            bytes / 1_000_000,
            rounds.len(),
            millis(wall)
        )),
        Figure::must("memory ÷ addr2line", ratio(2), Unit::Times, Bound::AtMost(0.6)).note(format!(
            "{:.0} and {:.0} MB",
            memory.0 * 1024e-6,
            memory.1 * 1024e-6
        )),
        Figure::told("CPU time ÷ addr2line", ratio(1), Unit::Times).note(millis(cpu)),
    ])
}

fn run(cold: &Path, program: &Path, plain: bool) -> Result<Cost> {
    let mut command = Command::new(cold);
    command.arg(program).args(plain.then_some("--plain"));
    let report: Value = serde_json::from_str(&output(&mut command)?).context("cold prints JSON")?;
    let number = |key: &str| report[key].as_f64().with_context(|| format!("cold does not tell {key}"));
    Ok([number("wall_ns")?, number("cpu_ns")?, number("peak_kib")?])
}
