//! The largest dominators: what holds most of the memory, and where it hangs.

use super::edges::{Labels, range};
use super::variables::Variable;
use super::{Bits, HeapAnswers, HeapPath, unreachable_node};
use foldhash::HashMap;
use stackglass_profile::heap_graph::NodeIndex;
use stackglass_report::order;
use std::cmp::Reverse;
use std::hash::BuildHasher;

/// A block that holds others, or a variable that holds several blocks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Dominator {
    /// Its number in the graph. For a local variable, that of its frame.
    pub node: usize,
    /// Its type, or the name of the variable.
    pub name: String,
    /// Whether it is a variable.
    pub is_variable: bool,
    /// How many blocks are like this one: of the same type, and held by the same fields on the whole path to them.
    pub alike: u64,
    /// Number of blocks that would go with all of these, themselves included.
    pub count: u64,
    /// Their bytes.
    pub retained_size: u64,
    /// The shortest path to the largest of them.
    pub path: HeapPath,
}

/// A holder is passed over if a single block below it holds at least this share of its bytes, in percent.
const MOST: u64 = 80;

/// Blocks that are alike.
pub(super) struct Group {
    /// The place of the largest, and what it holds.
    place: usize,
    largest: u64,
    alike: u64,
    count: u64,
    retained: u64,
}

