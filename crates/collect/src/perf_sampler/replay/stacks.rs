//! Stacks of recordings: which functions have which part of the time, and whether stacks are whole.

use super::facts::{frames, said};
use super::play::replay;
use super::programs::trace;
use super::trace::Trace;
use stackglass_profile::{Recorder, Sample, State};
use std::ops::Range;

/// Samples of a state, with their frames.
fn samples(recorder: &Recorder, state: State) -> impl Iterator<Item = (&Sample, Vec<String>)> {
    let recording = recorder.recording();
    let samples = recording.samples.iter().filter(move |sample| sample.state == state);
    samples.map(move |sample| (sample, frames(recording, sample)))
}

/// A function of the program: where it lies in the file, and what the program said of it.
struct Part {
    range: Range<u64>,
    said: u64,
}

impl Part {
    fn from_trace(trace: &Trace, name: &str) -> Part {
        let words = said(trace, "part").find(|words| words[0] == name).unwrap();
        let number = |index: usize| words[index].parse().unwrap();
        Part { range: number(1)..number(2), said: number(3) }
    }

    /// Whether a frame lies in it. The address of a caller is that behind its call.
    fn holds(&self, frame: &str) -> bool {
        let offset = frame.rsplit_once("+0x").and_then(|(_, offset)| u64::from_str_radix(offset, 16).ok());
        let is_host = frame.contains("/replayed");
        is_host && offset.is_some_and(|offset| self.range.contains(&offset.saturating_sub(1)))
    }

    /// Time of the samples of a state with it in their stack.
    fn time(&self, recorder: &Recorder, state: State) -> u64 {
        let with_it =
            samples(recorder, state).filter(|(_, frames)| frames.iter().any(|frame| self.holds(frame)));
        with_it.map(|(sample, _)| sample.time.0).sum()
    }
}

fn assert_share(what: &str, recorded: (u64, u64), said: (u64, u64), tolerance: f64) {
    let share = |(one, other): (u64, u64)| one as f64 / (one + other) as f64;
    let (recorded_share, said_share) = (share(recorded), share(said));
    assert!((recorded_share - said_share).abs() < tolerance, "{what}: {recorded:?} of {said:?}");
}

#[test]
fn functions_have_their_parts_of_cpu_time() {
    for (name, tolerance) in [("spin", 0.1), ("spin-inherited", 0.1), ("static", 0.15)] {
        let trace = trace(name);
        let recorder = replay(&trace);
        let (first, second) = (Part::from_trace(&trace, "first"), Part::from_trace(&trace, "second"));
        let recorded = (first.time(&recorder, State::Awake), second.time(&recorder, State::Awake));
        assert_share(name, recorded, (first.said, second.said), tolerance);
        // Together they are nearly all of it.
        assert!(recorded.0 + recorded.1 > recorder.totals().awake / 10 * 9, "{name}: {recorded:?}");
    }
}

#[test]
fn functions_have_their_parts_of_sleep() {
    for name in ["sleeps", "sleeps-inherited"] {
        let trace = trace(name);
        let recorder = replay(&trace);
        let (long, short) = (Part::from_trace(&trace, "nap_long"), Part::from_trace(&trace, "nap_short"));
        let recorded = (long.time(&recorder, State::Asleep), short.time(&recorder, State::Asleep));
        assert_share(name, recorded, (long.said, short.said), 0.05);
        let (recorded, said) = (recorded.0 + recorded.1, long.said + short.said);
        assert!(recorded.abs_diff(said) < said / 20, "{name}: {recorded} of {said}");
    }
}

#[test]
fn stacks_are_whole() {
    for name in ["spin", "spin-inherited", "static", "threads", "threads-inherited", "renames"] {
        let recorder = replay(&trace(name));
        let taken = samples(&recorder, State::Awake).filter(|(sample, _)| sample.hits > 0);
        let (mut all, mut cut) = (0, Vec::new());
        for (sample, frames) in taken {
            all += sample.hits;
            if sample.cut.is_some() {
                cut.push(frames);
            }
        }
        // At the start of a program, its libraries are not mapped yet.
        assert!(all > 3 && cut.len() <= 2, "{name}: {} of {all}: {cut:?}", cut.len());
    }
}

#[test]
fn stacks_deeper_than_samples_are_whole() {
    let trace = trace("deep");
    let recorder = replay(&trace);
    let descend = Part::from_trace(&trace, "descend");
    let levels = descend.said as usize;
    let (mut whole, mut cut) = (0, 0);
    for (sample, frames) in samples(&recorder, State::Awake).filter(|(sample, _)| sample.hits > 0) {
        let depth = frames.iter().filter(|frame| descend.holds(frame)).count();
        if sample.cut.is_some() {
            // What came with the sample is right: some hundred levels.
            assert!(depth < levels, "{depth}");
            cut += sample.hits;
        } else if depth > 0 {
            assert_eq!(depth, levels, "a stack of {} frames", frames.len());
            whole += sample.hits;
        }
    }
    // The first ones and the last ones have no copy before or after them.
    assert!(whole >= 15 && cut * 4 < whole, "{whole} whole, {cut} cut");
}

#[test]
fn libraries_that_come_and_go_have_their_own_time() {
    let trace = trace("plugins");
    let recorder = replay(&trace);
    for library in ["one.so", "two.so"] {
        let of_it = said(&trace, "library").filter(|words| words[0].ends_with(library));
        let said: u64 = of_it.map(|words| words[1].parse::<u64>().unwrap()).sum();
        let inside = samples(&recorder, State::Awake)
            .filter(|(_, frames)| frames.iter().any(|frame| frame.contains(library)));
        let recorded: u64 = inside.map(|(sample, _)| sample.time.0).sum();
        assert!(recorded.abs_diff(said) < said / 5, "{library}: {recorded} of {said}");
    }
}
