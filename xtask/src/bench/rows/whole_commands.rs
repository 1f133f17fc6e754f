//! Cost of whole commands, with start and stop: everyday programs, plain, with Stackglass and with the peers in turn.
//!
//! Nothing is subtracted: a user of `record` also waits for its start, its symbols and its report.

use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::made_c;
use crate::bench::setup::{Run, Setup};
use crate::bench::statistics::{Interval, median};
use crate::bench::turns::{Slice, added, added_in_parts, compare, rounds, ways, ways_and_floor};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// What is added to the CPU time, or to the wall time.
type Added = dyn Fn(&[Vec<Slice>], usize) -> f64;
/// A measure: its name, what is added, and the bounds by peer.
type Measure<'a> = (&'a str, &'a Added, &'a [(&'a str, f64)]);

fn cpu(rounds: &[Vec<Slice>], way: usize) -> f64 {
    added(rounds, way, |slice| slice.whole)
}

fn wall(rounds: &[Vec<Slice>], way: usize) -> f64 {
    added(rounds, way, |slice| slice.wall)
}

/// A program run in all ways, `turns` times each; each measure with its name and its bounds.
fn whole(setup: &Setup, program: &[String], turns: usize, measures: &[Measure<'_>]) -> Result<Vec<Figure>> {
    let ways = ways_and_floor(setup)?;
    // The first run of all fills the page cache.
    setup.run(program)?;
    let rounds = rounds(setup, &ways, program, turns)?;
    let mut figures = Vec::new();
    for (what, added, bounds) in measures {
        figures.extend(compare(what, &ways, &rounds, added, bounds));
    }
    let walls: Vec<f64> = rounds.iter().map(|round| round[0].wall * 1e3).collect();
    figures.push(Figure::told("the plain command, wall", Interval::range(&walls), Unit::Millis));
    Ok(figures)
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| word.to_string()).collect()
}

/// One busy thread for about four seconds.
pub fn busy(setup: &Setup) -> Result<Vec<Figure>> {
    let program = setup.workload(&["fib", "--work", setup.either("18", "6")]);
    let bounds: &[_] = &[("samply", 0.6)];
    whole(setup, &program, setup.either(10, 3), &[("CPU", &added_in_parts, bounds), ("wall", &wall, &[])])
}

/// A compiler over one large file.
pub fn compiler(setup: &Setup) -> Result<Vec<Figure>> {
    let (source, object) = (setup.scratch("made.c"), setup.scratch("made.o"));
    fs::write(&source, made_c::source("made", setup.either(230, 60)))?;
    let program = words(&[
        "gcc",
        "-O1",
        "-g",
        "-c",
        "-o",
        &object.display().to_string(),
        &source.display().to_string(),
    ]);
    let bounds: &[_] = &[("samply", 0.7)];
    whole(setup, &program, setup.either(8, 3), &[("CPU", &cpu, bounds), ("wall", &wall, bounds)])
}

/// Three hundred processes in sequence, which do nothing.
pub fn short_processes(setup: &Setup) -> Result<Vec<Figure>> {
    let script = "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done";
    let program = words(&["sh", "-c", script]);
    whole(setup, &program, setup.either(15, 4), &[("wall", &wall, &[("plain", 0.3)]), ("CPU", &cpu, &[])])
}

/// `make -j2` of a small project: thirty files, a compiler of four processes for each.
pub fn make(setup: &Setup) -> Result<Vec<Figure>> {
    let folder = setup.scratch("made-project");
    project(&folder, setup.either(30, 10))?;
    let program = words(&["make", "-j2", "-B", "-s", "-C", &folder.display().to_string()]);
    whole(setup, &program, setup.either(10, 3), &[("CPU", &cpu, &[("plain", 0.06)]), ("wall", &wall, &[])])
}

fn project(folder: &Path, files: usize) -> Result<()> {
    fs::create_dir_all(folder)?;
    let names: Vec<String> = (0..files).map(|i| format!("part{i}")).collect();
    for name in &names {
        fs::write(folder.join(format!("{name}.c")), made_c::source(name, 6))?;
    }
    fs::write(folder.join("main.c"), made_c::main_of(&names))?;
    let objects: Vec<String> = names.iter().map(|name| format!("{name}.o")).collect();
    let rules = format!(
        "OBJECTS = main.o {}\nprogram: $(OBJECTS)\n\t$(CC) -o $@ $(OBJECTS)\n%.o: %.c\n\t$(CC) -O1 -g -c -o $@ $<\n",
        objects.join(" ")
    );
    fs::write(folder.join("Makefile"), rules).context("cannot write a Makefile")
}

/// ripgrep over 400 MB of text in the page cache.
pub fn search(setup: &Setup) -> Result<Vec<Figure>> {
    let folder = large_text(setup)?;
    let ripgrep = setup.peers.ripgrep.as_ref().map_or("rg".into(), |path| path.display().to_string());
    let program = words(&[
        &ripgrep,
        "--threads",
        "2",
        "--ignore-case",
        "--count",
        "sesquipedalian",
        &folder.display().to_string(),
    ]);
    whole(setup, &program, setup.either(25, 5), &[("wall", &wall, &[("samply", 0.3)]), ("CPU", &cpu, &[])])
}

/// Twenty files of 20 MB, each with one occurrence of the searched word.
fn large_text(setup: &Setup) -> Result<PathBuf> {
    const FILES: usize = 20;
    const BYTES: usize = 20_000_000;
    let folder = setup.scratch("large-text");
    let last = folder.join(format!("{}.txt", FILES - 1));
    if fs::metadata(&last).is_ok_and(|file| file.len() >= BYTES as u64) {
        return Ok(folder);
    }
    fs::create_dir_all(&folder)?;
    let mut state = 0x5EED_u64;
    for file in 0..FILES {
        let mut text = String::with_capacity(BYTES + 128);
        while text.len() < BYTES {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let letters = (state >> 33) as usize % 9 + 2;
            text.extend((0..letters).map(|i| char::from(b'a' + (state >> (5 * i)) as u8 % 26)));
            text.push(if state >> 60 == 0 { '\n' } else { ' ' });
        }
        text.push_str("sesquipedalian\n");
        fs::write(folder.join(format!("{file}.txt")), text)?;
    }
    Ok(folder)
}

/// A program that sleeps three thousand times a second: its own CPU time, and the whole command's.
pub fn sleeps(setup: &Setup) -> Result<Vec<Figure>> {
    let bursts = setup.either("9000", "3000");
    let program = setup.workload(&["burst-sleep", "--burst", "60", "--pause", "150", "--work", bursts]);
    let own = |rounds: &[Vec<Slice>], way: usize| added(rounds, way, |slice| slice.thread);
    let mut figures = whole(
        setup,
        &program,
        setup.either(15, 4),
        &[("the program's CPU", &own, &[("plain", 0.12)]), ("whole command's CPU", &cpu, &[])],
    )?;
    let plain = setup.run(&program)?;
    let rate = bursts.parse::<f64>()? / plain.number("wall_ns")? * 1e9;
    figures[0].add_note(&format!("{rate:.0} sleeps a second"));
    Ok(figures)
}

/// CPU time of Stackglass next to one busy thread, and next to waiting processes.
pub fn own_cpu(setup: &Setup) -> Result<Vec<Figure>> {
    let seconds = setup.either("6.5", "2");
    let busy = setup.workload(&["busy", "--threads", "1", "--seconds", seconds]);
    let waiting = setup.workload(&["waiters", "--threads", "20", "--seconds", setup.either("3", "1")]);
    let turns = setup.either(7, 3);
    let mut figures = Vec::new();
    for (what, program, bound) in
        [("one busy thread", busy, 100.0), ("20 processes that wait", waiting, 100.0)]
    {
        let ways = ways(setup);
        let mut beside = vec![Vec::new(); ways.len()];
        for round in 0..turns {
            for i in 0..ways.len() {
                let which = (i + round) % ways.len();
                let run = setup.run(&[&ways[which].before[..], &program].concat())?;
                beside[which].push(beside_program(&run)?);
            }
        }
        // Start and end of the program's process, which its account excludes.
        let ends = median(&beside[0]);
        for (way, times) in ways.iter().zip(&beside).skip(1) {
            let interval = Interval::bootstrap(times, |times| median(times) - ends);
            let what = format!("{what}: {} uses", way.name);
            figures.push(match way.name {
                "stackglass" => Figure::must(what, interval, Unit::Millis, Bound::AtMost(bound))
                    .note(format!("median of {turns}")),
                _ => Figure::told(what, interval, Unit::Millis),
            });
        }
    }
    Ok(figures)
}

/// CPU time of a run without that of the program, ms.
fn beside_program(run: &Run) -> Result<f64> {
    Ok(run.tree_cpu * 1e3 - run.number("cpu_ns")? * 1e-6)
}
