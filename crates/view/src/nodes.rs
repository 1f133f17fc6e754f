//! Stacks as a tree of frames in pre-order: inlined frames are nodes of their own.
//!
//! The totals of any selection are sums over contiguous nodes. Frames at the root that only start a program or a thread are left out, as in
//! flame graphs: what they use themselves counts for the root.

use crate::columns::Columns;
use crate::frames::Frames;
use foldhash::HashMap;
use stackglass_profile::{Recording, StackId};
use stackglass_report::kinds;

/// The tree. Node 0 is the root, which has no frame.
pub(crate) struct Nodes {
    /// Depth and frame of each node but the root, in pre-order.
    nodes: Vec<(u32, u32)>,
    /// The node of each stack that is used; 0 for others.
    of_stack: Vec<u32>,
}

/// Nodes in the order in which they were met.
#[derive(Default)]
struct Met {
    numbers: HashMap<(u32, u32), u32>,
    /// Parent and frame of each node, from 1.
    nodes: Vec<(u32, u32)>,
}

impl Met {
    fn child(&mut self, parent: u32, frame: u32) -> u32 {
        let nodes = &mut self.nodes;
        *self.numbers.entry((parent, frame)).or_insert_with(|| {
            nodes.push((parent, frame));
            nodes.len() as u32
        })
    }
}

impl Nodes {
    /// The tree of the stacks that samples have, and of others. `rust`: whether the program is compiled from Rust.
    pub(crate) fn new(
        recording: &Recording,
        rust: bool,
        frames: &mut Frames,
        others: impl Iterator<Item = StackId>,
    ) -> Nodes {
        let stacks = recording.stacks.nodes();
        let mut is_used = vec![false; stacks.len() + 1];
        let sampled = recording.samples.iter().map(|sample| sample.stack);
        sampled.chain(others).for_each(|stack| is_used[stack.0 as usize] = true);
        // Callers have smaller ids than callees.
        for id in (1..=stacks.len()).rev() {
            let (StackId(caller), _) = stacks[id - 1];
            is_used[caller as usize] |= is_used[id];
        }
        let mut met = Met::default();
        let mut of_stack = vec![0; stacks.len() + 1];
        for id in (1..=stacks.len()).filter(|id| is_used[*id]) {
            let (StackId(caller), location) = stacks[id - 1];
            let mut node = of_stack[caller as usize];
            let of_location = recording.symbols.frame_indices(location);
            for frame in of_location.iter().rev() {
                if node != 0 || !kinds::is_start(frames.get(*frame), rust) {
                    node = met.child(node, *frame);
                }
            }
            if of_location.is_empty() {
                node = met.child(node, frames.nameless(recording, location));
            }
            of_stack[id] = node;
        }
        Nodes::in_preorder(&met.nodes, of_stack)
    }

    fn in_preorder(met: &[(u32, u32)], mut of_stack: Vec<u32>) -> Nodes {
        let (mut first, mut next) = (vec![0_u32; met.len() + 1], vec![0_u32; met.len() + 1]);
        for number in (1..=met.len()).rev() {
            let parent = met[number - 1].0 as usize;
            next[number] = first[parent];
            first[parent] = number as u32;
        }
        let mut nodes = Vec::with_capacity(met.len());
        let mut order = vec![0_u32; met.len() + 1];
        let mut stack = vec![(first[0], 1_u32)];
        while let Some((number, depth)) = stack.pop() {
            if number == 0 {
                continue;
            }
            nodes.push((depth, met[number as usize - 1].1));
            order[number as usize] = nodes.len() as u32;
            stack.push((next[number as usize], depth));
            stack.push((first[number as usize], depth + 1));
        }
        of_stack.iter_mut().for_each(|node| *node = order[*node as usize]);
        Nodes { nodes, of_stack }
    }

    /// The number of nodes with the root.
    pub(crate) fn count(&self) -> usize {
        self.nodes.len() + 1
    }

    /// The node of a stack.
    pub(crate) fn of_stack(&self, stack: StackId) -> u32 {
        self.of_stack[stack.0 as usize]
    }

    /// The frame of a node; `None` for the root.
    pub(crate) fn frame(&self, node: u32) -> Option<u32> {
        Some(self.nodes.get(node.checked_sub(1)? as usize)?.1)
    }

    /// The parent of each node; that of the root is the root.
    pub(crate) fn parents(&self) -> Vec<u32> {
        let mut path = vec![0];
        let mut parents = vec![0];
        for (number, (depth, _)) in (1..).zip(&self.nodes) {
            path.truncate(*depth as usize);
            parents.push(path[path.len() - 1]);
            path.push(number);
        }
        parents
    }

    /// Adds the columns of nodes: how many levels to leave before each (0: it is a child of the previous node), and its frame.
    pub(crate) fn write(&self, columns: &mut Columns) {
        let mut above = 0;
        let left: Vec<u64> = self
            .nodes
            .iter()
            .map(|(depth, _)| {
                let left = above + 1 - depth;
                above = *depth;
                u64::from(left)
            })
            .collect();
        columns.push("nodes.left", left);
        columns.push("nodes.frame", self.nodes.iter().map(|(_, frame)| u64::from(*frame)));
    }
}
