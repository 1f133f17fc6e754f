//! The summary for programs, as documented in `docs/json.md`: totals, threads, and the tree of CPU time.

use crate::call_tree::StateFilter;
use crate::metric::Metric;
use crate::queries::cpu_tree::{CpuNode, CpuTree, NodeKind};
use crate::queries::cut_reasons::no_stack_text;
use crate::queries::unaccounted_cpu::UNACCOUNTED;
use crate::reports::json_head::{Quantity, head};
use crate::text::json::Object;
use stackglass_profile::{Recording, Sample, State, Thread};
use std::io::{self, Write};

/// Writes the summary of a recording as one JSON object. With `everything`, the tree has the frames of the runtime and
/// inlined library code as well.
///
/// # Errors
/// When writing fails.
pub fn write_json(recording: &Recording, everything: bool, out: &mut dyn Write) -> io::Result<()> {
    let tree = CpuTree::build(recording, everything);
    let cpu = tree.cpu();
    let quantity = Quantity { metric: Metric::Time, states: StateFilter::Awake, timed: true };
    let object = head(recording, quantity, cpu.time.saturating_sub(tree.unaccounted), cpu.hits)
        .number("unaccounted", tree.unaccounted)
        .number("wall", recording.info.wall.0)
        .number("delay", recording.info.delay.0)
        .number("asleep", time_in(recording, State::Asleep))
        .number("ready", time_in(recording, State::Waiting));
    let mut times = vec![ThreadTimes::default(); recording.threads.len()];
    for sample in &recording.samples {
        if let Some(times) = (sample.thread.0 as usize).checked_sub(1).and_then(|index| times.get_mut(index))
        {
            times.add(sample);
        }
    }
    let threads = recording.threads.iter().zip(&times).enumerate();
    let threads = threads.map(|(index, (thread, times))| thread_object(recording, index + 1, thread, times));
    let mut rows = Vec::new();
    // Children are sorted: the last one is opened first.
    let mut open: Vec<(u32, u64)> = tree.nodes[0].children.iter().rev().map(|child| (*child, 0)).collect();
    while let Some((node, depth)) = open.pop() {
        let call = &tree.nodes[node as usize];
        rows.push(row(&tree, call, depth));
        open.extend(call.children.iter().rev().map(|child| (*child, depth + 1)));
    }
    writeln!(out, "{}", object.list("threads", threads).list("tree", rows).end())
}

/// Time of a thread by state, and its samples on a CPU.
#[derive(Clone, Default)]
struct ThreadTimes {
    cpu: u64,
    asleep: u64,
    ready: u64,
    samples: u64,
}

impl ThreadTimes {
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

fn thread_object(recording: &Recording, number: usize, thread: &Thread, times: &ThreadTimes) -> Object {
    let process = recording.processes.get(thread.process.0 as usize);
    Object::new()
        .number("thread", number as u64)
        .text("name", &thread.name)
        .number("tid", u64::from(thread.tid))
        .number("pid", process.map_or(0, |process| u64::from(process.pid)))
        .text("program", process.map_or("", |process| &process.exe))
        .number("cpu", times.cpu)
        .number("asleep", times.asleep)
        .number("ready", times.ready)
        .number("samples", times.samples)
}

/// Time in a state.
fn time_in(recording: &Recording, state: State) -> u64 {
    let samples = recording.samples.iter().filter(|sample| sample.state == state);
    samples.fold(0, |sum, sample| sum.saturating_add(sample.time.0))
}

fn row(tree: &CpuTree<'_>, call: &CpuNode, depth: u64) -> Object {
    let object = Object::new().number("depth", depth);
    let object = match call.what {
        NodeKind::Function(function) => {
            let hottest = call.lines.iter().max_by_key(|(line, time)| (**time, std::cmp::Reverse(**line)));
            let at = hottest.map(|(line, _)| &tree.names.lines[*line as usize]);
            let at = at.filter(|at| !at.file.is_empty() && at.line > 0);
            let function = &tree.names.functions[function as usize];
            object
                .text("function", &function.name)
                .text_or_null("file", at.map(|at| &*at.file))
                .number_or_null("line", at.and_then(|at| u64::try_from(at.line).ok()))
                .text("module", &function.module)
        }
        NodeKind::Program(program) => object.text("program", &tree.programs[program as usize].name),
        NodeKind::Executors(_) => object.text("other", "[executor]"),
        NodeKind::Nothing(cut) => object.text("other", &no_stack_text(cut)),
        NodeKind::Unaccounted => object.text("other", UNACCOUNTED),
        NodeKind::Root => object,
    };
    object
        .number("own", call.own.time)
        .number("total", call.total.time)
        .number("own_samples", call.own.hits)
        .number("total_samples", call.total.hits)
        .flag("recursive", call.recursive)
}
