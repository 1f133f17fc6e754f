//! The largest dominators: what holds most of the memory, and where it hangs.

use super::{HeapAnswers, HeapPath, unreachable_node};
use crate::order;
use stackglass_profile::heap_graph::NodeIndex;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A block that holds others.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Dominator {
    /// Its number in the graph.
    pub node: usize,
    /// Its type.
    pub name: String,
    /// Number of blocks that would go with it, itself included.
    pub count: u64,
    /// Their bytes.
    pub retained_size: u64,
    /// The shortest path to it.
    pub path: HeapPath,
}

/// A holder is passed over if a single block below it holds at least this share of its bytes, in percent.
const MOST: u64 = 80;

impl HeapAnswers<'_> {
    /// The groups of roots with the bytes that each alone holds, the largest first.
    pub fn roots(&self) -> Vec<(String, u64)> {
        let (graph, tree) = (self.graph, &self.dominators);
        if tree.preorder.is_empty() {
            return Vec::new();
        }
        let unreachable = unreachable_node(graph);
        let nodes = tree.children(0).map(|place| tree.preorder[place]);
        let nodes =
            nodes.filter(|node| Some(*node) != unreachable && self.type_names.is_root(graph, *node as usize));
        let mut roots: Vec<(String, u64)> = nodes
            .map(|node| (graph.name(NodeIndex(node)).to_owned(), tree.retained[node as usize]))
            .collect();
        roots.sort_by(|a, b| order::largest_first((a.1, &a.0), (b.1, &b.0)));
        roots
    }

    /// The blocks right below the roots that hold the most bytes. Where nearly all of it is held by one block of another type
    /// below, that block stands for it.
    pub fn largest(&self, rows: usize) -> Vec<Dominator> {
        let (graph, tree) = (self.graph, &self.dominators);
        let unreachable = unreachable_node(graph);
        let mut heap = BinaryHeap::new();
        let mut place = 1;
        while place < tree.preorder.len() {
            let node = tree.preorder[place];
            if Some(node) == unreachable {
                place = tree.end(place);
            } else if self.type_names.is_root(graph, node as usize) {
                place += 1;
            } else {
                keep(&mut heap, rows, tree.retained[node as usize], place);
                place = tree.end(place);
            }
        }
        let places = heap.into_iter().map(|Reverse((_, Reverse(place)))| self.gathering(place));
        let mut found: Vec<Dominator> = places.map(|place| self.dominator(place)).collect();
        found.sort_by_key(|found| (Reverse(found.retained_size), found.node));
        found
    }

    /// The blocks of a type that hold the most bytes. Of those that hold each other, the outermost.
    pub(super) fn largest_of(&self, type_id: u32, rows: usize) -> Vec<Dominator> {
        let (graph, tree) = (self.graph, &self.dominators);
        let mut heap = BinaryHeap::new();
        let mut place = 1;
        while place < tree.preorder.len() {
            let node = tree.preorder[place] as usize;
            if !self.type_names.is_root(graph, node) && self.type_names.of(graph, node) == type_id {
                keep(&mut heap, rows, tree.retained[node], place);
                place = tree.end(place);
            } else {
                place += 1;
            }
        }
        let mut places: Vec<_> = heap.into_iter().map(|Reverse(entry)| entry).collect();
        places.sort_unstable_by_key(|entry| Reverse(*entry));
        places.into_iter().map(|(_, Reverse(place))| self.dominator(place)).collect()
    }

    fn dominator(&self, place: usize) -> Dominator {
        let node = self.dominators.preorder[place] as usize;
        Dominator {
            node,
            name: self.type_of(node).to_owned(),
            count: self.dominators.counts[node].into(),
            retained_size: self.dominators.retained[node],
            path: self.path(node).unwrap_or_default(),
        }
    }

    /// Follows the largest block below, as long as it holds nearly everything and its type is new.
    fn gathering(&self, mut place: usize) -> usize {
        let tree = &self.dominators;
        let retained = |place: usize| tree.retained[tree.preorder[place] as usize];
        let type_at = |place: usize| self.type_names.of(self.graph, tree.preorder[place] as usize);
        let whole = u128::from(retained(place)) * u128::from(MOST);
        let mut types = vec![type_at(place)];
        loop {
            let below = tree.children(place).max_by_key(|below| (retained(*below), Reverse(*below)));
            match below {
                Some(below)
                    if u128::from(retained(below)) * 100 >= whole && !types.contains(&type_at(below)) =>
                {
                    types.push(type_at(below));
                    place = below;
                }
                _ => return place,
            }
        }
    }
}

/// Keeps the largest entries, the first ones among equals.
fn keep(heap: &mut BinaryHeap<Reverse<(u64, Reverse<usize>)>>, rows: usize, retained: u64, place: usize) {
    heap.push(Reverse((retained, Reverse(place))));
    if heap.len() > rows {
        heap.pop();
    }
}
