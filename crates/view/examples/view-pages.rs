//! Writes the pages that the browser tests open: a recording whose every figure is known, and one with hostile names.
//! `view-pages FOLDER`

use stackglass_profile::{
    Frame, Location, LocationId, Nanos, Process, ProcessIndex, Recording, Sample, State, Thread, ThreadNumber,
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
    Ok(())
}

/// Four seconds of two threads. `one`: serve, then a second each in parse, sort, parse and asleep in sort. `two` runs serve for half a
/// second, and is ready for the next half.
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
                cut: None,
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
