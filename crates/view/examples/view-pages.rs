//! Writes the pages that the browser tests open: recordings whose every figure is known, and one with hostile names.
//! `view-pages FOLDER`

use stackglass_profile::{
    Cut, Frame, Location, LocationId, Nanos, Process, ProcessIndex, Recording, Sample, State, Thread,
    ThreadNumber,
};
use stackglass_view::{Packed, Page};
use std::error::Error;
use std::fs::{self, File};
use std::path::Path;

const MS: u64 = 1_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("name a folder to write to")?;
    let folder = Path::new(&folder);
    fs::create_dir_all(folder)?;
    let write = |name: &str, recording: Recording, title: &str| {
        Page::new(&Packed::new(recording, title)).write_to(&mut File::create(folder.join(name))?)
    };
    write("view-known.html", known(["serve", "parse", "sort"]), "known")?;
    let hostile = "</script><img src=x onerror=alert(1)>\u{202e}";
    write("view-hostile.html", known([hostile, hostile, "sort"]), hostile)?;
    write("view-empty.html", Recording::default(), "empty")?;
    write("view-calls.html", calls(), "calls")?;
    write("view-counts.html", counts(), "counts")?;
    Ok(())
}

/// Four seconds of two threads. `one`: serve, then a second each in parse, sort, parse and asleep in sort. `two` runs serve for half a
/// second, with incomplete stacks, and is ready for the next half.
fn known(names: [&str; 3]) -> Recording {
    let mut recording = Recording::default();
    recording.info.wall = Nanos(4000 * MS);
    recording.info.delay = Nanos(MS);
    recording.info.writer = "stackglass".to_owned();
    recording.info.command = vec!["known".to_owned()];
    recording.processes.push(Process { pid: 7, exe: "/bin/known".into(), ..Process::default() });
    for (tid, name) in [(7, "one"), (8, "two")] {
        recording.threads.push(Thread {
            process: ProcessIndex(0),
            tid,
            name: name.into(),
            start: Nanos(0),
            end: None,
            cpu: Nanos(0),
            blocked_signal: false,
        });
    }
    let locations: Vec<LocationId> = names
        .iter()
        .enumerate()
        .map(|(number, name)| {
            let location = recording.stacks.intern_location(Location { module: None, offset: number as u64 });
            let file = "src/main.rs".into();
            let frame = Frame {
                func: (*name).into(),
                line: 10 + number as i64,
                file,
                foreign: false,
                ..Frame::unknown(0)
            };
            recording.symbols.set(location, [frame]);
            location
        })
        .collect();
    let mut push = |thread, stack: &[usize], state, ends: std::ops::Range<u64>| {
        let cut = (thread == 2 && state == State::Awake).then_some(Cut::NO_MODULE);
        let leaf_first: Vec<LocationId> = stack.iter().rev().map(|at| locations[*at]).collect();
        let stack = recording.stacks.intern(&leaf_first);
        for end in ends.map(|end| (end + 1) * MS) {
            let (thread, clock) = (ThreadNumber(thread), Nanos(end));
            let sample = Sample {
                stack,
                thread,
                task: 0,
                clock,
                state,
                cut,
                hits: 1,
                time: Nanos(MS),
                spread: Nanos(0),
            };
            recording.samples.push(sample);
        }
    };
    push(1, &[0, 1], State::Awake, 0..1000);
    push(1, &[0, 2], State::Awake, 1000..2000);
    push(1, &[0, 1], State::Awake, 2000..3000);
    push(1, &[0, 2], State::Asleep, 3000..4000);
    push(2, &[0], State::Awake, 0..500);
    push(2, &[0], State::Waiting, 500..1000);
    recording
}

/// Functions of three crates with recursion. Time on CPUs by second, in ms:
///
/// | thread | stack | 1st | 2nd | 3rd |
/// | --- | --- | --- | --- | --- |
/// | one | main, walk, walk, walk, parse | 1000 | | |
/// | one | main, parse, memcpy | | 500 | |
/// | one | main, memcpy | | 500 | |
/// | one | main, walk, parse, memcpy | | | 1000 |
/// | two | main, aaa…! | 1000 | 1000 | 1000 |
fn calls() -> Recording {
    let mut recording = Recording::default();
    recording.info.wall = Nanos(3000 * MS);
    recording.info.delay = Nanos(MS);
    recording.info.command = vec!["calls".to_owned()];
    recording.processes.push(Process { pid: 7, exe: "/bin/calls".into(), ..Process::default() });
    for (tid, name) in [(7, "one"), (8, "two")] {
        let process = ProcessIndex(0);
        let (start, cpu) = (Nanos(0), Nanos(0));
        let name = name.into();
        recording.threads.push(Thread { process, tid, name, start, end: None, cpu, blocked_signal: false });
    }
    // Expressions like (a+)+$ take forever on this name.
    let long = format!("{}!", "a".repeat(40));
    let functions = [
        ("calls::main", "src/main.rs", "calls", "/bin/calls"),
        ("calls::walk", "src/walk.rs", "calls", "/bin/calls"),
        ("json::parse", "/root/.cargo/registry/src/index/json-1.0.0/src/lib.rs", "json", "/bin/calls"),
        ("memcpy", "", "", "/usr/lib/libc.so.6"),
        (&long, "src/long.rs", "calls", "/bin/calls"),
    ];
    let locations: Vec<LocationId> = (0_u64..)
        .zip(functions)
        .map(|(offset, (func, file, krate, module))| {
            let location = recording.stacks.intern_location(Location { module: None, offset });
            let frame = Frame {
                func: func.into(),
                file: file.into(),
                line: 10,
                krate: krate.into(),
                module: module.into(),
                foreign: krate.is_empty(),
                ..Frame::unknown(0)
            };
            recording.symbols.set(location, [frame]);
            location
        })
        .collect();
    let stacks: [(u32, &[usize], std::ops::Range<u64>); 5] = [
        (1, &[0, 1, 1, 1, 2], 0..1000),
        (1, &[0, 2, 3], 1000..1500),
        (1, &[0, 3], 1500..2000),
        (1, &[0, 1, 2, 3], 2000..3000),
        (2, &[0, 4], 0..3000),
    ];
    for (thread, stack, ends) in stacks {
        let leaf_first: Vec<LocationId> = stack.iter().rev().map(|at| locations[*at]).collect();
        let stack = recording.stacks.intern(&leaf_first);
        for end in ends {
            recording.samples.push(Sample {
                stack,
                thread: ThreadNumber(thread),
                task: 0,
                clock: Nanos((end + 1) * MS),
                state: State::Awake,
                cut: None,
                hits: 1,
                time: Nanos(MS),
                spread: Nanos(0),
            });
        }
    }
    recording
}

/// The known one as other formats have it: counts, two for each millisecond, and no times.
fn counts() -> Recording {
    let mut recording = known(["serve", "parse", "sort"]);
    recording.info.delay = Nanos(0);
    for sample in &mut recording.samples {
        (sample.clock, sample.time, sample.spread, sample.hits) = (Nanos(0), Nanos(0), Nanos(0), 2);
    }
    recording
}
