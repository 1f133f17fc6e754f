//! The CPU time that a recording gives to each thread, compared with the kernel's clock of that thread.

use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::setup::Setup;
use crate::bench::statistics::Interval;
use anyhow::{Context, Result};
use serde_json::Value;

/// Threads with less CPU time are compared by absolute difference.
const ENOUGH_NS: f64 = 50e6;

/// The worst thread of each run, for threads that share two cores and for threads that sleep and wait.
pub fn measure(setup: &Setup) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (workload, what) in
        [("busy", "6 busy threads, worst"), ("mix", "cpu, holder and waiter of a lock, worst")]
    {
        let (mut worst, mut little) = (Vec::new(), Vec::new());
        for _ in 0..setup.either(5, 2) {
            let file = setup.scratch("cpu-time.glass");
            let run = setup.recorded(&file, "1ms", &[workload, "--seconds", setup.either("5", "2")])?;
            let (relative, absolute) = errors(&run.report, &setup.truth("threads", &file, &[])?)?;
            worst.push(relative);
            little.push(absolute * 1e-6);
        }
        figures.push(Figure::must(what, Interval::range(&worst), Unit::Percent, Bound::AtMost(0.01)));
        if workload == "mix" {
            let what = "thread that only sleeps, difference";
            figures.push(Figure::told(what, Interval::range(&little), Unit::Millis));
        }
    }
    Ok(figures)
}

/// Worst relative error of threads that used enough, worst absolute one (ns) of the others.
fn errors(own: &Value, seen: &Value) -> Result<(f64, f64)> {
    let own = own["threads"].as_array().context("the workload lists its threads")?;
    let seen = seen.as_array().context("the checker lists threads")?;
    let (mut relative, mut absolute) = (0.0_f64, 0.0_f64);
    for thread in own {
        let kernel = thread["cpu_ns"].as_f64().context("the workload tells CPU time")?;
        let ours = seen.iter().find(|other| other["tid"] == thread["tid"]);
        let ours = ours.and_then(|thread| thread["awake_ns"].as_f64()).unwrap_or(0.0);
        if kernel >= ENOUGH_NS {
            relative = relative.max((ours / kernel - 1.0).abs());
        } else {
            absolute = absolute.max((ours - kernel).abs());
        }
    }
    Ok((relative, absolute))
}
