//! A program sampled from outside, by each driver: the share of stacks that are exactly right, and the additional time of
//! one busy thread.
//!
//! The time is wall time, since a stopped thread uses no CPU time. For drivers that stop no thread, it is also CPU time, which
//! other load does not increase. The same work runs in alternating slices. A short run next to each slice measures the
//! start, which is subtracted. The sampling process starts before the work and ends with it.

use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::setup::Setup;
use crate::bench::statistics::{Interval, median};
use anyhow::Result;
use std::path::Path;
use std::time::Duration;

/// Names of the drivers, and the bounds on their cost.
const DRIVERS: [(&str, f64); 1] = [("perf", 0.03)];

/// Accuracy, then cost.
pub fn measure(setup: &Setup) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (driver, _) in DRIVERS {
        for depth in ["20", "200", "2000"] {
            figures.push(stacks(setup, driver, depth)?);
        }
    }
    figures.extend(costs(setup)?);
    Ok(figures)
}

/// Stacks of a known chain of calls.
fn stacks(setup: &Setup, driver: &str, depth: &str) -> Result<Figure> {
    let file = setup.scratch("attach-chain.glass");
    let looked_at = looked_at(setup, driver, "250us", &file);
    let chain = setup.workload(&["chain", "--depth", depth, "--seconds", setup.either("5", "1")]);
    setup.run(&[looked_at, chain].concat())?;
    std::thread::sleep(Duration::from_millis(500));
    let truth = setup.truth("chain", &file, &[depth])?;
    let number = |key: &str| truth[key].as_u64().unwrap_or(0);
    let interval = Interval::share(number("right"), number("hits"));
    let what = format!("{driver}, correct stacks, depth {depth}");
    Ok(Figure::must(what, interval, Unit::Percent, Bound::AtLeast(0.999)).note(format!(
        "{} stacks, {} outside the chain",
        number("hits"),
        number("outside")
    )))
}

/// The additional time of each driver.
fn costs(setup: &Setup) -> Result<Vec<Figure>> {
    let mut rounds: Vec<[Times; 2]> = Vec::new();
    for round in 0..setup.either(60, 4) {
        let mut times = [Times::default(); 2];
        for i in 0..times.len() {
            let which = (i + round) % times.len();
            let driver = which.checked_sub(1).map(|i| DRIVERS[i].0);
            let (long, short) = (slice(setup, driver, "1800")?, slice(setup, driver, "300")?);
            times[which] = Times { wall: long.wall - short.wall, cpu: long.cpu - short.cpu };
        }
        rounds.push(times);
    }
    let added = |which: usize, time: fn(&Times) -> f64| {
        let added = |rounds: &[[Times; 2]]| {
            median(&rounds.iter().map(|r| time(&r[which]) / time(&r[0]) - 1.0).collect::<Vec<_>>())
        };
        Interval::bootstrap(&rounds, added)
    };
    let work: f64 = rounds.iter().map(|times| times[0].wall).sum();
    let note = format!("{} slices, {work:.0} s of work", rounds.len());
    let mut figures = Vec::new();
    for (i, (name, bound)) in DRIVERS.iter().enumerate() {
        let what = format!("one busy thread at 1 kHz, wall time: {name} adds");
        let wall = added(i + 1, |times| times.wall);
        figures.push(Figure::must(what, wall, Unit::Percent, Bound::AtMost(*bound)).note(note.clone()));
        let what = format!("one busy thread at 1 kHz, its CPU time: {name} adds");
        figures.push(Figure::told(what, added(i + 1, |times| times.cpu), Unit::Percent));
    }
    Ok(figures)
}

/// The times of some work, s.
#[derive(Clone, Copy, Default)]
struct Times {
    wall: f64,
    /// CPU time of the working thread.
    cpu: f64,
}

/// The start of a command line whose program is sampled from start to end.
fn looked_at(setup: &Setup, driver: &str, delay: &str, file: &Path) -> Vec<String> {
    // The shell becomes the workload, so that there is one process.
    let script = format!(
        "'{}' record -q --driver {driver} --delay {delay} -o '{}' --pid $$ 2>/dev/null & sleep 0.1; exec \"$@\"",
        setup.tools.stackglass.display(),
        file.display()
    );
    ["sh".into(), "-c".into(), script, "sh".into()].to_vec()
}

/// Runs some work, sampled or not.
fn slice(setup: &Setup, driver: Option<&str>, work: &str) -> Result<Times> {
    let before = driver
        .map_or_else(Vec::new, |driver| looked_at(setup, driver, "1ms", &setup.scratch("attach.glass")));
    let run = setup.run(&[before, setup.workload(&["chain", "--work", work])].concat())?;
    // The sampling process writes its file afterwards, which must not disturb the next slice.
    std::thread::sleep(Duration::from_millis(if driver.is_some() { 400 } else { 0 }));
    Ok(Times { wall: run.wall, cpu: run.number("cpu_ns")? * 1e-9 })
}
