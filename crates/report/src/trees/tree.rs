//! Building the tree of a report: one node for each distinct way to get to a frame.
//!
//! Without recursion folding the work is one step for each node of the trie of distinct stacks,
//! whatever their number of samples. Nothing recurses: stacks may be deep.

use crate::options::Recur;
use crate::quirks::Quirks;
use crate::trees::siblings::Siblings;
use crate::trees::traces::{NodeNumber, Run, Traces};
use foldhash::HashMap;
use stackglass_profile::{Frame, word_buffer as data};

/// A line of the tree.
pub(crate) struct Node {
    /// Snapshots in it or below it.
    pub count: u64,
    /// Never seen awake.
    pub sleeping: bool,
    /// Merged from frames with different full names.
    pub mixed: bool,
    /// Some call that led to it went through a vtable or a function pointer.
    pub dispatched: bool,
    /// More than one node of the trie may lead to it.
    shared: bool,
    /// What it shows, as an index into the steps.
    step: u32,
}

impl Node {
    fn new(step: u32) -> Node {
        Node { count: 0, sleeping: true, mixed: false, dispatched: false, shared: false, step }
    }
}

/// What a node shows.
#[derive(Clone, Copy)]
pub(crate) struct Step<'a> {
    pub frame: &'a Frame,
    /// Address of the frame first met.
    pub address: u64,
    /// Key among siblings.
    key: u32,
}

/// How a tree is made.
#[derive(Clone, Copy)]
pub(crate) struct TreeOptions {
    /// Foreign frames are in it.
    pub foreign: bool,
    /// Merges equal frames; otherwise each address has a node of its own.
    pub combine: bool,
    /// Folds recursion by call site.
    pub recur: Recur,
    /// Where samples with folded recursion count.
    pub folded: Folded,
    /// Computes what [`Tree::flat_count`] returns.
    pub flat_counts: bool,
    /// Behaviour of the reference.
    pub quirks: Quirks,
}

/// Where a sample counts whose recursion is folded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Folded {
    /// In every node it passes, as in the reference: children may come to more than their parent.
    Passed,
    /// On the way to where it ends only, as if there had been no recursion.
    Ended,
}

/// The frames of a place that are shown: part of the steps, outermost first.
#[derive(Clone, Copy, Default)]
struct Way {
    start: u32,
    end: u32,
    /// Of the first step: few ways are longer, and steps need not be looked at for it.
    key: u32,
    /// The steps are there.
    known: bool,
    /// The place ends in a call through a vtable or a function pointer.
    dispatches: bool,
}

/// The tree; node 0 is its root, and numbers ascend in order of first meeting.
pub(crate) struct Tree<'a> {
    pub nodes: Vec<Node>,
    siblings: Siblings,
    steps: Vec<Step<'a>>,
    /// By node: snapshots that ended in it.
    overheads: Vec<u64>,
    /// Snapshots that ended in a node or below it; only where they are asked for.
    flat_counts: Vec<u64>,
}

impl<'a> Tree<'a> {
    pub(crate) fn build(traces: &'a Traces<'a>, runs: &[Run], options: &TreeOptions) -> Tree<'a> {
        let mut builder = Builder::new(traces, options);
        let ends = match options.recur {
            Recur::Off => builder.plain(runs),
            recur => builder.folded(runs, recur, options.folded),
        };
        builder.finish(runs, &ends, options)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.len() == 1
    }

    /// What a node shows; `None` for the root only.
    pub(crate) fn shown(&self, node: u32) -> Option<&Step<'a>> {
        (node != 0).then(|| &self.steps[self.nodes[node as usize].step as usize])
    }

    /// Snapshots that ended in a node.
    pub(crate) fn overhead(&self, node: u32) -> u64 {
        self.overheads[node as usize]
    }

    /// The largest of them.
    pub(crate) fn greatest_overhead(&self) -> u64 {
        self.overheads.iter().copied().max().unwrap_or(0)
    }

    /// What all nodes show; many may show the same.
    pub(crate) fn steps(&self) -> &[Step<'a>] {
        &self.steps
    }

    /// The number of what a node shows among all steps; 0 for the root, where it means nothing.
    pub(crate) fn step_of(&self, node: u32) -> u32 {
        self.nodes[node as usize].step
    }

    /// The children of a node, the one met last first.
    pub(crate) fn children(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        self.siblings.children(node)
    }

    /// Snapshots that ended in a node or below it, where they were asked for; else 0.
    pub(crate) fn flat_count(&self, node: u32) -> u64 {
        self.flat_counts.get(node as usize).copied().unwrap_or(0)
    }
}

