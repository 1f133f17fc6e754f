//! Cost of sampling 1 000 waiting threads 1 000 times a second.

use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::setup::{Run, Setup};
use crate::bench::statistics::{Interval, median};
use anyhow::Result;

/// Alternating pairs; figures start one second after the last thread.
pub fn measure(setup: &Setup) -> Result<Vec<Figure>> {
    let workload = ["parked", "--threads", "1000", "--work", setup.either("15000", "5000")];
    let pairs = (0..setup.either(7, 2))
        .map(|round| {
            let recorded = || setup.recorded(&setup.scratch("parked.glass"), "1ms", &workload);
            let plain = || setup.run(&setup.workload(&workload));
            let first = round % 2 == 0;
            let (a, b) = if first {
                (plain()?, recorded()?)
            } else {
                let b = recorded()?;
                (plain()?, b)
            };
            Ok((a, b))
        })
        .collect::<Result<Vec<(Run, Run)>>>()?;
    let added = |key: &'static str| -> Result<Interval> {
        let ratios = pairs
            .iter()
            .map(|(plain, recorded)| Ok(recorded.number(key)? / plain.number(key)? - 1.0))
            .collect::<Result<Vec<f64>>>()?;
        Ok(Interval::bootstrap(&ratios, median))
    };
    let switches = |pick: fn(&(Run, Run)) -> &Run| -> Result<Vec<f64>> {
        pairs.iter().map(|pair| pick(pair).number("parked_switches")).collect()
    };
    let plain = Interval::range(&switches(|pair| &pair.0)?);
    let recorded = Interval::range(&switches(|pair| &pair.1)?);
    let percent =
        |what: &str, interval, bound| Figure::must(what, interval, Unit::Percent, Bound::AtMost(bound));
    Ok(vec![
        percent("busy thread's CPU, added", added("busy_cpu_ns")?, 0.03)
            .note(format!("{} pairs", pairs.len())),
        percent("process's CPU, added (sampler thread included)", added("busy_process_cpu_ns")?, 0.10),
        Figure::must("voluntary switches of the parked", recorded, Unit::Count, Bound::AtMost(plain.high))
            .note("bound: without a profiler"),
    ])
}
