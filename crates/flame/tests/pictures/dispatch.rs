//! Who has the dispatch bit: what was called through a vtable or a function pointer, wherever the samples lie.

use stackglass_flame::{Flamegraph, Graph, Status};
use stackglass_profile::{
    Frame, Location, LocationId, Nanos, Process, ProcessIndex, Recording, Sample, State, Thread,
    ThreadNumber, flatten,
};
use stackglass_report::Source;

/// `main`, in which `helper` is inlined, calls by an instruction that dispatches; what it calls calls `leaf` by one that does not.
fn recording() -> Recording {
    let mut recording = Recording { processes: vec![Process::default()], ..Recording::default() };
    recording.threads.push(Thread {
        process: ProcessIndex(0),
        tid: 1,
        name: "main".into(),
        start: Nanos(0),
        end: None,
        cpu: Nanos(0),
        blocked_signal: false,
    });
    let named =
        |func: &str, inlined| Frame { func: func.into(), foreign: false, inlined, ..Frame::unknown(0) };
    let places = [
        vec![named("leaf", false)],
        vec![named("inlined", true), named("called", false)],
        vec![named("helper", true), named("main", false)],
    ];
    let locations: Vec<LocationId> = places
        .into_iter()
        .zip(1..)
        .map(|(frames, offset)| {
            let location = recording.stacks.intern_location(Location { module: None, offset });
            recording.symbols.set(location, frames);
            location
        })
        .collect();
    recording.symbols.set_dispatches(locations[2]);
    let stack = recording.stacks.intern(&locations);
    let (thread, state) = (ThreadNumber(1), State::Awake);
    recording.push(Sample {
        stack,
        thread,
        task: 0,
        clock: Nanos(1),
        state,
        cut: None,
        hits: 1,
        time: Nanos(0),
        spread: Nanos(0),
    });
    recording
}

fn dispatched<'s>(source: impl Into<Source<'s>>) -> Vec<String> {
    let graph: Graph = Flamegraph::new().graph(source).unwrap().graph.unwrap();
    assert_eq!(graph.nodes().len(), 6);
    let nodes = graph.nodes().iter().filter(|node| node.status.any(Status::DISPATCH));
    nodes.map(|node| graph.frame(node).func.to_string()).collect()
}

#[test]
fn only_what_was_called_by_it_has_the_bit() {
    assert_eq!(dispatched(&recording()), ["called"]);
}

#[test]
fn samples_as_words_keep_it() {
    let (data, dictionary) = (recording().data(), recording().dictionary());
    assert_eq!(dispatched((&data, &dictionary)), ["called"]);
    let (data, dictionary) = flatten(&data, &dictionary).unwrap();
    assert_eq!(dispatched((&data, &dictionary)), ["called"]);
}
