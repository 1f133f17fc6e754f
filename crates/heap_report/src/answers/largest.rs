//! The largest dominators: what holds most of the memory, and where it hangs.

use super::edges::{Labels, range};
use super::variables::Variable;
use super::{Bits, HeapAnswers, HeapPath, unreachable_node};
use foldhash::HashMap;
use stackglass_profile::heap_graph::NodeIndex;
use stackglass_report::order;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A block that holds others, or a variable that holds several blocks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Dominator {
    /// Its number in the graph. For a local variable, that of its frame.
    pub node: usize,
    /// Its type, or the name of the variable.
    pub name: String,
    /// Whether it is a variable.
    pub is_variable: bool,
    /// How many blocks are like this one: as large, with as much below, and held by the same field of the same type.
    pub alike: u64,
    /// Number of blocks that would go with it, itself included.
    pub count: u64,
    /// Their bytes.
    pub retained_size: u64,
    /// The shortest path to it.
    pub path: HeapPath,
}

/// A holder is passed over if a single block below it holds at least this share of its bytes, in percent.
const MOST: u64 = 80;

/// Number of the largest blocks among which those that are alike are counted as one.
const KEPT: usize = 10_000;

/// Bytes that roots hold.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RootSizes {
    /// What each group of roots alone holds, the largest first.
    pub groups: Vec<(String, u64)>,
    /// What several of them hold, and none of them alone.
    pub shared: u64,
    /// What the root of the graph holds without a group, as in snapshots of browsers.
    pub others: u64,
}

