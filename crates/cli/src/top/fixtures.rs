//! Recordings and models for the tests of `top`.

use super::model::{Model, WINDOW};
use stackglass_profile::{Location, Nanos, ProcessIndex, Recording, Sample, State, Thread, ThreadNumber};

/// A recording with the threads `slower` (77) and `other` (78), and stacks of unnamed functions.
pub(super) fn recording(stacks: &[(u32, &[u64], u64)]) -> Recording {
    let mut recording = Recording::default();
    for (tid, name) in [(77, "slower"), (78, "other")] {
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
    for (thread, leaf_first, time) in stacks {
        let ids: Vec<_> = leaf_first
            .iter()
            .map(|offset| recording.stacks.intern_location(Location { module: None, offset: *offset }))
            .collect();
        let stack = recording.stacks.intern(&ids);
        recording.samples.push(Sample {
            stack,
            thread: ThreadNumber(*thread),
            task: 0,
            clock: Nanos(0),
            state: State::Awake,
            cut: None,
            hits: 1,
            time: Nanos(*time),
            spread: Nanos(0),
        });
    }
    recording
}

/// A model in which each function ran at its line for this long.
pub(super) fn with_lines(lines: &[(&str, &str, u64)]) -> Model {
    let mut model = Model::of_intervals(WINDOW);
    for ((function, at, time), offset) in lines.iter().zip(0..) {
        model.insert_line(Location { module: None, offset }, function, at);
        model.add(&recording(&[(1, &[offset], *time)]), 0, 100);
    }
    model
}
