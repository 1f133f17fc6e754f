//! Deep stacks and many stacks: nothing here may recurse by depth or grow out of proportion.

use stackglass_profile::{
    Data, Dictionary, Frame, Location, LocationId, Module, Nanos, Recording, Sample, State, Thread,
    ThreadNumber, flatten,
};
use stackglass_report::{Callers, Format, Recur, Report, Summary};

/// Runs with a stack that recursion by depth would overflow.
fn with_little_stack(test: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(128 << 10).spawn(test).unwrap().join().unwrap();
}

fn frame(func: &str, line: i64) -> Frame {
    Frame { func: func.into(), file: "deep.rs".into(), line, foreign: false, ..Frame::unknown(0) }
}

fn recording(stacks: impl Iterator<Item = Vec<u64>>) -> Recording {
    let mut recording = Recording::default();
    recording.info.delay = Nanos(1);
    recording.threads.push(Thread {
        process: 0.into(),
        tid: 1,
        name: "deep".into(),
        start: Nanos(0),
        end: None,
        cpu: Nanos(0),
        blocked_signal: false,
    });
    let module = recording.intern_module(Module { path: "deep".into(), build_id: [].into() });
    for leaf_first in stacks {
        let mut intern = |offset| recording.stacks.intern_location(Location { module: Some(module), offset });
        let locations: Vec<LocationId> = leaf_first.into_iter().map(&mut intern).collect();
        let stack = recording.stacks.intern(&locations);
        recording.push(Sample {
            stack,
            thread: ThreadNumber(1),
            task: 0,
            clock: Nanos(1),
            state: State::Awake,
            cut: None,
            hits: 1,
            time: Nanos(1),
            spread: Nanos(0),
        });
    }
    for index in 0..recording.stacks.locations().len() as u32 {
        let line = recording.stacks.location(LocationId(index)).offset as i64;
        recording.symbols.set(LocationId(index), [frame(["f", "g", "h"][line as usize % 3], line)]);
    }
    recording
}

#[test]
fn a_hundred_thousand_frames() {
    with_little_stack(|| {
        let deep = recording(std::iter::once((1..=100_000).collect()));
        let mut out = Vec::new();
        Report::new().write(&deep, &mut out).unwrap();
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 100_004);
        for report in [Report::new().recur(Recur::Flat), Report::new().format(Format::Flat)] {
            report.write(&deep, &mut std::io::sink()).unwrap();
        }
        for everything in [false, true] {
            Summary::new().everything(everything).write(&deep, &mut std::io::sink()).unwrap();
        }
        assert!(!Callers::new("f").count(&deep).unwrap().is_empty());
        flatten(&deep.data(), &deep.dictionary()).unwrap();
    });
}

#[test]
#[ignore = "long: a million frames"]
fn a_million_frames() {
    with_little_stack(|| {
        let deep = recording(std::iter::once((1..=1_000_000).collect()));
        let mut out = Vec::new();
        Report::new().write(&deep, &mut out).unwrap();
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1_000_004);
        let data = deep.data();
        let mut of_data = Vec::new();
        Report::new().write((&data, &deep.dictionary()), &mut of_data).unwrap();
        assert!(out == of_data, "a buffer large enough for two threads tells the same");
        Report::new().format(Format::Flat).write(&deep, &mut std::io::sink()).unwrap();
    });
}

#[test]
fn cost_follows_distinct_stacks() {
    // Two hundred million words of one stack would not fit into memory if they were expanded.
    let mut one = recording(std::iter::once(vec![1, 2, 3, 4]));
    one.samples[0].time = Nanos(20_000_000);
    assert_eq!(one.words_len(), 200_000_000);
    let mut out = Vec::new();
    Report::new().write(&one, &mut out).unwrap();
    assert!(String::from_utf8(out).unwrap().contains("Total snapshots: 20000000."));
}

#[test]
#[ignore = "long: a million distinct stacks"]
fn a_million_stacks() {
    with_little_stack(|| {
        let many = recording((0..1_000_000).map(|n| vec![n % 1000 + 1, n / 1000 + 2000, 5000, 5001]));
        let mut out = Vec::new();
        Report::new().write(&many, &mut out).unwrap();
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1_001_005);
        Summary::new().everything(true).write(&many, &mut std::io::sink()).unwrap();
        let data = many.data();
        Report::new().write((&data, &Dictionary::new()), &mut std::io::sink()).unwrap();
        let _: Data = data.strip_meta().unwrap();
    });
}
