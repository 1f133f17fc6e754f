//! Building the tree of a report: one node for each distinct way to get to a frame.
//!
//! Without recursion folding the work is one step for each node of the trie of distinct stacks,
//! whatever their number of samples. Nothing recurses: stacks may be deep.

use super::{Recur, Report};
use crate::traces::{NodeNumber, Run, Traces};
use crate::{Frame, data};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

type Map<K, V> = HashMap<K, V, RandomState>;

/// Key among siblings and index in its place, for each shown frame of a place, outermost first.
type Steps = Box<[(u64, u32)]>;

/// A line of the tree.
pub(super) struct Node<'a> {
    pub parent: u32,
    /// `None` for the root only.
    pub frame: Option<&'a Frame>,
    /// Address of the frame first met.
    pub address: u64,
    /// Snapshots in it or below it.
    pub count: u64,
    /// Snapshots that ended in it.
    pub overhead: u64,
    /// Snapshots that ended in it or below it.
    pub flat_count: u64,
    /// Never seen awake.
    pub sleeping: bool,
    /// Merged from frames with different full names.
    pub mixed: bool,
    /// In order of first meeting.
    pub children: Vec<u32>,
}

/// The tree; node 0 is its root.
pub(super) struct Tree<'a> {
    pub nodes: Vec<Node<'a>>,
}

impl<'a> Tree<'a> {
    pub(super) fn build(traces: &'a Traces<'a>, runs: &[Run], report: &Report) -> Tree<'a> {
        let mut builder = Builder::new(traces, report);
        let ends = match report.recur {
            Recur::Off => builder.plain(runs),
            recur => builder.folded(runs, recur),
        };
        builder.finish(runs, &ends, report)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes[0].children.is_empty()
    }
}

struct Builder<'a> {
    traces: &'a Traces<'a>,
    nodes: Vec<Node<'a>>,
    children: Map<(u32, u64), u32>,
    /// Number of each distinct frame, when frames are the keys.
    frame_numbers: Map<&'a Frame, u64>,
    /// By place: what [`Builder::steps_of`] found.
    steps: Vec<Option<Steps>>,
    show_foreign: bool,
    combine: bool,
    /// Shows the name of the instance met last, as the reference does.
    last_spec: bool,
}

