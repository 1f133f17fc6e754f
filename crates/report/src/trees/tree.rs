//! The tree of frames: one node for each distinct path from the root to a frame.
//!
//! Without recursion folding, the work grows with the trie of distinct stacks, not with the number of samples. No
//! function here recurses, since stacks may be deep.

use crate::options::Recur;
use crate::quirks::Quirks;
use crate::trees::aggregated_samples::{AggregatedSamples, NodeNumber, SampleGroup, TrieNode};
use crate::trees::siblings::Siblings;
use foldhash::HashMap;
use stackglass_profile::{Frame, word_buffer as data};

/// A node of the tree.
pub(crate) struct Node {
    /// Snapshots in it or below it.
    pub count: u64,
    /// Never seen awake.
    pub sleeping: bool,
    /// Merged from frames with different full names.
    pub mixed: bool,
    /// At least one call that led to it went through a vtable or a function pointer.
    pub dispatched: bool,
    /// More than one node of the trie may lead to it.
    shared: bool,
    /// Index of its frame in [`Tree::frames`].
    frame: u32,
}

impl Node {
    fn new(frame: u32) -> Node {
        Node { count: 0, sleeping: true, mixed: false, dispatched: false, shared: false, frame }
    }
}

/// The frame that a node shows.
#[derive(Clone, Copy)]
pub(crate) struct TreeFrame<'a> {
    pub frame: &'a Frame,
    /// Address of the first of the equal frames.
    pub address: u64,
    /// Siblings with the same key are one node.
    key: u32,
}

/// How a tree is built.
#[derive(Clone, Copy)]
pub(crate) struct TreeOptions {
    /// Includes foreign frames.
    pub foreign: bool,
    /// Merges equal frames; otherwise each address has a separate node.
    pub combine: bool,
    /// Folds recursion by call site.
    pub recur: Recur,
    /// Where samples with folded recursion count.
    pub folded: Folded,
    /// Computes what [`Tree::flat_count`] returns.
    pub flat_counts: bool,
    /// Behaviour of the reference to repeat.
    pub quirks: Quirks,
}

/// Which nodes count a sample when recursion is folded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Folded {
    /// Every node that it passes, as in the reference. Children may then sum to more than their parent.
    Passed,
    /// Only the node where it ends and that node's ancestors, as if there had been no recursion.
    Ended,
}

/// The shown frames of one address: a range of [`Builder::frames`], outermost first.
#[derive(Clone, Copy, Default)]
struct FrameRange {
    start: u32,
    end: u32,
    /// Key of the first frame. Most ranges have only one frame, so the frames themselves are rarely read.
    key: u32,
    /// The range has been computed.
    known: bool,
    /// The address is that of a call through a vtable or a function pointer.
    dispatches: bool,
}

/// The tree. Node 0 is the root; nodes are numbered in the order in which they were first met.
pub(crate) struct Tree<'a> {
    pub nodes: Vec<Node>,
    siblings: Siblings,
    frames: Vec<TreeFrame<'a>>,
    /// By node: snapshots that ended in it.
    overheads: Vec<u64>,
    /// By node: snapshots that ended in it or below it. Empty unless [`TreeOptions::flat_counts`] is set.
    flat_counts: Vec<u64>,
}

impl<'a> Tree<'a> {
    pub(crate) fn build(
        samples: &'a AggregatedSamples<'a>,
        groups: &[SampleGroup],
        options: &TreeOptions,
    ) -> Tree<'a> {
        let mut builder = Builder::new(samples, options);
        let ends = match options.recur {
            Recur::Off => builder.plain(groups),
            recur => builder.folded(groups, recur, options.folded),
        };
        builder.finish(groups, &ends, options)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.len() == 1
    }

    /// The frame of a node; `None` for the root.
    pub(crate) fn frame(&self, node: u32) -> Option<&TreeFrame<'a>> {
        (node != 0).then(|| &self.frames[self.nodes[node as usize].frame as usize])
    }

    /// Snapshots that ended in a node.
    pub(crate) fn overhead(&self, node: u32) -> u64 {
        self.overheads[node as usize]
    }

    /// The largest overhead of all nodes.
    pub(crate) fn greatest_overhead(&self) -> u64 {
        self.overheads.iter().copied().max().unwrap_or(0)
    }

    /// The frames of all nodes. Nodes may share one.
    pub(crate) fn frames(&self) -> &[TreeFrame<'a>] {
        &self.frames
    }

    /// Index of a node's frame in [`Tree::frames`]; 0, without meaning, for the root.
    pub(crate) fn frame_number(&self, node: u32) -> u32 {
        self.nodes[node as usize].frame
    }

    /// The children of a node, last met first.
    pub(crate) fn children(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        self.siblings.children(node)
    }

    /// Snapshots that ended in a node or below it; 0 unless [`TreeOptions::flat_counts`] was set.
    pub(crate) fn flat_count(&self, node: u32) -> u64 {
        self.flat_counts.get(node as usize).copied().unwrap_or(0)
    }
}