impl HeapAnswers<'_> {
    /// How much each group of roots alone holds, and how much several of them hold together.
    pub fn roots(&self) -> RootSizes {
        let (graph, tree) = (self.graph, &self.dominators);
        let mut roots = RootSizes::default();
        if tree.preorder.is_empty() {
            return roots;
        }
        let unreachable = unreachable_node(graph);
        let direct = Bits::of(graph.len(), range(graph, 0).filter_map(|edge| self.holding.target(0, edge)));
        for node in tree.children(0).map(|place| tree.preorder[place]) {
            let retained = tree.retained[node as usize];
            if Some(node) == unreachable || !self.is_alive(node as usize) {
                continue;
            } else if self.type_names.is_root(graph, node as usize) {
                roots.groups.push((graph.name(NodeIndex(node)).to_owned(), retained));
            } else if direct.get(node as usize) {
                roots.others = roots.others.saturating_add(retained);
            } else {
                roots.shared = roots.shared.saturating_add(retained);
            }
        }
        roots.groups.sort_by(|a, b| order::largest_first((a.1, &a.0), (b.1, &b.0)));
        roots
    }

    /// The blocks directly below the roots that hold the most bytes. If one block below, of another type, holds nearly all of
    /// these bytes, it replaces the block above. A variable that holds several blocks replaces these. Blocks that are alike are
    /// one entry.
    pub fn largest(&self, rows: usize) -> Vec<Dominator> {
        let (graph, tree) = (self.graph, &self.dominators);
        let unreachable = unreachable_node(graph);
        let mut heap = BinaryHeap::new();
        let mut blocks = Vec::new();
        let mut variables: HashMap<usize, Variable> = HashMap::default();
        let mut place = 1;
        while place < tree.preorder.len() {
            let node = tree.preorder[place];
            if Some(node) == unreachable {
                place = tree.end(place);
            } else if !self.type_names.is_root(graph, node as usize) {
                blocks.push(place);
                place = tree.end(place);
            } else if let Some(below) = self.below_variable(place) {
                for (first, variable) in below.variables {
                    keep(&mut heap, KEPT, variable.size, first);
                    variables.insert(first, variable);
                }
                blocks.extend(below.blocks);
                place = tree.end(place);
            } else {
                place += 1;
            }
        }
        for place in &blocks {
            keep(&mut heap, KEPT, tree.retained[tree.preorder[*place] as usize], *place);
        }
        let mut found = Vec::new();
        let mut places = Vec::new();
        for Reverse((_, Reverse(place))) in heap.into_sorted_vec() {
            if found.len() + places.len() == rows {
                break;
            }
            match variables.get(&place) {
                Some(variable) => found.push(Dominator {
                    node: variable.root as usize,
                    name: variable
                        .local
                        .as_deref()
                        .unwrap_or(graph.name(NodeIndex(variable.root)))
                        .to_owned(),
                    is_variable: true,
                    alike: 1,
                    count: variable.count,
                    retained_size: variable.size,
                    path: self.path_to_variable(variable),
                }),
                None if places.iter().any(|other| self.are_alike(*other, place)) => {}
                None => places.push(place),
            }
        }
        found.extend(self.counted(&places, &blocks).into_iter().map(|(place, alike)| {
            let place = if alike == 1 { self.gathering(place) } else { place };
            self.dominator(place, alike)
        }));
        found.sort_by_key(|found| (Reverse(found.retained_size), found.node));
        found
    }

    /// The blocks of a type that hold the most bytes. Of those that hold each other, the outermost.
    pub(super) fn largest_of(&self, type_id: u32, rows: usize) -> Vec<Dominator> {
        let tree = &self.dominators;
        let mut heap = BinaryHeap::new();
        let mut all = Vec::new();
        let mut place = 1;
        while place < tree.preorder.len() {
            let node = tree.preorder[place] as usize;
            if self.is_of(node, type_id) {
                keep(&mut heap, KEPT, tree.retained[node], place);
                all.push(place);
                place = tree.end(place);
            } else {
                place += 1;
            }
        }
        let mut places: Vec<usize> = Vec::new();
        for Reverse((_, Reverse(place))) in heap.into_sorted_vec() {
            if places.len() == rows {
                break;
            }
            if !places.iter().any(|other| self.are_alike(*other, place)) {
                places.push(place);
            }
        }
        let counted = self.counted(&places, &all);
        counted.into_iter().map(|(place, alike)| self.dominator(place, alike)).collect()
    }

    /// Each of `places`, with the number of blocks in `all` that are like it.
    fn counted(&self, places: &[usize], all: &[usize]) -> Vec<(usize, u64)> {
        let retained = |place: &usize| self.dominators.retained[self.dominators.preorder[*place] as usize];
        let mut counted: Vec<(usize, u64)> = places.iter().map(|place| (*place, 0)).collect();
        let mut by_size: HashMap<u64, Vec<usize>> = HashMap::default();
        for (index, place) in places.iter().enumerate() {
            by_size.entry(retained(place)).or_default().push(index);
        }
        for place in all {
            let same_size = by_size.get(&retained(place)).into_iter().flatten();
            if let Some(index) = same_size.copied().find(|index| self.are_alike(places[*index], *place)) {
                counted[index].1 += 1;
            }
        }
        counted
    }

    /// Whether a row can stand for both blocks.
    fn are_alike(&self, one: usize, other: usize) -> bool {
        let tree = &self.dominators;
        let [a, b] = [one, other].map(|place| tree.preorder[place] as usize);
        a == b
            || tree.retained[a] == tree.retained[b]
                && tree.counts[a] == tree.counts[b]
                && self.type_names.of(self.graph, a) == self.type_names.of(self.graph, b)
                && self.held_by(a) == self.held_by(b)
    }

    /// The last step of the shortest path to a block: what holds it, and by which field.
    fn held_by(&self, node: usize) -> Option<((bool, u32), Cow<'_, str>)> {
        let (edge, from) = self.reach.last_step(self.graph, node as u32)?;
        Some((self.holder(from as usize), Labels::new(self.graph).without_index(edge)))
    }

    fn dominator(&self, place: usize, alike: u64) -> Dominator {
        let node = self.dominators.preorder[place] as usize;
        Dominator {
            node,
            name: self.type_of(node).to_owned(),
            is_variable: false,
            alike,
            count: self.dominators.blocks(node),
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
