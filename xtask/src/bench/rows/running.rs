//! What it costs while a program runs for ten seconds and more: commands in turn, the same work.

use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::lab::{Lab, Run};
use crate::bench::peers::large_tree;
use crate::bench::statistics::{Interval, median};
use anyhow::{Context, Result};

/// One way to run the same work: its name and the words that come before the program's.
struct Way {
    name: &'static str,
    before: Vec<String>,
}

/// Plain first, then us, then the peers that are there.
fn ways(lab: &Lab) -> Vec<Way> {
    let mut ways = vec![
        Way { name: "plain", before: Vec::new() },
        Way { name: "stackglass", before: lab.record(&lab.scratch("running.glass"), "1ms") },
    ];
    if let Some(before) = lab.peers.samply_record(lab, &lab.scratch("running.json.gz")) {
        ways.push(Way { name: "samply", before });
    }
    if let Some(before) = lab.peers.perf_record("cpu-clock", &lab.scratch("running.data")) {
        ways.push(Way { name: "perf dwarf", before });
    }
    if let Some(before) = lab.peers.gperftools_record(&lab.scratch("running.prof")) {
        ways.push(Way { name: "gperftools (250 Hz in truth)", before });
    }
    ways
}

/// For each round the runs of all ways; each round begins with another way.
fn rounds(lab: &Lab, ways: &[Way], program: &[String], rounds: usize) -> Result<Vec<Vec<Run>>> {
    (0..rounds)
        .map(|round| {
            let mut runs = vec![None; ways.len()];
            for i in 0..ways.len() {
                let which = (i + round) % ways.len();
                let words = [&ways[which].before[..], program].concat();
                runs[which] = Some(lab.run(&words)?);
            }
            Ok(runs.into_iter().flatten().collect())
        })
        .collect()
}

/// Median over rounds of what a way adds to the plain run.
fn added(rounds: &[Vec<f64>], way: usize) -> f64 {
    median(&rounds.iter().map(|round| round[way] / round[0] - 1.0).collect::<Vec<_>>())
}

/// What each way adds, and our ratio to the peers'.
fn compare(what: &str, ways: &[Way], rounds: &[Vec<f64>], bounds: &[(&str, f64)]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (peer, bound) in bounds {
        let what = format!("{what}: stackglass ÷ {peer}");
        figures.push(match ways.iter().position(|way| way.name == *peer) {
            Some(peer) => {
                let ratio = |rounds: &[Vec<f64>]| added(rounds, 1) / added(rounds, peer);
                Figure::must(what, Interval::bootstrap(rounds, ratio), Unit::Times, Bound::AtMost(*bound))
            }
            None => Figure::missing(what, "the peer is missing"),
        });
    }
    for (i, way) in ways.iter().enumerate().skip(1) {
        let interval = Interval::bootstrap(rounds, |rounds| added(rounds, i));
        figures.push(Figure::told(format!("{what}: {} adds", way.name), interval, Unit::Percent));
    }
    let plain = median(&rounds.iter().map(|round| round[0]).collect::<Vec<_>>());
    if let Some(first) = figures.first_mut() {
        *first = first.clone().note(format!("{} rounds; alone {plain:.1} s", rounds.len()));
    }
    figures
}

/// The chain of 20 callers: the thread itself, and the whole command.
pub fn chain(lab: &Lab) -> Result<Vec<Figure>> {
    let ways = ways(lab);
    let program = lab.workload(&["chain", "--work", lab.either("32000", "8000")]);
    let runs = rounds(lab, &ways, &program, lab.either(8, 3))?;
    let column = |pick: &dyn Fn(&Run) -> Result<f64>| -> Result<Vec<Vec<f64>>> {
        runs.iter().map(|round| round.iter().map(pick).collect()).collect()
    };
    let thread = column(&|run| Ok(run.number("thread_cpu_ns")? * 1e-9))?;
    let whole = column(&|run| Ok(run.tree_cpu))?;
    let mut figures = compare("profiled thread's CPU", &ways, &thread, &[("samply", 0.7)]);
    figures.extend(compare("whole command's CPU", &ways, &whole, &[("samply", 0.8), ("perf dwarf", 0.4)]));
    Ok(figures)
}

/// ripgrep with full debug information, two threads, an expression that keeps it busy.
pub fn ripgrep(lab: &Lab) -> Result<Vec<Figure>> {
    let ways = ways(lab);
    let program = ripgrep_command(lab, lab.either(10, 1))?;
    let runs = rounds(lab, &ways, &program, lab.either(5, 2))?;
    let whole: Vec<Vec<f64>> =
        runs.iter().map(|round| round.iter().map(|run| run.tree_cpu).collect()).collect();
    let wall: Vec<Vec<f64>> = runs.iter().map(|round| round.iter().map(|run| run.wall).collect()).collect();
    let mut figures = compare("whole command's CPU", &ways, &whole, &[("samply", 0.6), ("perf dwarf", 0.4)]);
    figures.extend(compare("wall time", &ways, &wall, &[]));
    Ok(figures)
}

/// ripgrep over the large tree, as many times over: about a second of CPU for each.
pub fn ripgrep_command(lab: &Lab, times: usize) -> Result<Vec<String>> {
    let ripgrep = lab.peers.ripgrep.as_ref().context("ripgrep with debug info is missing")?;
    let tree = large_tree()?.display().to_string();
    let flags = ["--no-ignore", "--hidden", "--threads", "2", "--count-matches", r"\w+\s+\w+\s+\w+e\b"];
    let mut words = vec![ripgrep.display().to_string()];
    words.extend(flags.map(str::to_owned));
    words.extend(std::iter::repeat_n(tree, times));
    Ok(words)
}
