//! The lanes that are in sight at first, in equal parts of the time.

use super::boxes::{Boxes, Functions};
use crate::columns::Columns;
use crate::nodes::Nodes;
use foldhash::HashMap;
use serde::Serialize;
use stackglass_flame::Category;
use stackglass_profile::{Nanos, Recording, Sample, State};
use std::cmp::Reverse;
use std::iter;

/// The most parts. Coarser ones are sums of these.
const PARTS: usize = 2048;
/// How many lanes are in sight in a window of 2 000 pixels.
const LANES: usize = 25;
/// Number of steps in the height of the first lane, and in that of the others. They are 61 and 23 pixels high.
const STEPS: (u64, u64) = (250, 100);
/// Parts of the names of functions that enter the kernel. Why a thread sleeps in them is known by their callers, which are named as well.
const ENTRIES: [&str; 2] = ["syscall", "sigreturn"];
/// The most kinds with a number of their own. Sleep in further functions is one kind.
const KINDS: usize = 250;

/// What a thread does: it runs code of a category, waits for a CPU, or sleeps in a function, with its callers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Kind {
    Runs(usize),
    Ready(&'static str),
    Asleep(Vec<String>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Of {
    All,
    Process(usize),
    Thread(usize),
}

/// A lane: by kind, the time in each part.
#[derive(Clone, Debug)]
pub(super) struct LaneBins {
    of: Of,
    /// The length of a part.
    part: u64,
    times: Vec<Vec<u64>>,
}

impl LaneBins {
    /// As in `page/src/tracks/lanes.ts`.
    pub(super) fn key(&self) -> String {
        match self.of {
            Of::All => "all".to_owned(),
            Of::Process(index) => format!("p{index}"),
            Of::Thread(number) => format!("t{number}"),
        }
    }

    fn add(&mut self, kind: usize, part: usize, time: u64) {
        if self.times.len() <= kind {
            self.times.resize_with(kind + 1, Vec::new);
        }
        let of = &mut self.times[kind];
        if of.is_empty() {
            of.resize(PARTS, 0);
        }
        of[part] += time;
    }
}

/// The first lanes in the order of the page (`page/src/tracks/lanes.ts`): those with most CPU time first. `cpu`: that by thread.
fn first_lanes(recording: &Recording, cpu: &[u64]) -> Vec<Of> {
    let mut members = vec![Vec::new(); recording.processes.len()];
    for (number, thread) in (1..).zip(&recording.threads) {
        if let Some(of) = members.get_mut(thread.process.0 as usize) {
            of.push(number);
        }
    }
    let used = |index: usize| members[index].iter().map(|number: &usize| cpu[*number]).sum::<u64>();
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_cached_key(|index| Reverse(used(*index)));
    let several = members.len() > 1;
    let lanes = order.into_iter().flat_map(|index| {
        let mut threads = members[index].clone();
        threads.sort_by_key(|number| Reverse(cpu[*number]));
        iter::once(Of::Process(index)).filter(move |_| several).chain(threads.into_iter().map(Of::Thread))
    });
    iter::once(Of::All).chain(lanes).take(LANES).collect()
}

/// What the first lanes do in each part, and the kinds of that.
pub(super) fn count(
    recording: &Recording,
    samples: &[&Sample],
    nodes: &Nodes,
    functions: &Functions,
    boxes: &Boxes,
    cpu: &[u64],
    wall: u64,
) -> (Vec<LaneBins>, Vec<Kind>) {
    let wall = wall.max(1);
    let shown = first_lanes(recording, cpu);
    let new = |of: &Of| LaneBins { of: *of, part: wall / PARTS as u64, times: Vec::new() };
    let mut lanes: Vec<LaneBins> = shown.iter().map(new).collect();
    let place = |of: Of| shown.iter().position(|other| *other == of);
    // By number of thread, its lane and that of its process.
    let mut lanes_of = vec![(None, None); recording.threads.len() + 1];
    for (number, thread) in (1..).zip(&recording.threads) {
        lanes_of[number] = (place(Of::Thread(number)), place(Of::Process(thread.process.0 as usize)));
    }
    let mut kinds: Vec<Kind> = (0..Category::ALL.len()).map(Kind::Runs).collect();
    let ready = kinds.len();
    kinds.push(Kind::Ready("ready"));
    let mut sleeps: HashMap<Vec<u32>, usize> = HashMap::default();
    let mut sleeps_of: HashMap<u32, usize> = HashMap::default();
    let start = recording.info.start.0;
    let moment = |part: usize| {
        let passed = u128::from(wall) * part as u128 / PARTS as u128;
        Nanos(start.saturating_add(passed as u64))
    };
    let part_of = |clock: Nanos| {
        let passed = u128::from(clock.0.saturating_sub(start));
        ((passed * PARTS as u128 / u128::from(wall)) as usize).min(PARTS - 1)
    };
    for sample in samples {
        let (thread, process) = lanes_of.get(sample.thread.0 as usize).copied().unwrap_or_default();
        let at = boxes.of_node(nodes.of_stack(sample.stack));
        let kind = match sample.state {
            State::Awake | State::Task => functions.category(boxes.function(at)) as usize,
            _ if thread.is_none() => continue,
            State::Waiting => ready,
            State::Asleep => *sleeps_of.entry(at).or_insert_with(|| {
                let mut way = Vec::new();
                for function in boxes.way_out(at) {
                    way.push(function);
                    if !ENTRIES.iter().any(|entry| functions.name(function).contains(entry)) {
                        break;
                    }
                }
                if kinds.len() > KINDS && !sleeps.contains_key(&way) {
                    way.clear();
                }
                *sleeps.entry(way.clone()).or_insert_with(|| {
                    kinds.push(Kind::Asleep(
                        way.iter().map(|number| functions.name(*number).to_owned()).collect(),
                    ));
                    kinds.len() - 1
                })
            }),
        };
        let running = [Some(0), process].map(|lane| lane.filter(|_| sample.state.uses_cpu()));
        let mut done = sample.time_before(Nanos(start));
        for part in part_of(sample.begin())..=part_of(sample.clock) {
            let reached = sample.time_before(moment(part + 1));
            let time = reached.0 - done.0;
            if time > 0 {
                for lane in running.into_iter().chain([thread]).flatten() {
                    lanes[lane].add(kind, part, time);
                }
            }
            done = reached;
        }
    }
    (lanes, kinds)
}

/// Adds the columns of lanes: how many kinds there are in each and which, the time of a step, and steps by kind and part.
pub(super) fn write(lanes: &[LaneBins], parts: usize, columns: &mut Columns) {
    let (mut kinds, mut units, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let together = PARTS / parts;
    for lane in lanes {
        let sums: Vec<(usize, Vec<u64>)> = lane
            .times
            .iter()
            .enumerate()
            .filter(|(_, times)| !times.is_empty())
            .map(|(kind, times)| (kind, times.chunks(together).map(|part| part.iter().sum()).collect()))
            .collect();
        let highest = (0..parts).map(|part| sums.iter().map(|(_, times)| times[part]).sum::<u64>()).max();
        let steps = if lane.of == Of::All { STEPS.0 } else { STEPS.1 };
        let unit = (highest.unwrap_or(0).max(lane.part * together as u64) / steps).max(1);
        kinds.push(sums.len() as u64);
        units.push(unit);
        for (kind, times) in sums {
            kinds.push(kind as u64);
            // What is there is seen.
            values.extend(times.iter().map(|time| ((time + unit / 2) / unit).max(u64::from(*time > 0))));
        }
    }
    columns.push("lanes.kinds", kinds);
    columns.push("lanes.units", units);
    columns.push("lanes.values", values);
}
