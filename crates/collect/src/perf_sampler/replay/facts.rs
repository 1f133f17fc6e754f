//! What a recording says of processes and threads, and what a program said of itself.

use super::trace::Trace;
use stackglass_profile::{Recorder, Recording, Sample, State};
use std::collections::BTreeMap;

/// What a recording says.
#[derive(PartialEq, Debug, Default)]
pub(super) struct Facts {
    pub processes: Vec<ProcessFacts>,
    /// Hits and time of each stack and state, the stack as text.
    pub stacks: BTreeMap<(String, State), (u64, u64)>,
    pub remarks: Vec<String>,
}

/// One process image.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ProcessFacts {
    pub pid: u32,
    pub parent: u32,
    pub exe: String,
    pub arguments: Vec<String>,
    pub forked: bool,
    pub start: u64,
    pub end: Option<u64>,
    pub threads: Vec<ThreadFacts>,
}

/// One thread.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ThreadFacts {
    pub tid: u32,
    pub name: String,
    pub start: u64,
    pub end: Option<u64>,
    /// Time of its samples that use a CPU, that wait for one, and that sleep, ns.
    pub awake: u64,
    pub waiting: u64,
    pub asleep: u64,
}

impl ThreadFacts {
    /// All time of its samples, ns.
    pub(super) fn time(&self) -> u64 {
        self.awake + self.waiting + self.asleep
    }
}

impl Facts {
    pub(super) fn from_recorder(recorder: &Recorder) -> Facts {
        let recording = recorder.recording();
        let of_image = |index: usize, process: &stackglass_profile::Process| ProcessFacts {
            pid: process.pid,
            parent: process.parent,
            exe: process.exe.to_string(),
            arguments: process.arguments.clone(),
            forked: process.forked,
            start: process.start.0,
            end: process.end.map(|end| end.0),
            threads: threads_of(recording, index),
        };
        let processes = recording.processes.iter().enumerate();
        let mut facts = Facts {
            processes: processes.map(|(index, process)| of_image(index, process)).collect(),
            remarks: recording.info.remarks.clone(),
            ..Facts::default()
        };
        facts.processes.sort_by_key(|process| (process.pid, process.start));
        for sample in &recording.samples {
            let entry = facts.stacks.entry((frames(recording, sample).join(" "), sample.state)).or_default();
            entry.0 += u64::from(sample.hits);
            entry.1 += sample.time.0;
        }
        facts
    }

    /// Both recordings say the same.
    pub(super) fn assert_equal(&self, other: &Facts, what: &str) {
        assert_eq!(self.processes, other.processes, "{what}");
        assert_eq!(self.stacks, other.stacks, "{what}");
        assert_eq!(self.remarks, other.remarks, "{what}");
    }

    /// All threads, with their process.
    pub(super) fn threads(&self) -> impl Iterator<Item = (&ProcessFacts, &ThreadFacts)> {
        self.processes.iter().flat_map(|process| process.threads.iter().map(move |thread| (process, thread)))
    }

    /// CPU time of all threads, ns.
    pub(super) fn awake(&self) -> u64 {
        self.threads().map(|(_, thread)| thread.awake).sum()
    }

    /// CPU time by thread id, ns.
    pub(super) fn awake_by_tid(&self) -> BTreeMap<u32, u64> {
        let mut all = BTreeMap::new();
        self.threads().for_each(|(_, thread)| *all.entry(thread.tid).or_default() += thread.awake);
        all
    }
}

fn threads_of(recording: &Recording, process: usize) -> Vec<ThreadFacts> {
    let mut threads = Vec::new();
    for (index, thread) in recording.threads.iter().enumerate() {
        if thread.process.0 as usize != process {
            continue;
        }
        let of_state = |state: State| -> u64 {
            let samples = recording.samples.iter().filter(|sample| sample.thread.0 as usize == index + 1);
            samples.filter(|sample| sample.state == state).map(|sample| sample.time.0).sum()
        };
        threads.push(ThreadFacts {
            tid: thread.tid,
            name: thread.name.to_string(),
            start: thread.start.0,
            end: thread.end.map(|end| end.0),
            awake: of_state(State::Awake),
            waiting: of_state(State::Waiting),
            asleep: of_state(State::Asleep),
        });
        assert_eq!(threads.last().map(|thread| thread.awake), Some(thread.cpu.0), "its samples are its time");
    }
    threads.sort_by_key(|thread| (thread.tid, thread.start));
    threads
}

/// The frames of a sample as module and offset, innermost first, and why the stack is cut.
pub(super) fn frames(recording: &Recording, sample: &Sample) -> Vec<String> {
    let stacks = &recording.stacks;
    let name = |location| {
        let location: stackglass_profile::Location = stacks.location(location);
        match location.module {
            Some(module) => format!("{}+{:#x}", recording.modules[module.0 as usize].path, location.offset),
            None => format!("{:#x}", location.offset),
        }
    };
    let cut = sample.cut.map(|cut| format!("cut {}", cut.0));
    stacks.walk(sample.stack).map(name).chain(cut).collect()
}

/// Lines of the program's output that begin with this word: their other words.
pub(super) fn said<'a>(trace: &'a Trace, word: &'a str) -> impl Iterator<Item = Vec<&'a str>> {
    let lines = trace.truth("output").lines().map(|line| line.split(' ').collect::<Vec<_>>());
    lines.filter(move |words| words[0] == word).map(|words| words[1..].to_vec())
}

/// Numbers that the program said of its threads, by their ids.
pub(super) fn said_of_threads(trace: &Trace, word: &str) -> BTreeMap<u32, u64> {
    said(trace, word).map(|words| (words[0].parse().unwrap(), words[1].parse().unwrap())).collect()
}

/// A number of what is true of the program.
pub(super) fn number(trace: &Trace, name: &str) -> u64 {
    trace.truth(name).parse().unwrap()
}
