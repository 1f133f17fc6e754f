//! 100 threads that wait in every way with a time-out: accuracy of their stacks, and interrupted waits.

use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::setup::Setup;
use crate::bench::statistics::Interval;
use anyhow::{Context, Result};
use serde_json::Value;

/// One long run; the workload itself counts broken waits and the time at each place.
pub fn measure(setup: &Setup) -> Result<Vec<Figure>> {
    let workload = ["sleepers", "--threads", "100", "--seconds", setup.either("20", "3")];
    let plain = setup.run(&setup.workload(&workload))?;
    let file = setup.scratch("sleepers.glass");
    let recorded = setup.recorded(&file, "1ms", &workload)?;
    let seen = setup.truth("sleepers", &file, &[])?;
    let places = |run: &Value| run["truth"].as_array().cloned().context("the workload tells its truth");
    let (before, own) = (places(&plain.report)?, places(&recorded.report)?);

    let asleep = seen["asleep_ns"].as_f64().unwrap_or(0.0);
    let right = seen["right_ns"].as_f64().unwrap_or(0.0) / asleep;
    let wrong =
        seen["wrong"][0].as_str().map_or(String::new(), |stack| format!("; first wrong one: {stack}"));
    let note = format!("{:.0} s asleep in all threads{wrong}", asleep * 1e-9);

    let waits: f64 = own.iter().filter_map(|place| place["waits"].as_f64()).sum();
    let broken = |places: &[Value]| places.iter().filter_map(|place| place["broken"].as_f64()).sum::<f64>();
    let added = broken(&own) - broken(&before);
    let where_broken: Vec<&str> = own
        .iter()
        .filter(|place| place["broken"].as_u64() > Some(0))
        .filter_map(|place| place["function"].as_str())
        .collect();
    let note_broken = format!("of {waits} waits {}", where_broken.join(", "));
    let time = Interval::exact(misplaced(&own, &seen["places"]));
    Ok(vec![
        Figure::must(
            "sleeping time with a correct stack",
            Interval::exact(right),
            Unit::Percent,
            Bound::AtLeast(0.99),
        )
        .note(note),
        Figure::must(
            "waits interrupted by a signal, added",
            Interval::exact(added),
            Unit::Count,
            Bound::AtMost(0.0),
        )
        .note(note_broken),
        Figure::told("time given to another place", time, Unit::Percent)
            .note("against the workload's own measurement"),
        signals(setup, &file)?,
    ])
}

/// Half the sum of differences between the workload's account and the recording, as shares.
fn misplaced(own: &[Value], seen: &Value) -> f64 {
    let truth: Vec<(f64, f64)> = own
        .iter()
        .map(|place| {
            let name = place["function"].as_str().unwrap_or("");
            (place["time_ns"].as_f64().unwrap_or(0.0), seen[name].as_f64().unwrap_or(0.0))
        })
        .collect();
    let (all_own, all_seen) = truth.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    truth.iter().map(|(own, seen)| (own / all_own - seen / all_seen).abs()).sum::<f64>() / 2.0
}

/// Signals sent to sleeping threads, by the recording's counters.
fn signals(setup: &Setup, file: &std::path::Path) -> Result<Figure> {
    let info = setup.truth("about", file, &[])?;
    let counters = &info["processes"][0]["counters"];
    let counted = |label: &str| counters[label].as_f64().unwrap_or(0.0);
    let note = format!(
        "{} stacks read from outside, {} recognised by place",
        counted("stacks of sleeping threads"),
        counted("sleeping stacks recognised")
    );
    let sent = Interval::exact(counted("signals to sleeping threads"));
    Ok(Figure::told("signals sent to sleeping threads", sent, Unit::Count).note(note))
}
