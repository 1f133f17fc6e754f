//! Cost while a program runs: commands in turn with the same work, more than ten seconds each.
//!
//! The cost of a short run (start, stop, symbols) is subtracted from each slice.

use crate::bench::figure::Figure;
use crate::bench::peers::large_tree;
use crate::bench::setup::Setup;
use crate::bench::statistics::median;
use crate::bench::turns::{Slice, added, added_in_parts, compare, rounds, ways};
use anyhow::{Context, Result};

/// The chain of 20 callers: the thread itself, what others use beside it, and the whole command.
pub fn chain(setup: &Setup) -> Result<Vec<Figure>> {
    let ways = ways(setup);
    let work = |amount: &str| setup.workload(&["chain", "--work", amount]);
    let rounds = rounds(setup, &ways, Some(&work("300")), &work("3300"), setup.either(40, 6))?;
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
pub fn ripgrep(setup: &Setup) -> Result<Vec<Figure>> {
    let ways = ways(setup);
    let small = setup.scratch("small-tree");
    std::fs::create_dir_all(&small)?;
    std::fs::write(small.join("text"), "words that are there\n")?;
    let rounds = rounds(
        setup,
        &ways,
        Some(&ripgrep_over(setup, &[small.display().to_string()])?),
        &ripgrep_command(setup, 1)?,
        setup.either(24, 4),
    )?;
    let whole = |rounds: &[Vec<Slice>], way: usize| added(rounds, way, |slice| slice.whole);
    let wall = |rounds: &[Vec<Slice>], way: usize| added(rounds, way, |slice| slice.wall);
    let bounds = [("samply", 0.6), ("perf dwarf", 0.4)];
    let mut figures = compare("whole command's CPU", &ways, &rounds, &whole, &bounds);
    figures.extend(compare("wall time", &ways, &rounds, &wall, &[]));
    Ok(figures)
}

/// ripgrep over the large tree, as many times over: about a second of CPU for each.
pub fn ripgrep_command(setup: &Setup, times: usize) -> Result<Vec<String>> {
    let tree = large_tree()?.display().to_string();
    ripgrep_over(setup, &vec![tree; times])
}

fn ripgrep_over(setup: &Setup, folders: &[String]) -> Result<Vec<String>> {
    let ripgrep = setup.peers.ripgrep.as_ref().context("ripgrep with debug info is missing")?;
    let flags = ["--no-ignore", "--hidden", "--threads", "2", "--count-matches", r"\w+\s+\w+\s+\w+e\b"];
    let mut words = vec![ripgrep.display().to_string()];
    words.extend(flags.map(str::to_owned));
    words.extend(folders.iter().cloned());
    Ok(words)
}
