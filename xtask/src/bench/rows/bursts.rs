//! Programs that work in short bursts, compared with their own account: alone, and next to two busy threads.
//!
//! Every single run must pass: time and number of stacks of each function within three sigma, and one stack for each
//! millisecond. `bench/truth` has the rules.

use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::setup::Setup;
use crate::bench::statistics::Interval;
use crate::run::output;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// Workload, burst and pause in us, and the number of bursts: a second or two of CPU time.
const SHAPES: &[(&str, &str, &str, u64)] = &[
    ("burst-sleep", "15", "50", 60_000),
    ("burst-sleep", "60", "300", 20_000),
    ("burst-sleep", "400", "1000", 4_000),
    ("burst-sleep", "5000", "10000", 400),
    ("burst-mixed", "0", "0", 2_500),
    ("burst-timer", "15", "200", 60_000),
    ("burst-timer", "100", "900", 10_000),
    ("burst-timer", "1500", "2500", 1_000),
    ("burst-pipe", "15", "0", 50_000),
    ("burst-pipe", "200", "500", 5_000),
    ("burst-socket", "60", "0", 15_000),
    ("burst-socket", "400", "2000", 2_000),
    ("burst-socket", "2000", "5000", 400),
];

/// Hits for each millisecond that a function really used, over all runs of a shape.
type Sums = BTreeMap<String, (f64, f64)>;

/// All shapes, alone and next to busy threads; a peer for the first of each kind.
pub fn measure(setup: &Setup) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (condition, beside) in [("quiet", 0), ("beside two busy threads", 2)] {
        let mut ratios = Vec::new();
        for (workload, burst, pause, bursts) in SHAPES {
            let bursts = (bursts / setup.either(1, 2)).to_string();
            let program = [workload, "--burst", burst, "--pause", pause, "--work", &bursts];
            let lengths = if *workload == "burst-mixed" {
                "all lengths".into()
            } else {
                format!("{burst} us, pause {pause} us")
            };
            let what = format!("{workload}, {lengths}, {condition}: runs that hold");
            let (figure, sums) = shape(setup, &program, beside, what)?;
            ratios.extend(sums.values().map(|(hits, expected)| hits / expected));
            figures.push(figure);
        }
        let what = format!("hits for each true ms, {condition}");
        let figure = Figure::must(what, Interval::range(&ratios), Unit::Times, Bound::Within(0.9, 1.1));
        figures.push(figure.note("each function of each shape, all its runs together"));
    }
    figures.push(perf(setup));
    Ok(figures)
}

fn shape(setup: &Setup, program: &[&str], beside: usize, what: String) -> Result<(Figure, Sums)> {
    let (mut held, mut worst, mut sums, mut fault) = (0, 0.0_f64, Sums::new(), None);
    let runs = setup.either(8, 2);
    for _ in 0..runs {
        let judged = judged(setup, program, beside)?;
        for function in judged["functions"].as_array().context("the judge lists functions")? {
            let number = |key: &str| function[key].as_f64().unwrap_or(f64::NAN);
            worst = worst.max(number("sigma_of_hits").abs()).max(number("sigma_of_time").abs());
            let name = function["function"].as_str().unwrap_or_default();
            let (hits, expected) = sums.entry(name.to_owned()).or_default();
            *hits += number("hits");
            *expected += number("expected");
        }
        let faults = judged["faults"].as_array().context("the judge lists faults")?;
        held += usize::from(faults.is_empty());
        fault = fault.or_else(|| faults.first().and_then(Value::as_str).map(str::to_owned));
    }
    let ratios: Vec<String> =
        sums.iter().map(|(name, (hits, expected))| format!("{name} {:.2}", hits / expected)).collect();
    let fault = fault.map_or(String::new(), |fault| format!("; first fault: {fault}"));
    let note = format!("worst {worst:.1} sigma; hits for each ms: {}{fault}", ratios.join(", "));
    let bound = Bound::AtLeast(runs as f64);
    Ok((Figure::must(what, Interval::exact(held as f64), Unit::Count, bound).note(note), sums))
}

/// One run and its verdict.
fn judged(setup: &Setup, program: &[&str], beside: usize) -> Result<Value> {
    let (file, account) = (setup.scratch("bursts.glass"), setup.scratch("bursts.account"));
    let mut words = if beside > 0 { setup.workload(&["beside", &beside.to_string()]) } else { Vec::new() };
    words.extend(setup.record(&file, "1ms"));
    words.extend(setup.workload(program));
    let run = setup.run(&words)?;
    std::fs::write(&account, run.report.to_string())?;
    setup.truth("bursts", &file, &[&account.display().to_string()])
}

/// perf's stacks of the second shape, alone: the same program by the kernel's clock event.
fn perf(setup: &Setup) -> Figure {
    let what = "perf record, burst-sleep, 60 us, pause 300 us, quiet: hits for each true ms";
    let measured = || -> Result<Interval> {
        let data = setup.scratch("bursts.data");
        let before = setup.peers.perf_record("cpu-clock", &data).context("perf is missing")?;
        let program = setup.workload(&["burst-sleep", "--work", setup.either("20000", "8000")]);
        let run = setup.run(&[&before[..], &program].concat())?;
        let text = output(Command::new("perf").args(["script", "-F", "comm,tid,ip,sym", "-i"]).arg(&data))?;
        let functions = run.report["truth"].as_array().context("the workload tells its truth")?;
        let ratios: Vec<f64> = functions
            .iter()
            .filter_map(|function| {
                let name = format!("::{}", function["function"].as_str()?);
                let hits = text.split("\n\n").filter(|stack| stack.contains(&name)).count() as f64;
                Some(hits / (function["cpu_ns"].as_f64()? * 1e-6 * 0.999))
            })
            .collect();
        Ok(Interval::range(&ratios))
    };
    match measured() {
        Ok(interval) => Figure::told(what, interval, Unit::Times).note("each function"),
        Err(error) => Figure::missing(what, format!("{error:#}")),
    }
}
