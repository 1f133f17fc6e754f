//! The dominator tree and retained sizes.
//!
//! A node dominates another if each path from the root to the other passes through it. The algorithm is Semi-NCA: L. Georgiadis,
//! R. E. Tarjan and R. F. Werneck, Finding Dominators in Practice (2006): semidominators as in Lengauer and Tarjan's algorithm,
//! then each immediate dominator is the nearest common ancestor of the parent and the semidominator. Jump pointers (E. W. Myers,
//! An Applicative Random-Access Stack, 1983) find it in logarithmic time, so that no input takes quadratic time.
//!
//! Nodes are numbered by depth-first search; everything but the result is in these numbers, which makes accesses local.

use super::edges::{Holding, range};
use stackglass_profile::heap_graph::HeapGraph;

/// Not numbered.
const NONE: u32 = u32::MAX;

/// The dominator tree.
pub(super) struct Dominators {
    /// Of each node: the sum of the own sizes of all nodes that it dominates, itself among them.
    pub retained: Vec<u64>,
    /// Of each node: the number of these nodes.
    pub counts: Vec<u32>,
    /// All nodes with a path from the root, each before those that it dominates. Those follow it without a gap.
    pub preorder: Vec<u32>,
    /// Of each node: the number of blocks in `counts`. Empty if no node stands for several blocks.
    blocks: Vec<u64>,
}

impl Dominators {
    pub fn new(graph: &HeapGraph, holding: &Holding<'_>) -> Dominators {
        if graph.is_empty() {
            let (retained, counts, preorder, blocks) = Default::default();
            return Dominators { retained, counts, preorder, blocks };
        }
        let numbers = Numbers::new(graph, holding);
        let (vertices, idoms) = idoms(graph, holding, numbers);
        Dominators::sums(graph, &vertices, idoms)
    }

    /// The children of the node at a place in the preorder, as places.
    pub fn children(&self, place: usize) -> impl Iterator<Item = usize> + '_ {
        let end = self.end(place);
        let first = Some(place + 1).filter(|child| *child < end);
        std::iter::successors(first, move |child| Some(self.end(*child)).filter(|next| *next < end))
    }

    /// The place behind the last node that the node at a place dominates.
    pub fn end(&self, place: usize) -> usize {
        place + self.counts[self.preorder[place] as usize] as usize
    }

    /// The number of blocks that go with a node, itself included.
    pub fn blocks(&self, node: usize) -> u64 {
        self.blocks.get(node).copied().unwrap_or(self.counts[node].into())
    }

    fn sums(graph: &HeapGraph, vertices: &[u32], idoms: Vec<u32>) -> Dominators {
        let mut retained: Vec<u64> = graph.self_sizes.iter().collect();
        let mut counts = vec![1_u32; graph.len()];
        let grouped = if graph.members.is_empty() { 0 } else { graph.len() };
        let mut blocks: Vec<u64> = (0..grouped).map(|node| graph.block_count(node)).collect();
        for number in (1..vertices.len()).rev() {
            let (node, above) = (vertices[number] as usize, vertices[idoms[number] as usize] as usize);
            retained[above] = retained[above].saturating_add(retained[node]);
            counts[above] += counts[node];
            if grouped > 0 {
                blocks[above] += blocks[node];
            }
        }
        // Of each number: its place in the preorder, and then the place of its next child.
        let mut preorder = vec![0; vertices.len()];
        let mut next = idoms;
        for number in 0..vertices.len() {
            let place = match number {
                0 => 0,
                _ => {
                    let above = next[number] as usize;
                    let place = next[above];
                    next[above] += counts[vertices[number] as usize];
                    place
                }
            };
            preorder[place as usize] = vertices[number];
            next[number] = place + 1;
        }
        // A node without a path belongs to the root.
        if vertices.len() < graph.len() {
            let numbered = super::Bits::from_members(graph.len(), vertices.iter().copied());
            let rest = (0..graph.len()).filter(|node| !numbered.get(*node));
            let rest = rest.fold(0, |sum: u64, node| sum.saturating_add(graph.self_sizes.get(node)));
            retained[0] = retained[0].saturating_add(rest);
        }
        Dominators { retained, counts, preorder, blocks }
    }
}

/// Numbers of nodes by depth-first search.
struct Numbers {
    /// Nodes by number.
    vertices: Vec<u32>,
    /// Numbers by node.
    numbers: Vec<u32>,
    /// The parent in the tree of the search, by number. That of the root is the root.
    parents: Vec<u32>,
}

impl Numbers {
    fn new(graph: &HeapGraph, holding: &Holding<'_>) -> Numbers {
        let mut numbers = Numbers {
            vertices: Vec::with_capacity(graph.len()),
            numbers: vec![NONE; graph.len()],
            parents: Vec::with_capacity(graph.len()),
        };
        let mut next = vec![0; graph.len()];
        numbers.search(graph, holding, 0, &mut next);
        if numbers.vertices.len() < graph.len() {
            // As in DevTools, the root holds nodes that have no holder at all.
            let targets = |node| range(graph, node).filter_map(move |edge| holding.target(node, edge));
            let held = super::Bits::from_members(graph.len(), (0..graph.len() as u32).flat_map(targets));
            for node in 0..graph.len() {
                if numbers.numbers[node] == NONE && !held.get(node) {
                    numbers.search(graph, holding, node as u32, &mut next);
                }
            }
        }
        numbers
    }

