//! How much more memory a program has after a minute of being profiled.

use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::setup::Setup;
use crate::bench::statistics::Interval;
use anyhow::Result;

/// Resident memory with shared pages, at the end of the workload; both programs run side by side.
pub fn measure(setup: &Setup) -> Result<Vec<Figure>> {
    let seconds = setup.either("60", "5");
    let four: [&[&str]; 2] = [&["mix", "--seconds", "1"], &["mix", "--seconds", seconds]];
    let thousand: [&[&str]; 2] = [
        &["parked", "--threads", "1000", "--seconds", "0.2"],
        &["parked", "--threads", "1000", "--seconds", seconds],
    ];
    let added = |name: &str, [plain, long]: [&[&str]; 2]| -> Result<f64> {
        let plain = setup.run(&setup.workload(plain))?.number("rss_kib")?;
        let recorded = setup.recorded(&setup.scratch(name), "1ms", long)?.number("rss_kib")?;
        Ok((recorded - plain) * 1024e-6)
    };
    let (four, thousand) = std::thread::scope(|scope| {
        let four = scope.spawn(|| added("memory-4.glass", four));
        let thousand = added("memory-1000.glass", thousand);
        (four.join().expect("measuring does not panic"), thousand)
    });
    let figure = |what: &str, megabytes: f64, bound| {
        Figure::must(what, Interval::exact(megabytes), Unit::Megabytes, Bound::AtMost(bound))
    };
    Ok(vec![figure("4 threads", four?, 16.0), figure("1 000 threads", thousand?, 32.0)])
}