struct Builder<'a> {
    samples: &'a AggregatedSamples<'a>,
    nodes: Vec<Node>,
    siblings: Siblings,
    /// Key of each distinct frame when equal frames are merged. Frames without names are distinguished by their
    /// modules. Otherwise addresses are the keys.
    frame_numbers: HashMap<(&'a Frame, &'a str), u32>,
    /// The shown frames of the addresses met so far, one address after the other.
    frames: Vec<TreeFrame<'a>>,
    /// By address number.
    ranges: Vec<FrameRange>,
    /// By node: snapshots that ended in it.
    overheads: Vec<u64>,
    /// By key: whether exactly one frame has it. Empty if that is unknown, or if nodes of the trie are visited more
    /// than once.
    unique: Vec<bool>,
    show_foreign: bool,
    combine: bool,
    quirks: Quirks,
}

impl<'a> Builder<'a> {
    fn new(samples: &'a AggregatedSamples<'a>, options: &TreeOptions) -> Builder<'a> {
        Builder {
            samples,
            nodes: vec![Node::new(0)],
            siblings: Siblings::new(),
            frame_numbers: HashMap::default(),
            frames: Vec::new(),
            ranges: vec![FrameRange::default(); samples.addresses.len()],
            overheads: Vec::new(),
            unique: Vec::new(),
            show_foreign: options.foreign,
            combine: options.combine,
            quirks: options.quirks,
        }
    }

    /// The shown frames of an address.
    #[inline]
    fn range(&mut self, address_number: u32) -> FrameRange {
        let range = self.ranges[address_number as usize];
        if range.known { range } else { self.resolve_range(address_number) }
    }

    #[cold]
    fn resolve_range(&mut self, address_number: u32) -> FrameRange {
        let resolved = &self.samples.addresses[address_number as usize];
        let start = self.frames.len() as u32;
        for index in (0..resolved.frames.len()).rev() {
            let frame = resolved.frames.get(index);
            if frame.foreign && !self.show_foreign {
                continue;
            }
            let next = self.frame_numbers.len() as u32;
            let key = match self.combine {
                true => {
                    let frame_key = (frame, self.quirks.module_of_nameless(frame));
                    *self.frame_numbers.entry(frame_key).or_insert(next)
                }
                false => address_number,
            };
            self.frames.push(TreeFrame { frame, address: resolved.address_of(index), key });
        }
        let key = self.frames.get(start as usize).map_or(0, |frame| frame.key);
        let end = self.frames.len() as u32;
        let range = FrameRange { start, end, key, known: true, dispatches: resolved.dispatches };
        self.ranges[address_number as usize] = range;
        range
    }

    /// Descends from a node through the frames of an address and returns the node reached. `caller` is the trie node of
    /// the caller.
    fn descend(&mut self, from: u32, caller: NodeNumber, address_number: u32) -> u32 {
        // The root, node 0 of the trie, has no address.
        let mut dispatched = from != 0 && {
            let caller = self.samples.nodes[caller as usize].address;
            // Its range is known already, unless recursion is folded.
            self.range(caller).dispatches
        };
        let mut at = from;
        let mut new = false;
        let range = self.range(address_number);
        if range.start == range.end {
            self.nodes[from as usize].shared = true;
        }
        for frame in range.start..range.end {
            let key = if frame == range.start { range.key } else { self.frames[frame as usize].key };
            let unique = || self.unique.get(key as usize).is_some_and(|unique| *unique);
            let number = self.nodes.len() as u32;
            at = match new || unique() && !self.nodes[at as usize].shared {
                true => self.siblings.add_child(at, key),
                false => self.siblings.child(at, key),
            };
            new = at == number;
            if new {
                self.nodes.push(Node::new(frame));
            }
            // The call reached only the outermost of the inlined frames.
            self.nodes[at as usize].dispatched |= std::mem::take(&mut dispatched);
            if new {
                continue;
            }
            let node = &mut self.nodes[at as usize];
            node.shared = true;
            if node.frame != frame {
                self.meet(at, frame);
            }
        }
        at
    }

    /// Finds the keys that only one frame has: different trie nodes cannot reach the same tree node by them.
    fn find_unique_keys(&mut self) {
        for address_number in 0..self.samples.addresses.len() as u32 {
            self.range(address_number);
        }
        let keys = self.frames.iter().map(|frame| frame.key as usize + 1).max().unwrap_or(0);
        let mut times = vec![0_u8; keys];
        for frame in &self.frames {
            let times = &mut times[frame.key as usize];
            *times = times.saturating_add(1);
        }
        self.unique = times.into_iter().map(|times| times == 1).collect();
    }

    /// Merges another frame, equal to the node's own, into a node.
    fn meet(&mut self, node: u32, frame: u32) {
        let node = &mut self.nodes[node as usize];
        let (known, met) = (self.frames[node.frame as usize], self.frames[frame as usize]);
        node.mixed |= known.frame.spec != met.frame.spec;
        // The reference shows the name of the instance met last.
        if self.quirks.any_spec && !std::ptr::eq(known.frame, met.frame) {
            node.frame = self.frames.len() as u32;
            self.frames.push(TreeFrame { frame: met.frame, ..known });
        }
    }

    /// Builds the tree without folding. Returns the node in which each group ends.
    fn plain(&mut self, groups: &[SampleGroup]) -> Vec<u32> {
        let samples = self.samples;
        let mut reached = vec![0_u32; samples.nodes.len()];
        self.nodes.reserve(samples.nodes.len());
        self.siblings.reserve(samples.nodes.len());
        // With all groups, each node of the trie is visited exactly once.
        let whole = groups.len() == samples.groups.len();
        if whole {
            self.find_unique_keys();
        }
        let visit = |node: NodeNumber| {
            let TrieNode { caller, address } = samples.nodes[node as usize];
            reached[node as usize] = self.descend(reached[caller as usize], caller, address);
        };
        match samples.nodes_as_met && whole {
            true => (1..samples.nodes.len() as u32).for_each(visit),
            false => samples.nodes_met(groups.iter().map(|group| group.stack)).into_iter().for_each(visit),
        }
        let ends: Vec<u32> = groups.iter().map(|group| reached[group.stack as usize]).collect();
        self.count(groups, &ends);
        ends
    }

    /// Adds groups to the nodes in which they end and to all ancestors.
    fn count(&mut self, groups: &[SampleGroup], ends: &[u32]) {
        for (group, end) in groups.iter().zip(ends) {
            let node = &mut self.nodes[*end as usize];
            node.count += group.count;
            node.sleeping &= group.state == data::ASLEEP;
        }
        for number in (1..self.nodes.len()).rev() {
            let Node { count, sleeping, .. } = self.nodes[number];
            let parent = &mut self.nodes[self.siblings.parent(number as u32) as usize];
            parent.count += count;
            parent.sleeping &= sleeping;
        }
    }

    /// Builds the tree with recursion folded: an address that is already on the stack leads back to the node it led to
    /// before. Each node counts a sample once.
    fn folded(&mut self, groups: &[SampleGroup], recur: Recur, folded: Folded) -> Vec<u32> {
        let samples = self.samples;
        let mut ends = Vec::with_capacity(groups.len());
        let mut path: Vec<NodeNumber> = Vec::new();
        let mut marks: Vec<u32> = vec![0];
        for (mark, group) in (1_u32..).zip(groups) {
            path.clear();
            let mut node = group.stack;
            while node != 0 {
                path.push(node);
                node = samples.nodes[node as usize].caller;
            }
            // By address number: the node reached after its last occurrence.
            let mut seen: HashMap<u32, u32> = HashMap::default();
            let mut at = 0;
            if folded == Folded::Passed {
                self.nodes[0].count += group.count;
                self.nodes[0].sleeping &= group.state == data::ASLEEP;
            }
            for node in path.iter().rev() {
                let address_number = samples.nodes[*node as usize].address;
                let resolved = &samples.addresses[address_number as usize];
                let foreign =
                    recur == Recur::Flat && resolved.frames.len() > 0 && resolved.frames.get(0).foreign;
                if let Some(earlier) = seen.get(&address_number).filter(|_| !foreign) {
                    at = *earlier;
                } else if self.quirks.folds_into_metadata && !foreign && resolved.address.0 == group.thread {
                    at = 0;
                } else {
                    let from = at;
                    at = self.descend(from, samples.nodes[*node as usize].caller, address_number);
                    marks.resize(self.nodes.len(), 0);
                    let mut up = at;
                    while up != from && folded == Folded::Passed {
                        if std::mem::replace(&mut marks[up as usize], mark) != mark {
                            let node = &mut self.nodes[up as usize];
                            node.count += group.count;
                            node.sleeping &= group.state == data::ASLEEP;
                        }
                        up = self.siblings.parent(up);
                    }
                }
                seen.insert(address_number, at);
            }
            ends.push(at);
        }
        if folded == Folded::Ended {
            self.count(groups, &ends);
        }
        ends
    }

    fn finish(mut self, groups: &[SampleGroup], ends: &[u32], options: &TreeOptions) -> Tree<'a> {
        self.overheads = vec![0; self.nodes.len()];
        for (group, end) in groups.iter().zip(ends) {
            self.overheads[*end as usize] += group.count;
        }
        if options.quirks.earliest_earns_nothing {
            // The overhead of the earliest selected sample goes to the root.
            let earliest = groups.iter().zip(ends).max_by_key(|(group, _)| group.oldest);
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
        let Builder { nodes, siblings, frames, overheads, .. } = self;
        Tree { nodes, siblings, frames, overheads, flat_counts }
    }
}
