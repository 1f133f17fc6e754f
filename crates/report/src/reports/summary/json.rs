//! The summary for programs, as documented in `docs/json.md`: totals, threads, and the tree of CPU time.

use crate::call_tree::StateFilter;
use crate::metric::Metric;
use crate::queries::cpu_tree::{CpuNode, CpuTree, NodeKind};
use crate::queries::cut_reasons::no_stack_text;
use crate::queries::unaccounted_cpu::UNACCOUNTED;
use crate::reports::json_frame::JsonFrame;
use crate::reports::json_head::{Head, Quantity};
use crate::text::json::{self, Rows};
use serde::{Serialize, Serializer};
use stackglass_profile::{Recording, Sample, State};
use std::io::{self, Write};

/// Writes the summary of a recording as one JSON object. With `everything`, the tree has the frames of the runtime and
/// inlined library code as well.
///
/// # Errors
/// When writing fails.
pub fn write_json(recording: &Recording, everything: bool, out: &mut dyn Write) -> io::Result<()> {
    json::write(&JsonSummary { recording, everything }, out)
}

/// The summary of a recording. It is made while it is written.
pub(in crate::reports) struct JsonSummary<'a> {
    pub recording: &'a Recording,
    pub everything: bool,
}

#[derive(Serialize)]
struct Report<'a, T, N> {
    #[serde(flatten)]
    head: Head<'a>,
    unaccounted: u64,
    wall: u64,
    delay: u64,
    asleep: u64,
    ready: u64,
    threads: T,
    tree: N,
}

#[derive(Serialize)]
struct Thread<'a> {
    thread: usize,
    name: &'a str,
    tid: u32,
    pid: u32,
    program: &'a str,
    #[serde(flatten)]
    times: ThreadTimes,
}

/// Time of a thread by state, and its samples on a CPU.
#[derive(Clone, Copy, Default, Serialize)]
struct ThreadTimes {
    cpu: u64,
    asleep: u64,
    ready: u64,
    samples: u64,
}

#[derive(Serialize)]
struct Node<'a> {
    depth: u64,
    #[serde(flatten)]
    what: Option<What<'a>>,
    own: u64,
    total: u64,
    own_samples: u64,
    total_samples: u64,
    recursive: bool,
}

/// What a node stands for.
#[derive(Serialize)]
#[serde(untagged)]
enum What<'a> {
    Function(JsonFrame<'a>),
    Program { program: &'a str },
    Other { other: String },
}

impl Serialize for JsonSummary<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let recording = self.recording;
        let tree = CpuTree::build(recording, self.everything);
        let cpu = tree.cpu();
        let quantity = Quantity { metric: Metric::Time, states: StateFilter::Awake, timed: true };
        let total = cpu.time.saturating_sub(tree.unaccounted);
        let times = ThreadTimes::of_all(recording);
        let report = Report {
            head: Head::new(recording, quantity, total, cpu.hits),
            unaccounted: tree.unaccounted,
            wall: recording.info.wall.0,
            delay: recording.info.delay.0,
            asleep: time_in(recording, State::Asleep),
            ready: time_in(recording, State::Waiting),
            threads: Rows(
                times.iter().enumerate().map(|(index, times)| Thread::new(recording, index, *times)),
            ),
            tree: Rows(nodes(&tree)),
        };
        report.serialize(serializer)
    }
}

impl Thread<'_> {
    fn new(recording: &Recording, index: usize, times: ThreadTimes) -> Thread<'_> {
        let thread = &recording.threads[index];
        let process = recording.processes.get(thread.process.0 as usize);
        Thread {
            thread: index + 1,
            name: &thread.name,
            tid: thread.tid,
            pid: process.map_or(0, |process| process.pid),
            program: process.map_or("", |process| &process.exe),
            times,
        }
    }
}

impl ThreadTimes {
    fn of_all(recording: &Recording) -> Vec<ThreadTimes> {
        let mut times = vec![ThreadTimes::default(); recording.threads.len()];
        for sample in &recording.samples {
            let index = (sample.thread.0 as usize).checked_sub(1);
            if let Some(times) = index.and_then(|index| times.get_mut(index)) {
                times.add(sample);
            }
        }
        times
    }

    fn add(&mut self, sample: &Sample) {
        let time = match sample.state {
            State::Awake | State::Task => &mut self.cpu,
            State::Asleep => &mut self.asleep,
            State::Waiting => &mut self.ready,
        };
        *time = time.saturating_add(sample.time.0);
        self.samples += if sample.state.uses_cpu() { u64::from(sample.hits) } else { 0 };
    }
}

/// Time in a state.
fn time_in(recording: &Recording, state: State) -> u64 {
    let samples = recording.samples.iter().filter(|sample| sample.state == state);
    samples.fold(0, |sum, sample| sum.saturating_add(sample.time.0))
}

/// The nodes of a tree, callers before their callees.
fn nodes<'t>(tree: &'t CpuTree<'_>) -> impl Iterator<Item = Node<'t>> + Clone {
    // Children are sorted: the last one is opened first.
    let mut open: Vec<(u32, u64)> = tree.nodes[0].children.iter().rev().map(|child| (*child, 0)).collect();
    std::iter::from_fn(move || {
        let (node, depth) = open.pop()?;
        let call = &tree.nodes[node as usize];
        open.extend(call.children.iter().rev().map(|child| (*child, depth + 1)));
        Some(Node::from_call(tree, call, depth))
    })
}

impl Node<'_> {
    fn from_call<'t>(tree: &'t CpuTree<'_>, call: &CpuNode, depth: u64) -> Node<'t> {
        let other = |other| Some(What::Other { other });
        let what = match call.what {
            NodeKind::Function(function) => {
                let hottest =
                    call.lines.iter().max_by_key(|(line, time)| (**time, std::cmp::Reverse(**line)));
                let at = hottest.map(|(line, _)| &tree.names.lines[*line as usize]);
                let at = at.filter(|at| !at.file.is_empty() && at.line > 0);
                let function = &tree.names.functions[function as usize];
                Some(What::Function(JsonFrame {
                    function: &function.name,
                    file: at.map(|at| &*at.file),
                    line: at.and_then(|at| u64::try_from(at.line).ok()),
                    module: &function.module,
                }))
            }
            NodeKind::Program(program) => {
                Some(What::Program { program: &tree.programs[program as usize].name })
            }
            NodeKind::Executors(_) => other("[executor]".to_owned()),
            NodeKind::Nothing(cut) => other(no_stack_text(cut)),
            NodeKind::Unaccounted => other(UNACCOUNTED.to_owned()),
            NodeKind::Root => None,
        };
        Node {
            depth,
            what,
            own: call.own.time,
            total: call.total.time,
            own_samples: call.own.hits,
            total_samples: call.total.hits,
            recursive: call.recursive,
        }
    }
}