    /// Numbers everything that can be reached from a node. Its parent is the root.
    fn search(&mut self, graph: &HeapGraph, holding: &Holding<'_>, from: u32, next: &mut [u32]) {
        let first = self.add(graph, from, 0, next);
        let mut current = first;
        loop {
            let node = self.vertices[current as usize];
            let end = graph.first_edges[node as usize + 1];
            let mut found = None;
            while next[node as usize] < end && found.is_none() {
                let edge = next[node as usize] as usize;
                next[node as usize] += 1;
                found = holding.target(node, edge).filter(|to| self.numbers[*to as usize] == NONE);
            }
            match found {
                Some(to) => current = self.add(graph, to, current, next),
                None if current == first => return,
                None => current = self.parents[current as usize],
            }
        }
    }

    fn add(&mut self, graph: &HeapGraph, node: u32, parent: u32, next: &mut [u32]) -> u32 {
        let number = self.vertices.len() as u32;
        self.numbers[node as usize] = number;
        self.vertices.push(node);
        self.parents.push(parent);
        next[node as usize] = graph.first_edges[node as usize];
        number
    }
}

/// Nodes by number, and the number of the immediate dominator of each.
fn idoms(graph: &HeapGraph, holding: &Holding<'_>, numbers: Numbers) -> (Vec<u32>, Vec<u32>) {
    let before = Predecessors::new(graph, holding, &numbers);
    let Numbers { vertices, parents, .. } = numbers;
    let len = vertices.len() as u32;
    let mut ancestors = parents.clone();
    // The least semidominator on the path to the ancestor; itself for numbers that are not linked yet.
    let mut least: Vec<u32> = (0..len).collect();
    let mut semi = parents.clone();
    let mut path = Vec::new();
    for number in (1..len).rev() {
        let mut lowest = parents[number as usize];
        for from in before.of(number) {
            lowest = lowest.min(lowest_above(*from, number, &mut ancestors, &mut least, &mut path));
        }
        semi[number as usize] = lowest;
        least[number as usize] = lowest;
    }
    drop(before);
    let (mut jumps, mut depths) = (ancestors, least);
    let mut idoms = parents;
    (jumps[0], depths[0]) = (0, 0);
    for number in 1..len as usize {
        let mut above = idoms[number];
        while above > semi[number] {
            let jump = jumps[above as usize];
            above = if jump > semi[number] { jump } else { idoms[above as usize] };
        }
        idoms[number] = above;
        depths[number] = depths[above as usize] + 1;
        let jump = jumps[above as usize];
        let over = jumps[jump as usize];
        let equal =
            depths[above as usize] - depths[jump as usize] == depths[jump as usize] - depths[over as usize];
        jumps[number] = if equal { over } else { above };
    }
    (vertices, idoms)
}

/// The least semidominator on the path from the root of the forest of linked numbers to this one, without that root. All
/// numbers above `limit` are linked.
#[inline]
fn lowest_above(from: u32, limit: u32, ancestors: &mut [u32], least: &mut [u32], path: &mut Vec<u32>) -> u32 {
    if from <= limit {
        return from;
    }
    let mut at = from;
    while ancestors[at as usize] > limit {
        path.push(at);
        at = ancestors[at as usize];
    }
    while let Some(below) = path.pop() {
        let above = ancestors[below as usize] as usize;
        least[below as usize] = least[below as usize].min(least[above]);
        ancestors[below as usize] = ancestors[above];
    }
    least[from as usize]
}

/// Edges by target, without those from the parent in the tree of the search.
struct Predecessors {
    first: Vec<u32>,
    sources: Vec<u32>,
}

impl Predecessors {
    fn new(graph: &HeapGraph, holding: &Holding<'_>, numbers: &Numbers) -> Predecessors {
        let each = |call: &mut dyn FnMut(u32, u32)| {
            for (number, node) in numbers.vertices.iter().enumerate() {
                let number = number as u32;
                for edge in range(graph, *node) {
                    let Some(to) = holding.target(*node, edge) else { continue };
                    let to = numbers.numbers[to as usize];
                    if to != 0 && numbers.parents[to as usize] != number {
                        call(number, to);
                    }
                }
            }
        };
        let mut first = vec![0_u32; numbers.vertices.len() + 1];
        each(&mut |_, to| first[to as usize] += 1);
        let mut sum = 0;
        for count in &mut first {
            sum += std::mem::replace(count, sum);
        }
        let mut sources = vec![0; sum as usize];
        // Each entry moves to the end of its range, which is the begin of the next one.
        each(&mut |from, to| {
            sources[first[to as usize] as usize] = from;
            first[to as usize] += 1;
        });
        Predecessors { first, sources }
    }

    fn of(&self, number: u32) -> &[u32] {
        let at = number as usize;
        let begin = if at == 0 { 0 } else { self.first[at - 1] };
        &self.sources[begin as usize..self.first[at] as usize]
    }
}
