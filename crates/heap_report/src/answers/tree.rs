//! The dominator tree by type: what would go with what, from the roots down.
//!
//! Blocks of one type below the same row are one row, and a block directly below one of its own type belongs to the row of that one:
//! a list of a million nodes is one row. Rows with few bytes are summed up, so that the tree of any heap is small.

use super::HeapAnswers;
use super::{Bits, edges::range};
use foldhash::HashMap;
use std::cmp::Reverse;

/// Rows deeper than this are summed up.
const DEEPEST: u32 = 100;
/// The first tree that is tried leaves out what has less than this part of all bytes.
const FINEST: u64 = 20_000;

/// The dominator tree by type.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HeapTree {
    /// In pre-order; of those below a row, the largest first.
    pub rows: Vec<TreeRow>,
    /// Rows with fewer bytes are summed up.
    pub least: u64,
}

/// What a row of the tree is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TreeKind {
    /// Blocks of a type.
    #[default]
    Type,
    /// A root, or a group of roots.
    Root,
    /// What several roots hold, and none of them alone.
    Shared,
    /// Rows that are too small, or too deep.
    Rest,
}

/// Blocks of a type that the row above dominates.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TreeRow {
    /// 0 for what the root of the graph dominates.
    pub level: u32,
    /// What it is.
    pub kind: TreeKind,
    /// The type, or the name of the root.
    pub name: String,
    /// Number of its blocks; of [`TreeKind::Rest`], of the rows that were summed up.
    pub alike: u64,
    /// Number of blocks that would go with them, themselves included. Roots are none.
    pub count: u64,
    /// Bytes of their own.
    pub self_size: u64,
    /// Bytes of everything that would go with them: the sum of their own bytes and of the rows directly below.
    pub retained_size: u64,
}

/// A type, or a root by name.
type Key = (bool, u32);

/// Blocks that are one row: their places in the tree, and sums of what goes with them.
#[derive(Default)]
struct Group {
    places: Vec<usize>,
    count: u64,
    retained: u64,
}

enum Next {
    Group(u32, Key, Group),
    Shared(Group),
    Rest(TreeRow),
}

impl HeapAnswers<'_> {
    /// The dominator tree by type, with at most some `most` rows.
    pub fn tree(&self, most: usize) -> HeapTree {
        let whole = self.dominators.retained.first().copied().unwrap_or(0);
        let mut least = (whole / FINEST).max(1);
        let roots = Roots::new(self);
        loop {
            match self.tree_above(&roots, least, most) {
                Some(rows) => return HeapTree { rows, least },
                None => least = least.saturating_mul(2),
            }
        }
    }

    /// `None` if it has more rows. With nothing that is large enough, it has few.
    fn tree_above(&self, roots: &Roots, least: u64, most: usize) -> Option<Vec<TreeRow>> {
        if self.dominators.preorder.is_empty() {
            return Some(Vec::new());
        }
        let mut rows = Vec::new();
        let mut pending = self.top(roots, least);
        while let Some(next) = pending.pop() {
            match next {
                Next::Rest(row) => rows.push(row),
                Next::Shared(group) => {
                    let Group { places, count, retained } = group;
                    let kind = TreeKind::Shared;
                    rows.push(TreeRow { kind, count, retained_size: retained, ..TreeRow::default() });
                    let mut below = Below::default();
                    places.iter().for_each(|place| below.add(self, roots, *place));
                    pending.extend(below.rows(1, least));
                }
                Next::Group(level, key, group) => {
                    let (row, below) = self.row(roots, level, key, &group);
                    rows.push(row);
                    pending.extend(below.rows(level + 1, least));
                }
            }
            if rows.len() > most && least < u64::MAX {
                return None;
            }
        }
        Some(rows)
    }

    /// What the root dominates.
    fn top(&self, roots: &Roots, least: u64) -> Vec<Next> {
        let (graph, tree) = (self.graph, &self.dominators);
        let direct =
            Bits::from_members(graph.len(), range(graph, 0).filter_map(|edge| self.holding.target(0, edge)));
        let (mut below, mut shared) = (Below::default(), Below::default());
        for place in tree.children(0) {
            let node = tree.preorder[place] as usize;
            let is_shared = !self.type_names.is_root(graph, node) && self.is_alive(node) && !direct.get(node);
            if is_shared { shared.add(self, roots, place) } else { below.add(self, roots, place) }
        }
        let mut rows = below.rows(0, least);
        let shared = shared.into_one();
        if shared.retained >= least {
            // It comes last, but for what is too small.
            let at = usize::from(matches!(rows.first(), Some(Next::Rest(_))));
            rows.insert(at, Next::Shared(shared));
        } else if shared.retained > 0 {
            let Group { count, retained, places } = shared;
            let alike = places.len() as u64;
            match rows.first_mut() {
                Some(Next::Rest(row)) => {
                    row.alike += alike;
                    row.count += count;
                    row.retained_size = row.retained_size.saturating_add(retained);
                }
                _ => rows.insert(0, Next::Rest(rest(0, alike, count, retained))),
            }
        }
        rows
    }

    /// The row of a group, and what is below it.
    fn row(&self, roots: &Roots, level: u32, key: Key, group: &Group) -> (TreeRow, Below) {
        let (graph, tree) = (self.graph, &self.dominators);
        let mut below = Below::default();
        let kind = if key.0 { TreeKind::Root } else { TreeKind::Type };
        let mut row = TreeRow {
            level,
            kind,
            name: self.holder_name(key),
            count: group.count,
            retained_size: group.retained,
            ..TreeRow::default()
        };
        let mut same = group.places.clone();
        while let Some(place) = same.pop() {
            let node = tree.preorder[place] as usize;
            row.alike += graph.block_count(node);
            row.self_size = row.self_size.saturating_add(graph.self_sizes.get(node));
            for child in tree.children(place) {
                let is_same = kind == TreeKind::Type && self.key(child) == key;
                if is_same { same.push(child) } else { below.add(self, roots, child) }
            }
        }
        (row, below)
    }

    fn key(&self, place: usize) -> Key {
        self.holder(self.dominators.preorder[place] as usize)
    }
}

