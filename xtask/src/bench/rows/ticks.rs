//! The share of due ticks that are taken on computing threads.

use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::setup::Setup;
use crate::bench::statistics::Interval;
use anyhow::{Context, Result};
use serde_json::Value;

const DELAY: f64 = 1e-3;

/// Share of a core that one busy thread gets on an idle machine.
const IDLE: f64 = 0.95;

/// One busy thread, and six on all cores.
pub fn measure(setup: &Setup) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (threads, what, bound) in [
        ("1", "hits of one busy thread, of its wall time", 0.99),
        ("6", "hits of 6 busy threads, of their CPU time", 0.85),
    ] {
        let mut shares = Vec::new();
        let mut ticks = Vec::new();
        let mut hits_of_all = 0.0;
        let mut least_core = f64::INFINITY;
        for _ in 0..setup.either(5, 2) {
            let file = setup.scratch("ticks.glass");
            let run = setup.recorded(
                &file,
                "1ms",
                &["busy", "--threads", threads, "--seconds", setup.either("6", "2")],
            )?;
            least_core = least_core
                .min(run.report["threads"][0]["cpu_ns"].as_f64().unwrap_or(0.0) / run.number("wall_ns")?);
            let hits = hits_of_busy(&setup.truth("threads", &file, &[])?)?;
            let expected = run.number(if threads == "1" { "wall_ns" } else { "cpu_ns" })? * 1e-9 / DELAY;
            hits_of_all += hits;
            let counted = setup.truth("about", &file, &[])?["processes"][0]["counters"]["ticks"].as_f64();
            ticks.push(
                counted.context("the recording counts ticks")? / (run.number("wall_ns")? * 1e-9 / DELAY),
            );
            shares.push(hits / expected);
        }
        if threads == "1" && least_core < IDLE {
            let got =
                format!("the machine is not idle: the thread got only {:.0} % of a core", least_core * 100.0);
            figures.push(Figure::missing(what, got));
            continue;
        }
        let core = format!("; it had at least {:.1} % of a core", least_core * 100.0);
        let more = if threads == "1" { core } else { String::new() };
        let figure = Figure::must(what, Interval::range(&shares), Unit::Percent, Bound::AtLeast(bound));
        figures.push(figure.note(format!("{hits_of_all} hits{more}")));
        let what = format!("ticks of the sampler meanwhile, {threads} busy");
        figures.push(Figure::must(what, Interval::range(&ticks), Unit::Percent, Bound::AtLeast(bound)));
    }
    Ok(figures)
}

fn hits_of_busy(threads: &Value) -> Result<f64> {
    let threads = threads.as_array().context("the checker lists threads")?;
    let busy =
        threads.iter().filter(|thread| thread["name"].as_str().is_some_and(|name| name.starts_with("busy")));
    Ok(busy.filter_map(|thread| thread["hits_awake"].as_f64()).sum())
}
