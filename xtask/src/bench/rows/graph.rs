//! Time and memory of the graph of a very large profile: five million nodes in the trie of stacks.

use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::setup::Setup;
use crate::bench::statistics::{Interval, median};
use crate::run::{cargo, output, succeeds, target_folder};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::process::Command;

const NODES: &str = "5000000";

/// Fresh processes; the memory is the whole process's, its samples included.
pub fn measure(setup: &Setup) -> Result<Vec<Figure>> {
    let build = ["build", "--quiet", "--release", "-p", "stackglass-flame", "--example", "graph_speed"];
    if !succeeds(&mut cargo(&build))? {
        bail!("graph_speed does not build");
    }
    let program = target_folder().join("release/examples/graph_speed");
    let mut figures = Vec::new();
    for (arguments, what) in [(&[NODES][..], "a recording"), (&[NODES, "--data"], "a word buffer")] {
        let run = || -> Result<Value> {
            serde_json::from_str(&output(Command::new(&program).args(arguments))?).context("it prints JSON")
        };
        let report = (0..setup.either(9, 3)).map(|_| run()).collect::<Result<Vec<Value>>>()?;
        let column = |key: &str, scale: f64| -> Result<Vec<f64>> {
            let number =
                |report: &Value| report[key].as_f64().with_context(|| format!("it does not tell {key}"));
            report.iter().map(|report| Ok(number(report)? * scale)).collect()
        };
        let boxes = report[0]["boxes"].as_u64().context("it does not tell boxes")?;
        let wall = Interval::bootstrap(&column("wall_ns", 1e-6)?, median);
        let peak = Interval::range(&column("peak_kib", 1024e-6)?);
        let row = |part: &str| format!("5 million nodes of {what}: {part}");
        figures.push(
            Figure::must(row("wall time"), wall, Unit::Millis, Bound::AtMost(1000.0))
                .note(format!("{boxes} boxes")),
        );
        figures.push(Figure::must(row("memory"), peak, Unit::Megabytes, Bound::AtMost(1000.0)));
    }
    Ok(figures)
}