impl<'a> Builder<'a> {
    fn new(traces: &'a Traces<'a>, report: &Report) -> Builder<'a> {
        let root = Builder::blank();
        Builder {
            traces,
            nodes: vec![root],
            children: Map::default(),
            frame_numbers: Map::default(),
            steps: vec![None; traces.places.len()],
            show_foreign: report.c,
            combine: report.combine,
            last_spec: report.quirks.any_spec,
        }
    }

    /// The way down through a place.
    fn steps_of(&mut self, place_number: u32) -> Steps {
        let place = &self.traces.places[place_number as usize];
        let mut steps = Vec::with_capacity(place.frames.len());
        for index in (0..place.frames.len()).rev() {
            let frame = place.frames.get(index);
            if frame.foreign && !self.show_foreign {
                continue;
            }
            let next = self.frame_numbers.len() as u64;
            let key =
                if self.combine { *self.frame_numbers.entry(frame).or_insert(next) } else { place.address.0 };
            steps.push((key, index as u32));
        }
        steps.into()
    }

    /// Goes down from a node by the frames of a place. The path taken can be read from the result
    /// by going up.
    fn descend(&mut self, from: u32, place_number: u32) -> u32 {
        let steps = match self.steps[place_number as usize].take() {
            Some(steps) => steps,
            None => self.steps_of(place_number),
        };
        let place = &self.traces.places[place_number as usize];
        let mut at = from;
        for (key, index) in &steps {
            let frame = place.frames.get(*index as usize);
            at = match self.children.entry((at, *key)) {
                Entry::Occupied(child) => {
                    let child = *child.get();
                    let node = &mut self.nodes[child as usize];
                    node.mixed |= node.frame.is_some_and(|known| known.spec != frame.spec);
                    if self.last_spec {
                        node.frame = Some(frame);
                    }
                    child
                }
                Entry::Vacant(vacant) => {
                    let number = self.nodes.len() as u32;
                    let address = place.address_of(*index as usize);
                    self.nodes.push(Node { parent: at, frame: Some(frame), address, ..Builder::blank() });
                    self.nodes[at as usize].children.push(number);
                    *vacant.insert(number)
                }
            };
        }
        self.steps[place_number as usize] = Some(steps);
        at
    }

    fn blank() -> Node<'a> {
        Node {
            parent: 0,
            frame: None,
            address: 0,
            count: 0,
            overhead: 0,
            flat_count: 0,
            sleeping: true,
            mixed: false,
            children: Vec::new(),
        }
    }

    /// Where each run ends; counts follow from that alone.
    fn plain(&mut self, runs: &[Run]) -> Vec<u32> {
        let traces = self.traces;
        let mut reached = vec![0_u32; traces.nodes.len()];
        for node in traces.nodes_met(runs.iter().map(|run| run.stack)) {
            let (caller, place) = traces.nodes[node as usize];
            reached[node as usize] = self.descend(reached[caller as usize], place);
        }
        let ends: Vec<u32> = runs.iter().map(|run| reached[run.stack as usize]).collect();
        for (run, end) in runs.iter().zip(&ends) {
            let node = &mut self.nodes[*end as usize];
            node.count += run.count;
            node.sleeping &= run.state == data::ASLEEP;
        }
        for number in (1..self.nodes.len()).rev() {
            let (count, sleeping) = (self.nodes[number].count, self.nodes[number].sleeping);
            let parent = self.nodes[number].parent as usize;
            self.nodes[parent].count += count;
            self.nodes[parent].sleeping &= sleeping;
        }
        ends
    }

    /// The same with recursion folded: an address that is already on the stack leads back to
    /// where it led before. A node counts once per sample.
    fn folded(&mut self, runs: &[Run], recur: Recur) -> Vec<u32> {
        let traces = self.traces;
        let mut ends = Vec::with_capacity(runs.len());
        let mut path: Vec<NodeNumber> = Vec::new();
        let mut marks: Vec<u32> = vec![0];
        for (mark, run) in (1_u32..).zip(runs) {
            path.clear();
            let mut node = run.stack;
            while node != 0 {
                path.push(node);
                node = traces.nodes[node as usize].0;
            }
            // By place: the node reached after its occurrence nearest to where we are.
            let mut seen: Map<u32, u32> = Map::default();
            let mut at = 0;
            self.nodes[0].count += run.count;
            self.nodes[0].sleeping &= run.state == data::ASLEEP;
            for node in path.iter().rev() {
                let place_number = traces.nodes[*node as usize].1;
                let place = &traces.places[place_number as usize];
                let foreign = recur == Recur::Flat && place.frames.len() > 0 && place.frames.get(0).foreign;
                if let Some(earlier) = seen.get(&place_number).filter(|_| !foreign) {
                    at = *earlier;
                } else {
                    let from = at;
                    at = self.descend(from, place_number);
                    marks.resize(self.nodes.len(), 0);
                    let mut up = at;
                    while up != from {
                        if std::mem::replace(&mut marks[up as usize], mark) != mark {
                            let node = &mut self.nodes[up as usize];
                            node.count += run.count;
                            node.sleeping &= run.state == data::ASLEEP;
                        }
                        up = self.nodes[up as usize].parent;
                    }
                }
                seen.insert(place_number, at);
            }
            ends.push(at);
        }
        ends
    }

    fn finish(mut self, runs: &[Run], ends: &[u32], report: &Report) -> Tree<'a> {
        for (run, end) in runs.iter().zip(ends) {
            self.nodes[*end as usize].overhead += run.count;
        }
        if report.quirks.earliest_earns_nothing {
            // The root earns what the earliest sample that was picked should have earned.
            let earliest = runs.iter().zip(ends).max_by_key(|(run, _)| run.oldest);
            if let Some((_, end)) = earliest {
                self.nodes[*end as usize].overhead -= 1;
                self.nodes[0].overhead += 1;
            }
        }
        for node in &mut self.nodes {
            node.flat_count = node.overhead;
        }
        for number in (1..self.nodes.len()).rev() {
            let node = &self.nodes[number];
            let (flat_count, parent) = (node.flat_count, node.parent as usize);
            self.nodes[parent].flat_count += flat_count;
        }
        Tree { nodes: self.nodes }
    }
}
