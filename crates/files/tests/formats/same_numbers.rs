//! A recording says the same numbers whichever way it comes to its reader: whole, merged while it was
//! read, as words, as `.jlprof`, as folded stacks.

use proptest::prelude::*;
use stackglass_files::{folded, jlprof, read, read_merged, write};
use stackglass_profile::{
    Cut, Frame, Location, Module, Nanos, Recording, Sample, State, Thread, ThreadNumber, snapshots,
};
use stackglass_report::{Format, GroupBy, Report, SortedBy, Source};
use std::collections::BTreeMap;

const THREADS: u32 = 5;
const FUNCTIONS: usize = 6;

/// Thread, functions (outermost first), state, cut, microseconds.
type Piece = (u32, Vec<usize>, u8, Option<u8>, u64);

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let stack = prop::collection::vec(0..FUNCTIONS, 0..4);
    // Most ticks are about a delay long, some late, some split between two stacks.
    let micros = prop_oneof![4 => 900..1100_u64, 2 => 0..1000_u64, 1 => 1000..50_000_u64];
    let piece = (1..=THREADS, stack, 0..3_u8, prop::option::weighted(0.1, 0..2_u8), micros);
    prop::collection::vec(piece, 0..300)
}

fn recording(pieces: &[Piece]) -> Recording {
    let mut recording = Recording::default();
    recording.info.delay = Nanos(1_000_000);
    for tid in 0..THREADS {
        recording.threads.push(Thread {
            process: 0.into(),
            tid,
            name: "default".into(), // what a file of Julia says of all threads
            start: Nanos(0),
            end: None,
            cpu: Nanos(0),
            blocked_signal: false,
        });
    }
    recording.processes.push(Default::default());
    let module = Some(recording.intern_module(Module { path: "/bin/prog".into(), build_id: [].into() }));
    let places: Vec<_> = (0..FUNCTIONS)
        .map(|n| {
            let offset = 16 * (n as u64 + 1);
            let location = recording.stacks.intern_location(Location { module, offset });
            let frame = Frame {
                func: format!("function_{n}").into(),
                file: "/src/prog.rs".into(),
                line: n as i64 + 1,
                foreign: false,
                ..Frame::unknown(0)
            };
            recording.symbols.set(location, [frame]);
            location
        })
        .collect();
    for (tick, (thread, functions, state, cut, micros)) in (1..).zip(pieces) {
        let leaf_first: Vec<_> = functions.iter().rev().map(|n| places[*n]).collect();
        let stack = recording.stacks.intern(&leaf_first);
        recording.push(Sample {
            stack,
            thread: ThreadNumber(*thread),
            task: 0,
            clock: Nanos(tick * 1_000_000),
            state: [State::Awake, State::Asleep, State::Waiting][usize::from(*state)],
            cut: cut.map(Cut),
            hits: 1,
            time: Nanos(micros * 1000),
            spread: Nanos(0),
        });
    }
    recording
}

fn text<'a>(report: &Report, source: impl Into<Source<'a>>) -> String {
    let mut out = Vec::new();
    report.write(source, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// In how many snapshots each function is, by the rows of a flat report.
fn functions_of_report(text: &str) -> BTreeMap<String, u64> {
    let rows = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let function = words.last().filter(|name| name.starts_with("function_"))?;
        Some(((*function).to_owned(), words[0].parse().unwrap()))
    });
    rows.collect()
}

/// The same by folded stacks.
fn functions_of_folded(text: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        let functions: std::collections::BTreeSet<&str> = stack.split(';').collect();
        for function in functions {
            *counts.entry(function.to_owned()).or_default() += count.parse::<u64>().unwrap();
        }
    }
    counts
}

fn in_states_of_julia(recording: &Recording) -> Recording {
    let mut kept = recording.clone();
    kept.samples.retain(|sample| sample.state != State::Waiting);
    kept
}

fn folded(recording: &Recording) -> String {
    let mut out = Vec::new();
    folded::write_to(&mut out, recording).unwrap();
    String::from_utf8(out).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_door_shows_the_same_numbers(pieces in pieces()) {
        let made = recording(&pieces);
        let folder = tempfile::tempdir().unwrap();
        let (glass, julia) = (folder.path().join("x.glass"), folder.path().join("x.jlprof"));
        write(&glass, &made).unwrap();
        let (whole, _) = read(&glass).unwrap();
        let (merged, _) = read_merged(&glass, |_, _| {}).unwrap();
        // That format has no state for time without a CPU.
        let kept = in_states_of_julia(&whole);
        jlprof::write_recording(&julia, &kept).unwrap();
        let words = jlprof::read(&julia).and_then(|content| content.samples()).unwrap();
        let pair = (&words.data, &words.dictionary);
        prop_assert_eq!(&words.data, &kept.data());
        let left_out: u64 = whole.unexpressed();
        prop_assert!(left_out == 0 || whole.samples.len() > kept.samples.len());
        prop_assert!(merged.samples.len() <= whole.samples.len());

        let tree = Report::new().c(true).sorted_by(SortedBy::Count);
        let flat = Report::new().c(true).format(Format::Flat).cols(200);
        let by_thread = tree.clone().group_by(GroupBy::Thread);
        for report in [&tree, &flat, &by_thread] {
            let expected = text(report, &whole);
            prop_assert_eq!(&text(report, &made), &expected, "in memory");
            prop_assert_eq!(&text(report, &merged), &expected, "merged");
            prop_assert_eq!(&text(report, pair), &text(report, &kept), "as .jlprof");
        }

        let lines = folded(&whole);
        prop_assert_eq!(&folded(&merged), &lines);
        let mut counted = functions_of_folded(&lines);
        prop_assert_eq!(&counted, &functions_of_report(&text(&flat, &whole)));
        let back = folded::read_from(lines.as_bytes()).unwrap();
        counted.retain(|_, count| *count > 0);
        prop_assert_eq!(folded(&back), lines);
        prop_assert_eq!(counted, functions_of_report(&text(&flat, &back)));
    }

    #[test]
    fn counts_are_times_rounded(pieces in pieces()) {
        let recording = recording(&pieces);
        let delay = u128::from(recording.info.delay.0);
        let (mut threads, mut kinds) = (BTreeMap::new(), std::collections::HashMap::new());
        for (sample, count) in recording.samples.iter().zip(snapshots(&recording)) {
            for sum in [threads.entry(sample.thread).or_insert((0, 0)), kinds.entry(sample.kind()).or_insert((0, 0))] {
                *sum = (sum.0 + u128::from(sample.time.0), sum.1 + u128::from(count));
            }
        }
        let all = threads.values().fold((0, 0), |all, (time, count)| (all.0 + time, all.1 + count));
        prop_assert!(all.0.abs_diff(all.1 * delay) <= delay, "{all:?}");
        for (thread, (time, count)) in threads {
            prop_assert!(time.abs_diff(count * delay) <= 2 * delay, "{thread:?}: {count} for {time} ns");
        }
        for (kind, (time, count)) in kinds {
            prop_assert!(time.abs_diff(count * delay) < 2 * delay, "{kind:?}: {count} for {time} ns");
        }
    }
}
