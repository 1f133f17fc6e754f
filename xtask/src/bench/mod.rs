//! `cargo xtask bench`: accuracy and cost of the profiler, next to its peers.
//!
//! Each group of rows measures in alternating pairs. Figures are intervals, and fail only if the whole interval is beyond the
//! bound. Results go to `bench/RESULTS.md`; groups that are not measured keep their former figures and dates.

mod builds;
mod figure;
mod made_c;
mod made_json;
mod others;
mod peers;
mod results;
mod rows;
mod setup;
mod statistics;
mod tree_memory;
mod turns;

use anyhow::{Result, bail};
use figure::{Figure, Verdict};
use others::Others;
use setup::Setup;
use std::path::PathBuf;
use std::time::Instant;

/// A group of rows: its name on the command line, its title, and the function that measures it.
type Group = (&'static str, &'static str, fn(&Setup) -> Result<Vec<Figure>>);

const GROUPS: &[Group] = &[
    ("ticks", "Ticks taken at 1 kHz", rows::ticks::measure),
    ("sample-cost", "Cost of a sample to the profiled thread", rows::sample_cost::measure),
    ("task-poll", "Cost of a task to each poll", rows::task_poll::measure),
    ("busy-cost", "Whole command, start and stop included: one busy thread, 4 s", rows::whole_commands::busy),
    ("compiler-cost", "Whole command: gcc -O1 -g of a large file", rows::whole_commands::compiler),
    ("processes-cost", "Whole command: sh and 300 short processes", rows::whole_commands::short_processes),
    ("make-cost", "Whole command: make -j2 of a small project", rows::whole_commands::make),
    ("search-cost", "Whole command: ripgrep over 400 MB", rows::whole_commands::search),
    (
        "sleeps-cost",
        "Whole command: a program that sleeps 3 000 times a second",
        rows::whole_commands::sleeps,
    ),
    ("own-cpu", "CPU time of the profiler itself, beside a program", rows::whole_commands::own_cpu),
    ("attach", "Attaching to a running program", rows::attach::measure),
    ("allocs-tree", "Allocations: a text that becomes a tree", rows::allocs::tree),
    ("allocs-small", "Allocations: small objects of every container", rows::allocs::small),
    ("allocs-threads", "Allocations: four threads that free each other's blocks", rows::allocs::threads),
    ("allocs-jaq", "Allocations: jaq over 12 MB of JSON", rows::allocs::jaq),
    ("tasks", "Await stacks of known tasks", rows::await_stacks::measure),
    ("wall-time", "A wall-time profile of 20 000 tasks and a busy worker", rows::wall_time::measure),
    ("heap", "Heap snapshots of a known heap", rows::heap::measure),
    ("allocs-exact", "Allocations: 10^8 by four threads, counted", rows::allocs::exact),
];

/// Measures the named groups, or all. False if a figure misses its bound.
pub fn run(arguments: &[&str]) -> Result<bool> {
    let mut quick = false;
    let mut folder = crate::run::target_folder().join("peers");
    let mut named = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match *argument {
            "--quick" => quick = true,
            "--peers" => match rest.next() {
                Some(path) => folder = PathBuf::from(path),
                None => bail!("--peers needs a folder"),
            },
            name => named.push(name),
        }
    }
    match named[..] {
        ["list"] => {
            GROUPS.iter().for_each(|(name, title, _)| println!("{name:<14} {title}"));
            return Ok(true);
        }
        ["install", ref which @ ..] => return peers::install(&folder, which),
        _ => {}
    }
    let group = |name: &&str| GROUPS.iter().find(|(group, ..)| group == name);
    if let Some(unknown) = named.iter().find(|name| group(name).is_none()) {
        bail!("there is no row {unknown:?}; `cargo xtask bench list` names them");
    }
    let chosen: Vec<&Group> =
        if named.is_empty() { GROUPS.iter().collect() } else { named.iter().filter_map(group).collect() };
    let order: Vec<&str> = GROUPS.iter().map(|(name, ..)| *name).collect();
    let setup = Setup::open(quick, &folder)?;
    results::store_versions(&setup.peers)?;
    let mut held = true;
    for (name, title, measure) in chosen {
        eprintln!("\n--- {name}: {title}");
        let (begin, others) = (Instant::now(), Others::now());
        let figures =
            measure(&setup).unwrap_or_else(|error| vec![Figure::missing(*title, format!("{error:#}"))]);
        for figure in &figures {
            held &= figure.verdict() != Verdict::Missed;
            eprintln!("{figure}");
        }
        let others = others.and_then(|before| before.share());
        results::keep(name, title, &figures, quick, others)?;
        results::write(&order)?;
        eprintln!("--- {name}: {:.0} s", begin.elapsed().as_secs_f64());
    }
    Ok(held)
}
