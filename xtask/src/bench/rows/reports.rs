//! Cost of reports of many words: Julia's buffer, and longer and longer recordings of the same stacks.

use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::setup::Setup;
use crate::bench::statistics::{Interval, median};
use crate::run::{cargo, output, succeeds, target_folder};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// `report_speed`, an example of the crate that makes the reports.
fn program() -> Result<PathBuf> {
    let build = ["build", "--quiet", "--release", "-p", "stackglass-report", "--example", "report_speed"];
    if !succeeds(&mut cargo(&build))? {
        bail!("report_speed does not build");
    }
    Ok(target_folder().join("release/examples/report_speed"))
}

/// One run in a new process.
fn run(program: &PathBuf, arguments: &[&str]) -> Result<Value> {
    serde_json::from_str(&output(Command::new(program).args(arguments))?).context("report_speed prints JSON")
}

fn number(report: &Value, key: &str) -> Result<f64> {
    report[key].as_f64().with_context(|| format!("report_speed does not tell {key}"))
}

/// The complete tree of ten million words, by the number of distinct stacks in them.
pub fn words(setup: &Setup) -> Result<Vec<Figure>> {
    let program = program()?;
    let mut figures = Vec::new();
    for (stacks, name) in [("1000", "1 000"), ("10000", "10 000"), ("100000", "100 000")] {
        for (more, lines) in [(None, "every line"), (Some("--shown"), "lines of 0.5 % and more")] {
            let mut arguments = vec!["data", "10000000", stacks];
            arguments.extend(more);
            let report =
                (0..setup.either(9, 3)).map(|_| run(&program, &arguments)).collect::<Result<Vec<Value>>>()?;
            let column = |key: &str, scale: f64| -> Result<Vec<f64>> {
                report.iter().map(|report| Ok(number(report, key)? * scale)).collect()
            };
            let wall = Interval::bootstrap(&column("tree_wall_ns", 1e-6)?, median);
            let (cpu, text) = (median(&column("tree_cpu_ns", 1e-6)?), median(&column("bytes", 1e-6)?));
            let peak = Interval::range(&column("peak_kib", 1024e-6)?);
            let what = |what: &str| format!("{name} distinct stacks, {lines}: {what}");
            let note = format!("CPU {cpu:.0} ms; {text:.1} MB of text");
            // Of a tree with more than a million lines, most of the time is the writing of text.
            let wall = match (stacks, more) {
                ("100000", None) => Figure::told(what("wall time"), wall, Unit::Millis),
                _ => Figure::must(what("wall time"), wall, Unit::Millis, Bound::AtMost(300.0)),
            };
            figures.push(wall.note(note));
            figures.push(Figure::must(what("memory"), peak, Unit::Megabytes, Bound::AtMost(1000.0)));
        }
    }
    Ok(figures)
}

/// Words that a recording of a curve expands to.
const WORDS: [&str; 5] = ["10000", "100000", "1000000", "10000000", "100000000"];

/// Trees of recordings of the same 200 stacks, from 10^4 to 10^8 expanded words.
pub fn curve(setup: &Setup) -> Result<Vec<Figure>> {
    let program = program()?;
    let mut figures = Vec::new();
    for (kind, what) in [("longer", "the same samples, longer"), ("entries", "an entry for each sample")] {
        let rounds = (0..setup.either(15, 5))
            .map(|_| {
                let fastest =
                    |words: &&str| number(&run(&program, &[kind, *words, "200"])?, "tree_fastest_ns");
                WORDS.iter().map(fastest).collect::<Result<Vec<f64>>>()
            })
            .collect::<Result<Vec<Vec<f64>>>>()?;
        let at = |rounds: &[Vec<f64>], which: usize| {
            median(&rounds.iter().map(|round| round[which] * 1e-6).collect::<Vec<_>>())
        };
        let curve: Vec<String> = (0..WORDS.len()).map(|which| format!("{:.2}", at(&rounds, which))).collect();
        let last = WORDS.len() - 1;
        let growth = Interval::bootstrap(&rounds, |rounds| at(rounds, last) / at(rounds, 0));
        let row = format!("{what}: time at 10^8 words ÷ at 10^4");
        let note = format!("10^4 to 10^8 words: {} ms", curve.join(", "));
        figures.push(match kind {
            // Ten thousand times the words may cost a tenth more.
            "longer" => Figure::must(row, growth, Unit::Times, Bound::AtMost(1.1)).note(note),
            _ => Figure::told(row, growth, Unit::Times).note(note),
        });
    }
    Ok(figures)
}
