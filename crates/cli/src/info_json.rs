//! `stackglass info --json`: the contents of a recording for programs, as documented in `docs/json.md`.

use crate::info_samples::{SampleTotals, thread_cpu};
use serde::Serialize;
use stackglass_profile::{End, Nanos, Recording, TASKS_MODULE, is_await_module};
use stackglass_report::json;
use std::collections::BTreeMap;
use std::io::{self, Write};

#[derive(Serialize)]
struct Contents<'a> {
    file: &'a str,
    command: &'a [String],
    end: Ended,
    wall: u64,
    delay: u64,
    total: u64,
    samples: u64,
    other_stacks: u64,
    kernel_cpu: Option<u64>,
    own_cpu: u64,
    stack_nodes: usize,
    locations: usize,
    full: bool,
    machine: &'a str,
    writer: &'a str,
    remarks: &'a [String],
    processes: Vec<Process<'a>>,
    tasks: Vec<Task<'a>>,
    modules: Vec<Module<'a>>,
}

/// How a program ended: nothing if it is not known.
#[derive(Default, Serialize)]
struct Ended {
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<bool>,
}

#[derive(Serialize)]
struct Process<'a> {
    pid: u32,
    parent: u32,
    program: &'a str,
    arguments: &'a [String],
    start: u64,
    end: Option<u64>,
    forked: bool,
    counters: &'a BTreeMap<String, u64>,
    threads: Vec<Thread<'a>>,
}

#[derive(Serialize)]
struct Thread<'a> {
    thread: usize,
    name: &'a str,
    tid: u32,
    cpu: Option<u64>,
    start: u64,
    end: Option<u64>,
}

#[derive(Serialize)]
struct Task<'a> {
    id: u64,
    name: &'a str,
    file: &'a str,
    line: u32,
}

#[derive(Serialize)]
struct Module<'a> {
    path: &'a str,
    build_id: String,
}

/// Writes it as one JSON object.
pub(crate) fn write(
    name: &str,
    recording: &Recording,
    samples: SampleTotals,
    out: &mut dyn Write,
) -> io::Result<()> {
    let info = &recording.info;
    let tasks = recording.tasks.iter().map(|task| Task {
        id: task.id.0,
        name: &task.name,
        file: &task.file,
        line: task.line,
    });
    let modules = recording
        .modules
        .iter()
        .filter(|module| &*module.path != TASKS_MODULE && !is_await_module(&module.path))
        .map(|module| Module {
            path: &module.path,
            build_id: module.build_id.iter().map(|byte| format!("{byte:02x}")).collect(),
        });
    let contents = Contents {
        file: name,
        command: &info.command,
        end: Ended::from_end(info.end),
        wall: info.wall.0,
        delay: info.delay.0,
        total: samples.cpu.0,
        samples: samples.on_cpu,
        other_stacks: samples.others,
        kernel_cpu: info.kernel_cpu.map(|time| time.0),
        own_cpu: info.own_cpu.0,
        stack_nodes: recording.stacks.nodes().len(),
        locations: recording.stacks.locations().len(),
        full: info.full,
        machine: &info.machine,
        writer: &info.writer,
        remarks: &info.remarks,
        processes: (0..recording.processes.len()).map(|index| Process::new(recording, index)).collect(),
        tasks: tasks.collect(),
        modules: modules.collect(),
    };
    json::write(&contents, out)
}

impl Ended {
    fn from_end(end: Option<End>) -> Ended {
        match end {
            Some(End::Exit(status)) => Ended { exit: Some(status), ..Ended::default() },
            Some(End::Signal(number)) => Ended { signal: Some(number), ..Ended::default() },
            Some(End::Running) => Ended { running: Some(true), ..Ended::default() },
            None => Ended::default(),
        }
    }
}

impl Process<'_> {
    fn new(recording: &Recording, index: usize) -> Process<'_> {
        let process = &recording.processes[index];
        let since_start = |time: Nanos| time.0.saturating_sub(recording.info.start.0);
        let threads = recording.threads.iter().enumerate();
        let threads = threads.filter(|(_, thread)| thread.process.0 as usize == index);
        let threads = threads.map(|(number, thread)| Thread {
            thread: number + 1,
            name: &thread.name,
            tid: thread.tid,
            cpu: thread_cpu(recording, thread).map(|cpu| cpu.0),
            start: since_start(thread.start),
            end: thread.end.map(since_start),
        });
        Process {
            pid: process.pid,
            parent: process.parent,
            program: &process.exe,
            arguments: &process.arguments,
            start: since_start(process.start),
            end: process.end.map(since_start),
            forked: process.forked,
            counters: &process.counters,
            threads: threads.collect(),
        }
    }
}