impl Group {
    fn add(&mut self, other: &Group) {
        if other.largest > self.largest {
            (self.place, self.largest) = (other.place, other.largest);
        }
        self.alike += other.alike;
        self.count = self.count.saturating_add(other.count);
        self.retained = self.retained.saturating_add(other.retained);
    }
}

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
        let direct =
            Bits::from_members(graph.len(), range(graph, 0).filter_map(|edge| self.holding.target(0, edge)));
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

    /// The blocks directly below the roots that hold the most bytes, those that are alike together. If one block below a single
    /// one, of another type, holds nearly all of its bytes, it replaces the block above. A variable that holds several blocks
    /// replaces these.
    pub fn largest(&self, rows: usize) -> Vec<Dominator> {
        let (graph, tree) = (self.graph, &self.dominators);
        let unreachable = unreachable_node(graph);
        let mut blocks = Vec::new();
        let mut variables = Vec::new();
        let mut place = 1;
        while place < tree.preorder.len() {
            let node = tree.preorder[place];
            if Some(node) == unreachable {
                place = tree.end(place);
            } else if !self.type_names.is_root(graph, node as usize) {
                blocks.push(place);
                place = tree.end(place);
            } else if let Some(below) = self.below_variable(place) {
                variables.extend(below.variables);
                blocks.extend(below.blocks);
                place = tree.end(place);
            } else {
                place += 1;
            }
        }
        variables.sort_by_key(|variable| Reverse(variable.size));
        let mut found: Vec<Dominator> =
            variables.iter().take(rows).map(|variable| self.of_variable(variable)).collect();
        found.extend(self.groups(&blocks).iter().take(rows).map(|group| match group.alike {
            1 => self.of_group(&self.alone(self.gathering(group.place))),
            _ => self.of_group(group),
        }));
        found.sort_by_key(|found| (Reverse(found.retained_size), found.node));
        found.truncate(rows);
        found
    }

    /// The blocks of a type that hold the most bytes, those that are alike together. Of those that hold each other, the outermost.
    pub(super) fn largest_of(&self, type_id: u32, rows: usize) -> Vec<Dominator> {
        let tree = &self.dominators;
        let mut blocks = Vec::new();
        let mut place = 1;
        while place < tree.preorder.len() {
            if self.is_of(tree.preorder[place] as usize, type_id) {
                blocks.push(place);
                place = tree.end(place);
            } else {
                place += 1;
            }
        }
        self.groups(&blocks).iter().take(rows).map(|group| self.of_group(group)).collect()
    }

    /// The same for each type, by its number.
    pub(super) fn largest_of_each(&self) -> HashMap<u32, Vec<Group>> {
        let tree = &self.dominators;
        let mut covered = vec![0; self.type_names.len()];
        let mut blocks = Vec::new();
        for place in 1..tree.preorder.len() {
            let node = tree.preorder[place] as usize;
            if self.type_names.is_root(self.graph, node) {
                continue;
            }
            let covered = &mut covered[self.type_names.of(self.graph, node) as usize];
            if place >= *covered {
                *covered = tree.end(place);
                blocks.push(place);
            }
        }
        let mut of_types: HashMap<u32, Vec<Group>> = HashMap::default();
        for group in self.groups(&blocks) {
            let node = tree.preorder[group.place] as usize;
            of_types.entry(self.type_names.of(self.graph, node)).or_default().push(group);
        }
        of_types
    }

    /// Blocks that are alike together, those that hold the most bytes first.
    fn groups(&self, places: &[usize]) -> Vec<Group> {
        let tree = &self.dominators;
        let mut paths = Paths::new(self);
        let mut groups: HashMap<(u32, u64), Group> = HashMap::default();
        for place in places {
            let node = tree.preorder[*place];
            let key = (self.type_names.of(self.graph, node as usize), paths.hash(node));
            let one = self.alone(*place);
            groups.entry(key).and_modify(|group| group.add(&one)).or_insert(one);
        }
        let mut groups: Vec<Group> = groups.into_values().collect();
        groups.sort_by_key(|group| (Reverse(group.retained), group.place));
        groups
    }

    /// A group of one block.
    fn alone(&self, place: usize) -> Group {
        let node = self.dominators.preorder[place] as usize;
        let retained = self.dominators.retained[node];
        Group { place, largest: retained, alike: 1, count: self.dominators.blocks(node), retained }
    }

    fn of_variable(&self, variable: &Variable) -> Dominator {
        let name = variable.local.as_deref().unwrap_or(self.graph.name(NodeIndex(variable.root)));
        Dominator {
            node: variable.root as usize,
            name: name.to_owned(),
            is_variable: true,
            alike: 1,
            count: variable.count,
            retained_size: variable.size,
            path: self.path_to_variable(variable),
        }
    }

    pub(super) fn of_group(&self, group: &Group) -> Dominator {
        let node = self.dominators.preorder[group.place] as usize;
        Dominator {
            node,
            name: self.type_of(node).to_owned(),
            is_variable: false,
            alike: group.alike,
            count: group.count,
            retained_size: group.retained,
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

/// Numbers of the shortest paths to nodes: equal for paths of the same fields and types, whatever the indices of elements are.
struct Paths<'a> {
    answers: &'a HeapAnswers<'a>,
    labels: Labels<'a>,
    /// By node; 0 if it is not known yet.
    known: Vec<u64>,
    hasher: foldhash::fast::FixedState,
    pending: Vec<u32>,
}

impl<'a> Paths<'a> {
    fn new(answers: &'a HeapAnswers<'a>) -> Paths<'a> {
        Paths {
            answers,
            labels: Labels::new(answers.graph),
            known: vec![0; answers.graph.len()],
            hasher: foldhash::fast::FixedState::default(),
            pending: Vec::new(),
        }
    }

    fn hash(&mut self, node: u32) -> u64 {
        let (graph, reach) = (self.answers.graph, &self.answers.reach);
        let mut hash = 1;
        let mut at = node;
        // Up to a node that is known, then down again.
        loop {
            match (self.known[at as usize], reach.last_step(graph, at)) {
                (0, Some((_, from))) => {
                    self.pending.push(at);
                    at = from;
                }
                (0, None) => break,
                (known, _) => {
                    hash = known;
                    break;
                }
            }
        }
        while let Some(at) = self.pending.pop() {
            let Some((edge, from)) = reach.last_step(graph, at) else { continue };
            let step = (hash, self.answers.holder(from as usize), self.labels.without_index(edge));
            hash = self.hasher.hash_one(step).max(1);
            self.known[at as usize] = hash;
        }
        hash
    }
}
