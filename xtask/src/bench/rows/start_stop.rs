//! Time to start and stop around a program that does nothing.

use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::setup::Setup;
use crate::bench::statistics::{Interval, median};
use crate::run::output;
use crate::tools::in_process_program;
use anyhow::{Context, Result};
use serde_json::Value;
use std::process::Command;

/// The command and its peers around `workloads empty`, and the crate in a separate program.
pub fn measure(setup: &Setup) -> Result<Vec<Figure>> {
    let runs = setup.either(31, 9);
    let program = setup.workload(&["empty"]);
    let added = |before: &[String], runs: usize| -> Result<Interval> {
        let pairs = (0..runs)
            .map(|_| {
                let plain = setup.run(&program)?.wall;
                Ok((setup.run(&[before, &program].concat())?.wall - plain) * 1e3)
            })
            .collect::<Result<Vec<f64>>>()?;
        Ok(Interval::bootstrap(&pairs, median))
    };
    let ours = added(&setup.record(&setup.scratch("empty.glass"), "1ms"), runs)?;
    let note = format!("median of {runs} pairs, wall, report included");
    let mut figures = vec![Figure::must("command", ours, Unit::Millis, Bound::AtMost(15.0)).note(note)];
    figures.push(in_process(runs)?);
    for (name, before) in [
        ("samply", setup.peers.samply_record(&setup.scratch("empty.json.gz"))),
        ("perf dwarf", setup.peers.perf_record("cpu-clock", &setup.scratch("empty.data"))),
    ] {
        figures.push(match before.map(|before| added(&before, setup.either(7, 3))) {
            Some(Ok(interval)) => Figure::told(name, interval, Unit::Millis),
            Some(Err(error)) => Figure::missing(name, format!("{error:#}")),
            None => Figure::missing(name, "the peer is missing"),
        });
    }
    Ok(figures)
}

/// The crate: the first `profile!(())` of a new process, by its own clock.
fn in_process(runs: usize) -> Result<Figure> {
    let program = in_process_program()?;
    let times = (0..runs)
        .map(|_| {
            let report: Value = serde_json::from_str(&output(Command::new(&program).arg("start-stop"))?)?;
            Ok(report["first_ns"].as_f64().context("in-process tells first_ns")? * 1e-6)
        })
        .collect::<Result<Vec<f64>>>()?;
    let interval = Interval::bootstrap(&times, median);
    Ok(Figure::must("crate", interval, Unit::Millis, Bound::AtMost(3.0))
        .note("first profile!(()) of a process"))
}
