//! Ways to run the same work in turns, and the additional cost of each.
//!
//! On a virtual machine, the CPU time of the same work varies by ten percent from minute to minute. Each way therefore works
//! in alternating slices. If the program reports its CPU time, that of other threads and processes is measured directly: it needs
//! no comparison with a plain run, and has none of its noise.

use super::figure::{Bound, Figure, Unit};
use super::setup::{Run, Setup};
use super::statistics::{Interval, median};
use anyhow::Result;

/// The way without a profiler.
pub const PLAIN: &str = "plain";
/// The way with inherited events, whose records nobody reads.
pub const FLOOR: &str = "floor";

/// One way to run the same work: its name and the words that come before the program's.
pub struct Way {
    /// Its name.
    pub name: &'static str,
    /// The words.
    pub before: Vec<String>,
}

/// Plain first, then Stackglass, then the peers that exist.
pub fn ways(setup: &Setup) -> Vec<Way> {
    let mut ways = vec![
        Way { name: PLAIN, before: Vec::new() },
        Way { name: "stackglass", before: setup.record(&setup.scratch("running.glass"), "1ms") },
    ];
    if let Some(before) = setup.peers.samply_record(&setup.scratch("running.json.gz")) {
        ways.push(Way { name: "samply", before });
    }
    if let Some(before) = setup.peers.perf_record("cpu-clock", &setup.scratch("running.data")) {
        ways.push(Way { name: "perf dwarf", before });
    }
    ways
}

/// The same, and the floor: a C program that opens inherited events, as `record` does without rights, and throws the records away.
///
/// # Errors
/// If it cannot be compiled.
pub fn ways_and_floor(setup: &Setup) -> Result<Vec<Way>> {
    let mut ways = ways(setup);
    ways.push(Way { name: FLOOR, before: setup.floor()? });
    Ok(ways)
}

/// One turn of one way.
#[derive(Clone, Copy)]
pub struct Slice {
    /// CPU time of all processes, s.
    pub whole: f64,
    /// CPU time of the program's thread by its report, s; NaN without report.
    pub thread: f64,
    /// Wall time, s.
    pub wall: f64,
}

impl Slice {
    fn from_run(run: &Run) -> Slice {
        let thread = run.number("thread_cpu_ns").unwrap_or(f64::NAN) * 1e-9;
        Slice { whole: run.tree_cpu, thread, wall: run.wall }
    }
}

/// A whole command of each way in each round; each round starts with another way.
pub fn rounds(setup: &Setup, ways: &[Way], program: &[String], rounds: usize) -> Result<Vec<Vec<Slice>>> {
    (0..rounds)
        .map(|round| {
            let mut slices = vec![None; ways.len()];
            for i in 0..ways.len() {
                let which = (i + round) % ways.len();
                let run = setup.run(&[&ways[which].before[..], program].concat())?;
                slices[which] = Some(Slice::from_run(&run));
            }
            Ok(slices.into_iter().flatten().collect())
        })
        .collect()
}

/// The additional time of a way, as median over the rounds.
pub fn added(rounds: &[Vec<Slice>], way: usize, pick: fn(&Slice) -> f64) -> f64 {
    median(&rounds.iter().map(|round| pick(&round[way]) / pick(&round[0]) - 1.0).collect::<Vec<_>>())
}

/// The additional time of a way for the whole command, if the thread reports its time: that of the thread, and that of
/// others.
pub fn added_in_parts(rounds: &[Vec<Slice>], way: usize) -> f64 {
    let others: Vec<f64> = rounds.iter().map(|round| round[way].whole / round[way].thread - 1.0).collect();
    (1.0 + added(rounds, way, |slice| slice.thread)) * (1.0 + median(&others)) - 1.0
}

/// The additional time of each way, and Stackglass's ratio to the peers. The bound next to `plain` is for Stackglass's.
pub fn compare(
    what: &str,
    ways: &[Way],
    rounds: &[Vec<Slice>],
    added: &dyn Fn(&[Vec<Slice>], usize) -> f64,
    bounds: &[(&str, f64)],
) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (peer, bound) in bounds.iter().filter(|(peer, _)| *peer != PLAIN) {
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
        let what = format!("{what}: {} adds", way.name);
        figures.push(match bounds.iter().find(|(peer, _)| i == 1 && *peer == PLAIN) {
            Some((_, bound)) => Figure::must(what, interval, Unit::Percent, Bound::AtMost(*bound)),
            None => Figure::told(what, interval, Unit::Percent),
        });
    }
    let work: f64 = rounds.iter().map(|round| round[0].whole).sum();
    if let Some(first) = figures.first_mut() {
        *first = first.clone().note(format!("{} slices, {work:.0} s of work", rounds.len()));
    }
    figures
}