/// How many roots come before each place in the tree.
struct Roots(Vec<u32>);

impl Roots {
    fn new(answers: &HeapAnswers<'_>) -> Roots {
        let mut count = 0;
        let mut before = vec![0];
        for node in &answers.dominators.preorder {
            count += u32::from(answers.type_names.is_root(answers.graph, *node as usize));
            before.push(count);
        }
        Roots(before)
    }

    fn within(&self, place: usize, end: usize) -> u64 {
        u64::from(self.0[end] - self.0[place])
    }
}

/// Groups directly below a row.
#[derive(Default)]
struct Below(HashMap<Key, Group>);

impl Below {
    fn add(&mut self, answers: &HeapAnswers<'_>, roots: &Roots, place: usize) {
        let node = answers.dominators.preorder[place] as usize;
        let blocks = answers.dominators.blocks(node) - roots.within(place, answers.dominators.end(place));
        let group = self.0.entry(answers.holder(node)).or_default();
        group.places.push(place);
        group.count = group.count.saturating_add(blocks);
        group.retained = group.retained.saturating_add(answers.dominators.retained[node]);
    }

    fn into_one(self) -> Group {
        self.0.into_values().fold(Group::default(), |mut sum, group| {
            sum.places.extend(group.places);
            sum.count = sum.count.saturating_add(group.count);
            sum.retained = sum.retained.saturating_add(group.retained);
            sum
        })
    }

    /// In reverse order of the rows: what is too small, then the others, the smallest first.
    fn rows(self, level: u32, least: u64) -> Vec<Next> {
        let is_shown = |group: &Group| group.retained >= least && level < DEEPEST;
        let (mut shown, small): (Vec<_>, Vec<_>) = self.0.into_iter().partition(|(_, group)| is_shown(group));
        shown.sort_by_key(|(key, group)| (group.retained, Reverse(*key)));
        let mut rows = Vec::new();
        // Roots that hold nothing are not worth a row.
        let is_any = small.iter().any(|(_, group)| group.count > 0 || group.retained > 0);
        if is_any {
            let sum = |of: fn(&Group) -> u64| {
                small.iter().fold(0, |sum: u64, (_, group)| sum.saturating_add(of(group)))
            };
            rows.push(Next::Rest(rest(level, small.len() as u64, sum(|of| of.count), sum(|of| of.retained))));
        }
        rows.extend(shown.into_iter().map(|(key, group)| Next::Group(level, key, group)));
        rows
    }
}

fn rest(level: u32, alike: u64, count: u64, retained_size: u64) -> TreeRow {
    TreeRow { level, kind: TreeKind::Rest, alike, count, retained_size, ..TreeRow::default() }
}
