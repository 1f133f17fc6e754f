//! Heap snapshots of a program whose heap is known: its pause, the time and memory of the command, and the leaks that it reports.
//!
//! The pause is what a thread of the program sees that looks at the clock all the time. It includes what the machine does beside.

use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::setup::{Run, Setup};
use crate::bench::statistics::{Interval, median};
use crate::run::output;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The program's blocks, about, and the bounds for them: seconds, and milliseconds of the pause.
const SIZES: [(&str, &str, f64, f64); 2] =
    [("1 M blocks", "177000", 1.5, 5.0), ("10 M blocks", "1770000", 12.0, 20.0)];
/// Largest memory of the command, in bytes for each block.
const BYTES: f64 = 60.0;

/// Time, pause and memory by size; leaks.
pub fn measure(setup: &Setup) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (name, work, seconds, pause) in &SIZES[..setup.either(2, 1)] {
        figures.extend(snapshots(setup, name, work, *seconds, *pause)?);
    }
    Ok(figures)
}

/// One snapshot: the cost of the command, what the program reports, and what the snapshot contains.
struct Taken {
    cost: Run,
    program: Value,
    shown: Value,
}

fn snapshots(setup: &Setup, name: &str, work: &str, seconds: f64, pause: f64) -> Result<Vec<Figure>> {
    let rounds = (0..setup.either(4, 1)).map(|_| snapshot(setup, work)).collect::<Result<Vec<Taken>>>()?;
    let of = |number: &dyn Fn(&Taken) -> f64| {
        Interval::bootstrap(&rounds.iter().map(number).collect::<Vec<f64>>(), median)
    };
    let last = rounds.last().context("no rounds")?;
    let blocks = last.shown["nodes"].as_f64().context("heap show counts nodes")?;
    let leaked = last.program["leaked"].as_f64().context("the program counts leaked blocks")?;
    let unreached = last.shown["unreachable"]["count"].as_f64().context("heap show counts leaks")?;
    let memory = of(&|taken| taken.cost.peak * 1e6 / blocks);
    let paused = of(&|taken| taken.program["longest_pause_us"].as_f64().unwrap_or(f64::NAN) / 1e3);
    Ok(vec![
        Figure::must(
            format!("{name}, whole command"),
            of(&|taken| taken.cost.wall * 1e3),
            Unit::Millis,
            Bound::AtMost(seconds * 1e3),
        )
        .note(format!("{blocks:.0} nodes")),
        Figure::must(
            format!("{name}, longest pause of the program"),
            paused,
            Unit::Millis,
            Bound::AtMost(pause),
        ),
        Figure::must(
            format!("{name}, memory of the command, bytes a block"),
            memory,
            Unit::Count,
            Bound::AtMost(BYTES),
        ),
        Figure::must(
            format!("{name}, leaked blocks that are reported"),
            Interval::exact(unreached / leaked),
            Unit::Percent,
            Bound::Within(0.99, 1.0),
        )
        .note(format!("{unreached:.0} of {leaked:.0}")),
    ])
}

fn snapshot(setup: &Setup, work: &str) -> Result<Taken> {
    let file = setup.scratch("bench.heapsnapshot");
    let mut program = Command::new(&setup.tools.stackglass)
        .args(["run", "--allocs", "--"])
        .args(setup.workload(&["live-graph", "--work", work, "--seconds", setup.either("20", "6")]))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let taken = while_it_runs(setup, &mut program, &file);
    let mut report = String::new();
    program.stdout.take().context("no output")?.read_to_string(&mut report)?;
    program.wait()?;
    let (cost, shown) = taken?;
    Ok(Taken { cost, shown, program: serde_json::from_str(&report).context("the workload prints JSON")? })
}

fn while_it_runs(setup: &Setup, program: &mut Child, file: &Path) -> Result<(Run, Value)> {
    let mut lines = BufReader::new(program.stderr.take().context("no output")?).lines();
    if !lines.any(|line| line.is_ok_and(|line| line == "ready")) {
        bail!("the workload did not get ready");
    }
    let launcher = program.id();
    let children = std::fs::read_to_string(format!("/proc/{launcher}/task/{launcher}/children"))?;
    let pid = children.split_ascii_whitespace().next().context("no program")?.to_owned();
    let words = ["heap", "take", &pid, "-o"].map(str::to_owned);
    let stackglass = setup.tools.stackglass.display().to_string();
    let cost = setup.run(&[&[stackglass][..], &words, &[file.display().to_string()]].concat())?;
    let shown = output(Command::new(&setup.tools.stackglass).args(["heap", "show", "--json"]).arg(file))?;
    Ok((cost, serde_json::from_str(&shown).context("heap show --json prints JSON")?))
}
