//! What it costs while a program runs: commands in turn, the same work, more than ten seconds of it for each.
//!
//! On a virtual machine the same work takes ten percent more CPU time in one minute than in the next. So each way works
//! in slices of a second or two that take turns; and each slice has a short twin, whose cost (start, stop, symbols) is
//! taken off. What other threads and processes than the program's own use is measured by itself where the program
//! tells its CPU time: it needs no comparison with a plain run, and has none of its noise.

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

/// One turn of one way.
#[derive(Clone, Copy)]
struct Slice {
    /// CPU time of everything, less the short twin's, s.
    whole: f64,
    /// CPU time of the program's thread by its own account, less the short twin's, s; NaN if it gives none.
    thread: f64,
    /// Wall time less the short twin's, s.
    wall: f64,
}

impl Slice {
    fn between(short: &Run, long: &Run) -> Slice {
        let thread = |run: &Run| run.number("thread_cpu_ns").unwrap_or(f64::NAN) * 1e-9;
        Slice {
            whole: long.tree_cpu - short.tree_cpu,
            thread: thread(long) - thread(short),
            wall: long.wall - short.wall,
        }
    }
}

/// For each round a slice of all ways; each round begins with another way.
fn rounds(
    lab: &Lab,
    ways: &[Way],
    short: &[String],
    long: &[String],
    rounds: usize,
) -> Result<Vec<Vec<Slice>>> {
    (0..rounds)
        .map(|round| {
            let mut slices = vec![None; ways.len()];
            for i in 0..ways.len() {
                let which = (i + round) % ways.len();
                let run = |program: &[String]| lab.run(&[&ways[which].before[..], program].concat());
                slices[which] = Some(Slice::between(&run(short)?, &run(long)?));
            }
            Ok(slices.into_iter().flatten().collect())
        })
        .collect()
}

/// Median over rounds of what a way adds to the plain slice.
fn added(rounds: &[Vec<Slice>], way: usize, pick: fn(&Slice) -> f64) -> f64 {
    median(&rounds.iter().map(|round| pick(&round[way]) / pick(&round[0]) - 1.0).collect::<Vec<_>>())
}

/// What a way adds to the whole command where the thread tells its own time: what the thread needs more, and what
/// others use beside it.
fn added_in_parts(rounds: &[Vec<Slice>], way: usize) -> f64 {
    let others: Vec<f64> = rounds.iter().map(|round| round[way].whole / round[way].thread - 1.0).collect();
    (1.0 + added(rounds, way, |slice| slice.thread)) * (1.0 + median(&others)) - 1.0
}

/// What each way adds, and our ratio to the peers'.
fn compare(
    what: &str,
    ways: &[Way],
    rounds: &[Vec<Slice>],
    added: &dyn Fn(&[Vec<Slice>], usize) -> f64,
    bounds: &[(&str, f64)],
) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (peer, bound) in bounds {
        let what = format!("{what}: stackglass ÷ {peer}");
        figures.push(match ways.iter().position(|way| way.name == *peer) {
            Some(peer) => {
                let ratio = |rounds: &[Vec<Slice>]| added(rounds, 1) / added(rounds, peer);
                Figure::must(what, Interval::bootstrap(rounds, ratio), Unit::Times, Bound::AtMost(*bound))
            }
            None => Figure::missing(what, "the peer is missing"),
        });
    }
    for (i, way) in ways.iter().enumerate().skip(1) {
        let interval = Interval::bootstrap(rounds, |rounds| added(rounds, i));
        figures.push(Figure::told(format!("{what}: {} adds", way.name), interval, Unit::Percent));
    }
    let work: f64 = rounds.iter().map(|round| round[0].whole).sum();
    if let Some(first) = figures.first_mut() {
        *first = first.clone().note(format!("{} slices, {work:.0} s of work", rounds.len()));
    }
    figures
}

/// The chain of 20 callers: the thread itself, what others use beside it, and the whole command.
pub fn chain(lab: &Lab) -> Result<Vec<Figure>> {
    let ways = ways(lab);
    let work = |amount: &str| lab.workload(&["chain", "--work", amount]);
    let rounds = rounds(lab, &ways, &work("300"), &work("3300"), lab.either(40, 6))?;
    let thread = |rounds: &[Vec<Slice>], way: usize| added(rounds, way, |slice| slice.thread);
    let beside = |rounds: &[Vec<Slice>], way: usize| {
        median(&rounds.iter().map(|round| round[way].whole / round[way].thread - 1.0).collect::<Vec<_>>())
    };
    let mut figures = compare("profiled thread's CPU", &ways, &rounds, &thread, &[("samply", 0.7)]);
    figures.extend(compare("CPU beside the thread", &ways, &rounds, &beside, &[]));
    let bounds = [("samply", 0.8), ("perf dwarf", 0.4)];
    figures.extend(compare("whole command's CPU", &ways, &rounds, &added_in_parts, &bounds));
    Ok(figures)
}

/// ripgrep with full debug information, two threads, an expression that keeps it busy.
pub fn ripgrep(lab: &Lab) -> Result<Vec<Figure>> {
    let ways = ways(lab);
    let small = lab.scratch("small-tree");
    std::fs::create_dir_all(&small)?;
    std::fs::write(small.join("text"), "words that are there\n")?;
    let rounds = rounds(
        lab,
        &ways,
        &ripgrep_over(lab, &[small.display().to_string()])?,
        &ripgrep_command(lab, 1)?,
        lab.either(24, 4),
    )?;
    let whole = |rounds: &[Vec<Slice>], way: usize| added(rounds, way, |slice| slice.whole);
    let wall = |rounds: &[Vec<Slice>], way: usize| added(rounds, way, |slice| slice.wall);
    let bounds = [("samply", 0.6), ("perf dwarf", 0.4)];
    let mut figures = compare("whole command's CPU", &ways, &rounds, &whole, &bounds);
    figures.extend(compare("wall time", &ways, &rounds, &wall, &[]));
    Ok(figures)
}

/// ripgrep over the large tree, as many times over: about a second of CPU for each.
pub fn ripgrep_command(lab: &Lab, times: usize) -> Result<Vec<String>> {
    let tree = large_tree()?.display().to_string();
    ripgrep_over(lab, &vec![tree; times])
}

fn ripgrep_over(lab: &Lab, folders: &[String]) -> Result<Vec<String>> {
    let ripgrep = lab.peers.ripgrep.as_ref().context("ripgrep with debug info is missing")?;
    let flags = ["--no-ignore", "--hidden", "--threads", "2", "--count-matches", r"\w+\s+\w+\s+\w+e\b"];
    let mut words = vec![ripgrep.display().to_string()];
    words.extend(flags.map(str::to_owned));
    words.extend(folders.iter().cloned());
    Ok(words)
}
