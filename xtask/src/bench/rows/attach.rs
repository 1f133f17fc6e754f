//! What it costs a program to be looked at from outside, by each driver: the time that one busy thread needs more.
//!
//! Wall time, since a thread that stands uses no CPU time. The same work in slices that take turns, each with a
//! short twin that takes the start off; the looking process begins before the work does and ends with it.

use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::lab::Lab;
use crate::bench::statistics::{Interval, median};
use anyhow::Result;
use std::time::Duration;

/// Names of the drivers and what each may cost.
const DRIVERS: [(&str, f64); 2] = [("ptrace", 0.06), ("perf", 0.03)];

/// What each driver adds.
pub fn measure(lab: &Lab) -> Result<Vec<Figure>> {
    let mut rounds: Vec<[f64; 3]> = Vec::new();
    for round in 0..lab.either(30, 4) {
        let mut walls = [f64::NAN; 3];
        for i in 0..walls.len() {
            let which = (i + round) % walls.len();
            let driver = which.checked_sub(1).map(|i| DRIVERS[i].0);
            walls[which] = slice(lab, driver, "1800")? - slice(lab, driver, "300")?;
        }
        rounds.push(walls);
    }
    Ok(DRIVERS
        .iter()
        .enumerate()
        .map(|(i, (name, bound))| {
            let added = |rounds: &[[f64; 3]]| {
                median(&rounds.iter().map(|walls| walls[i + 1] / walls[0] - 1.0).collect::<Vec<_>>())
            };
            let interval = Interval::bootstrap(&rounds, added);
            let what = format!("one busy thread at 1 kHz, wall time: {name} adds");
            let work: f64 = rounds.iter().map(|walls| walls[0]).sum();
            Figure::must(what, interval, Unit::Percent, Bound::AtMost(*bound))
                .note(format!("{} slices, {work:.0} s of work", rounds.len()))
        })
        .collect())
}

/// Wall time of some work, s.
fn slice(lab: &Lab, driver: Option<&str>, work: &str) -> Result<f64> {
    let before = driver.map_or_else(Vec::new, |driver| {
        // The shell becomes the workload: whoever looks at it sees one process.
        let script = format!(
            "'{}' record -q --driver {driver} -o '{}' --pid $$ 2>/dev/null & sleep 0.1; exec \"$@\"",
            lab.tools.stackglass.display(),
            lab.scratch("attach.glass").display()
        );
        ["sh".into(), "-c".into(), script, "sh".into()].to_vec()
    });
    let run = lab.run(&[before, lab.workload(&["chain", "--work", work])].concat())?;
    // The looking process writes its file after that, and must not be the next slice's noise.
    std::thread::sleep(Duration::from_millis(if driver.is_some() { 400 } else { 0 }));
    Ok(run.wall)
}