struct Builder<'a> {
    traces: &'a Traces<'a>,
    nodes: Vec<Node>,
    siblings: Siblings,
    /// Number of each distinct frame, when frames are the keys; else places are. Those without
    /// names are told apart by their modules.
    frame_numbers: HashMap<(&'a Frame, &'a str), u32>,
    /// Ways down through the places met so far, one after the other.
    steps: Vec<Step<'a>>,
    /// By place.
    ways: Vec<Way>,
    /// By node: snapshots that ended in it.
    overheads: Vec<u64>,
    /// By key: it is in one place only, and there once. Empty where that is not known, or where nodes of
    /// the trie are gone through more than once.
    sole: Vec<bool>,
    show_foreign: bool,
    combine: bool,
    quirks: Quirks,
}

impl<'a> Builder<'a> {
    fn new(traces: &'a Traces<'a>, options: &TreeOptions) -> Builder<'a> {
        Builder {
            traces,
            nodes: vec![Node::new(0)],
            siblings: Siblings::new(),
            frame_numbers: HashMap::default(),
            steps: Vec::new(),
            ways: vec![Way::default(); traces.places.len()],
            overheads: Vec::new(),
            sole: Vec::new(),
            show_foreign: options.foreign,
            combine: options.combine,
            quirks: options.quirks,
        }
    }

    /// The way down through a place: its shown frames, outermost first.
    #[inline]
    fn way(&mut self, place_number: u32) -> Way {
        let way = self.ways[place_number as usize];
        if way.known { way } else { self.find_way(place_number) }
    }

    #[cold]
    fn find_way(&mut self, place_number: u32) -> Way {
        let place = &self.traces.places[place_number as usize];
        let start = self.steps.len() as u32;
        for index in (0..place.frames.len()).rev() {
            let frame = place.frames.get(index);
            if frame.foreign && !self.show_foreign {
                continue;
            }
            let next = self.frame_numbers.len() as u32;
            let key = match self.combine {
                true => {
                    let frame_key = (frame, self.quirks.module_of_nameless(frame));
                    *self.frame_numbers.entry(frame_key).or_insert(next)
                }
                false => place_number,
            };
            self.steps.push(Step { frame, address: place.address_of(index), key });
        }
        let key = self.steps.get(start as usize).map_or(0, |step| step.key);
        let end = self.steps.len() as u32;
        let way = Way { start, end, key, known: true, dispatches: place.dispatches };
        self.ways[place_number as usize] = way;
        way
    }

    /// Goes down from a node by the frames of a place, which another place called: `caller`. The path taken can
    /// be read from the result by going up.
    fn descend(&mut self, from: u32, caller: NodeNumber, place_number: u32) -> u32 {
        // The root, which is node 0 of the trie, has no place of its own.
        let mut dispatched = from != 0 && {
            let caller = self.traces.nodes[caller as usize].1;
            // It has been gone through, unless recursion is folded.
            self.way(caller).dispatches
        };
        let mut at = from;
        let mut new = false;
        let way = self.way(place_number);
        if way.start == way.end {
            self.nodes[from as usize].shared = true;
        }
        for step in way.start..way.end {
            let key = if step == way.start { way.key } else { self.steps[step as usize].key };
            let sole = || self.sole.get(key as usize).is_some_and(|sole| *sole);
            let number = self.nodes.len() as u32;
            at = match new || sole() && !self.nodes[at as usize].shared {
                true => self.siblings.add_child(at, key),
                false => self.siblings.child(at, key),
            };
            new = at == number;
            if new {
                self.nodes.push(Node::new(step));
            }
            // Only the outermost of inlined frames was called.
            self.nodes[at as usize].dispatched |= std::mem::take(&mut dispatched);
            if new {
                continue;
            }
            let node = &mut self.nodes[at as usize];
            node.shared = true;
            if node.step != step {
                self.meet(at, step);
            }
        }
        at
    }

    /// Finds the keys by which different nodes of the trie cannot lead to the same node of the tree.
    fn find_sole(&mut self) {
        for place_number in 0..self.traces.places.len() as u32 {
            self.way(place_number);
        }
        let keys = self.steps.iter().map(|step| step.key as usize + 1).max().unwrap_or(0);
        let mut times = vec![0_u8; keys];
        for step in &self.steps {
            let times = &mut times[step.key as usize];
            *times = times.saturating_add(1);
        }
        self.sole = times.into_iter().map(|times| times == 1).collect();
    }

    /// A node is met again, by another frame that is equal to its own.
    fn meet(&mut self, node: u32, step: u32) {
        let node = &mut self.nodes[node as usize];
        let (known, met) = (self.steps[node.step as usize], self.steps[step as usize]);
        node.mixed |= known.frame.spec != met.frame.spec;
        // Shows the name of the instance met last, as the reference does.
        if self.quirks.any_spec && !std::ptr::eq(known.frame, met.frame) {
            node.step = self.steps.len() as u32;
            self.steps.push(Step { frame: met.frame, ..known });
        }
    }

    /// Where each run ends; counts follow from that alone.
    fn plain(&mut self, runs: &[Run]) -> Vec<u32> {
        let traces = self.traces;
        let mut reached = vec![0_u32; traces.nodes.len()];
        self.nodes.reserve(traces.nodes.len());
        self.siblings.reserve(traces.nodes.len());
        // Then each node of the trie is gone through once.
        let whole = runs.len() == traces.runs.len();
        if whole {
            self.find_sole();
        }
        let step = |node: NodeNumber| {
            let (caller, place) = traces.nodes[node as usize];
            reached[node as usize] = self.descend(reached[caller as usize], caller, place);
        };
        match traces.nodes_as_met && whole {
            true => (1..traces.nodes.len() as u32).for_each(step),
            false => traces.nodes_met(runs.iter().map(|run| run.stack)).into_iter().for_each(step),
        }
        let ends: Vec<u32> = runs.iter().map(|run| reached[run.stack as usize]).collect();
        self.count(runs, &ends);
        ends
    }

    /// Counts runs in the nodes where they end and in all above.
    fn count(&mut self, runs: &[Run], ends: &[u32]) {
        for (run, end) in runs.iter().zip(ends) {
            let node = &mut self.nodes[*end as usize];
            node.count += run.count;
            node.sleeping &= run.state == data::ASLEEP;
        }
        for number in (1..self.nodes.len()).rev() {
            let Node { count, sleeping, .. } = self.nodes[number];
            let parent = &mut self.nodes[self.siblings.parent(number as u32) as usize];
            parent.count += count;
            parent.sleeping &= sleeping;
        }
    }

    /// The same with recursion folded: an address that is already on the stack leads back to
    /// where it led before. A node counts once per sample.
    fn folded(&mut self, runs: &[Run], recur: Recur, folded: Folded) -> Vec<u32> {
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
            let mut seen: HashMap<u32, u32> = HashMap::default();
            let mut at = 0;
            if folded == Folded::Passed {
                self.nodes[0].count += run.count;
                self.nodes[0].sleeping &= run.state == data::ASLEEP;
            }
            for node in path.iter().rev() {
                let place_number = traces.nodes[*node as usize].1;
                let place = &traces.places[place_number as usize];
                let foreign = recur == Recur::Flat && place.frames.len() > 0 && place.frames.get(0).foreign;
                if let Some(earlier) = seen.get(&place_number).filter(|_| !foreign) {
                    at = *earlier;
                } else if self.quirks.folds_into_metadata && !foreign && place.address.0 == run.thread {
                    at = 0;
                } else {
                    let from = at;
                    at = self.descend(from, traces.nodes[*node as usize].0, place_number);
                    marks.resize(self.nodes.len(), 0);
                    let mut up = at;
                    while up != from && folded == Folded::Passed {
                        if std::mem::replace(&mut marks[up as usize], mark) != mark {
                            let node = &mut self.nodes[up as usize];
                            node.count += run.count;
                            node.sleeping &= run.state == data::ASLEEP;
                        }
                        up = self.siblings.parent(up);
                    }
                }
                seen.insert(place_number, at);
            }
            ends.push(at);
        }
        if folded == Folded::Ended {
            self.count(runs, &ends);
        }
        ends
    }

    fn finish(mut self, runs: &[Run], ends: &[u32], options: &TreeOptions) -> Tree<'a> {
        self.overheads = vec![0; self.nodes.len()];
        for (run, end) in runs.iter().zip(ends) {
            self.overheads[*end as usize] += run.count;
        }
        if options.quirks.earliest_earns_nothing {
            // The root earns what the earliest sample that was picked should have earned.
            let earliest = runs.iter().zip(ends).max_by_key(|(run, _)| run.oldest);
            if let Some((_, end)) = earliest {
                self.overheads[*end as usize] -= 1;
                self.overheads[0] += 1;
            }
        }
        let mut flat_counts = Vec::new();
        if options.flat_counts {
            flat_counts.clone_from(&self.overheads);
            for number in (1..self.nodes.len()).rev() {
                flat_counts[self.siblings.parent(number as u32) as usize] += flat_counts[number];
            }
        }
        let Builder { nodes, siblings, steps, overheads, .. } = self;
        Tree { nodes, siblings, steps, overheads, flat_counts }
    }
}
