//! What the graph of a large profile takes: one line of JSON.
//!
//! ```text
//! graph_speed NODES        a recording whose stacks make up a trie of NODES nodes
//! graph_speed NODES --data the same as a word buffer with its dictionary
//! ```
//!
//! Tells boxes, wall time, and memory: what the process had at most before and after. `bench` runs this in fresh
//! processes.

use stackglass_flame::Flamegraph;
use stackglass_profile::{Frame, Location, Module, Nanos, Recording, Sample, State, Thread, ThreadNumber};
use stackglass_report::Source;
use std::time::Instant;

/// Distinct places in the code.
const PLACES: u64 = 20_000;
/// Frames of a stack that it shares with others, and that are its own.
const SHARED: u64 = 24;
const OWN: u64 = 10;

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (nodes, as_data) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [nodes] => (nodes.parse::<u64>(), false),
        [nodes, "--data"] => (nodes.parse(), true),
        _ => ("".parse(), false),
    };
    let Ok(nodes) = nodes else {
        eprintln!("usage: graph_speed NODES [--data]");
        return 2.into();
    };
    let mut recording = recording_of(nodes);
    let trie = recording.stacks.nodes().len();
    let (data, dictionary);
    let source = match as_data {
        false => Source::Recording(&recording),
        true => {
            (data, dictionary) = (recording.data(), recording.dictionary());
            recording = Recording::default();
            Source::Data(&data, &dictionary)
        }
    };
    let before = resident();
    let begin = Instant::now();
    let drawn = Flamegraph::new().c(true).graph(source).expect("the samples have metadata");
    let wall = begin.elapsed().as_nanos();
    let boxes = drawn.graph.map_or(0, |graph| graph.nodes().len());
    println!(
        "{{\"trie\":{trie},\"boxes\":{boxes},\"wall_ns\":{wall},\"before_kib\":{before},\"peak_kib\":{}}}",
        peak()
    );
    drop(recording);
    0.into()
}

/// Stacks that part at every level, the inner frames theirs alone.
fn recording_of(nodes: u64) -> Recording {
    let mut recording = Recording::default();
    recording.info.delay = Nanos(1);
    recording.threads.push(Thread {
        process: 0.into(),
        tid: 1,
        name: "busy".into(),
        start: Nanos(0),
        end: None,
        cpu: Nanos(0),
        blocked_signal: false,
    });
    let module = Some(recording.intern_module(Module { path: "made-up".into(), build_id: [].into() }));
    let places: Vec<_> = (0..PLACES)
        .map(|place| recording.stacks.intern_location(Location { module, offset: place * 16 + 1 }))
        .collect();
    for (place, location) in (0..PLACES).zip(&places) {
        let frame = Frame {
            func: format!("library{}::module::function_{}", place % 40, place / 3).into(),
            file: format!("/src/library{}/file_{}.rs", place % 40, place % 300).into(),
            line: (place % 900) as i64 + 1,
            foreign: false,
            ..Frame::unknown(0)
        };
        recording.symbols.set(*location, [frame]);
    }
    let mut number = 0_u64;
    while (recording.stacks.nodes().len() as u64) < nodes {
        let mut leaf_first = Vec::new();
        let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for _ in 0..OWN {
            mixed = mixed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1442695040888963407);
            leaf_first.push(places[((mixed >> 33) % PLACES) as usize]);
        }
        for level in (0..SHARED).rev() {
            let branch = number >> (SHARED - level).min(20);
            leaf_first.push(places[((branch * 31 + level * 577) % PLACES) as usize]);
        }
        let stack = recording.stacks.intern(&leaf_first);
        recording.push(Sample {
            stack,
            thread: ThreadNumber(1),
            task: 0,
            clock: Nanos(number + 1),
            state: State::Awake,
            cut: None,
            hits: 1,
            time: Nanos(1),
        });
        number += 1;
    }
    recording
}

fn of_status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|kib| kib.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

fn resident() -> u64 {
    of_status("VmRSS:")
}

fn peak() -> u64 {
    of_status("VmHWM:")
}
