//! Time from the end of a program to its report, for ripgrep with full debug information.

use super::running::ripgrep_command;
use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::setup::Setup;
use crate::bench::statistics::{Interval, median};
use anyhow::{Context, Result};
use std::time::Instant;

/// `workloads measured` runs the profiled program and records its end.
pub fn measure(setup: &Setup) -> Result<Vec<Figure>> {
    let stamp = setup.scratch("report-time.stamp");
    let stamped = [
        vec![setup.tools.workloads.display().to_string(), "measured".into(), stamp.display().to_string()],
        ripgrep_command(setup, 1)?,
    ]
    .concat();
    // Milliseconds from the program's end to the end of the command.
    let after = |before: &[String]| -> Result<f64> {
        let _ = std::fs::remove_file(&stamp);
        let run = setup.run(&[before, &stamped].concat())?;
        let end = Setup::measured(&stamp)?["end_ns"].as_f64().context("no stamp")?;
        Ok(run.end * 1e3 - end * 1e-6)
    };
    let times = |runs: usize, before: Vec<String>| -> Result<Interval> {
        let times = (0..runs).map(|_| after(&before)).collect::<Result<Vec<f64>>>()?;
        Ok(Interval::bootstrap(&times, median))
    };
    let ours = times(setup.either(11, 3), setup.record(&setup.scratch("report-time.glass"), "1ms"))?;
    let mut figures = vec![Figure::must(
        "stackglass record, to the end of its report",
        ours,
        Unit::Millis,
        Bound::AtMost(250.0),
    )];

    let samply = setup.peers.samply_record(&setup.scratch("report-time.json.gz"));
    let samply = samply.context("samply is missing").and_then(|before| times(3, before));
    figures.push(told("samply record, symbols written", samply));
    figures.push(told("perf record, then perf script with inlined functions", perf(setup, &after)));
    Ok(figures)
}

fn told(what: &str, interval: Result<Interval>) -> Figure {
    match interval {
        Ok(interval) => Figure::told(what, interval, Unit::Millis),
        Err(error) => Figure::missing(what, format!("{error:#}")),
    }
}

fn perf(setup: &Setup, after: &dyn Fn(&[String]) -> Result<f64>) -> Result<Interval> {
    let data = setup.scratch("report-time.data");
    let before = setup.peers.perf_record("cpu-clock", &data).context("perf is missing")?;
    let recorded = after(&before)?;
    let begin = Instant::now();
    let script = ["perf", "script", "-i"].map(str::to_owned);
    setup.run(&[&script[..], &[data.display().to_string()]].concat())?;
    Ok(Interval::exact(recorded + begin.elapsed().as_secs_f64() * 1e3))
}
