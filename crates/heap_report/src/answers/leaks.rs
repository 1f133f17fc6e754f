//! Leak candidates: blocks that no root reaches, by the type of their owners.
//!
//! An owner is a block that no other candidate outside of its own cycle reaches: one node of each strongly connected component
//! without edges from outside. Freeing the owners frees all the others.
//!
//! They are found in any snapshot, whichever of its unreachable blocks are listed. Those that Stackglass writes list one block for
//! each owner (`heapgraph/src/graph/reach.rs`).

use super::edges::{Holding, range};
use super::sites::{SiteRow, SiteSums};
use super::{Bits, HeapAnswers};
use foldhash::{HashMap, HashSet};
use stackglass_profile::heap_graph::{HeapGraph, NodeIndex, UNREAD_MEMORY, UNREAD_REGISTERS};
use stackglass_report::order;

/// One node of each group of candidates that nothing else reaches.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// The owners.
    nodes: Vec<u32>,
    /// Those that reach themselves.
    cyclic: HashSet<u32>,
}

/// Finds the owners below the node of unreachable blocks, and makes its edges to other blocks hold nothing.
pub(super) fn owners(graph: &HeapGraph, holding: &mut Holding<'_>, unreachable: u32, alive: &Bits) -> Owners {
    let candidates = range(graph, unreachable).filter_map(|edge| holding.target(unreachable, edge));
    let mut walk = Walk { graph, holding, reached: alive.clone(), pending: Vec::new() };
    walk.reached.insert(unreachable as usize);
    // A later start may reach an earlier one, never the reverse. So the second walk begins with the last start.
    let starts: Vec<u32> = candidates.filter(|node| walk.reached_from(*node).is_some()).collect();
    walk.reached = alive.clone();
    walk.reached.insert(unreachable as usize);
    let mut owners = Owners::default();
    for node in starts.into_iter().rev() {
        if let Some(reaches_itself) = walk.reached_from(node) {
            owners.nodes.push(node);
            if reaches_itself {
                owners.cyclic.insert(node);
            }
        }
    }
    holding.limit(unreachable, Bits::from_members(graph.len(), owners.nodes.iter().copied()));
    owners
}

struct Walk<'a, 'g> {
    graph: &'a HeapGraph,
    holding: &'a Holding<'g>,
    reached: Bits,
    pending: Vec<u32>,
}

impl Walk<'_, '_> {
    /// Reaches everything from a node, and returns whether that includes the node itself. `None` if it was reached before.
    fn reached_from(&mut self, start: u32) -> Option<bool> {
        if !self.reached.insert(start as usize) {
            return None;
        }
        let mut reaches_itself = false;
        self.pending.push(start);
        while let Some(node) = self.pending.pop() {
            for edge in range(self.graph, node) {
                let Some(to) = self.holding.target(node, edge) else { continue };
                reaches_itself |= to == start;
                if self.reached.insert(to as usize) {
                    self.pending.push(to);
                }
            }
        }
        Some(reaches_itself)
    }
}

/// Leak candidates by the type of their owners.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Leaks {
    /// By type, the largest first.
    pub owners: Vec<OwnerRow>,
    /// Number of blocks that several owners hold.
    pub shared_count: u64,
    /// Their bytes.
    pub shared_size: u64,
    /// Number of candidates to which nothing leads.
    pub lost_count: u64,
    /// Their bytes.
    pub lost_size: u64,
    /// Number of candidates to which only weak edges lead, from blocks that roots reach.
    pub weak_count: u64,
    /// Their bytes.
    pub weak_size: u64,
    /// Number of threads whose registers were not read. What only these hold is among the candidates.
    pub unread_threads: u64,
    /// Number of mappings that were not read in whole. What only these hold is among the candidates.
    pub unread_mappings: u64,
}

/// Owners of one type.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OwnerRow {
    /// Type of the owners, or the site that allocated them.
    pub name: String,
    /// Whether weak edges lead to the owners, from blocks that roots reach.
    pub weak: bool,
    /// Number of owners.
    pub owners: u64,
    /// How many of them belong to a cycle.
    pub in_cycles: u64,
    /// Number of blocks that they alone hold, themselves included.
    pub count: u64,
    /// Bytes of these blocks.
    pub size: u64,
    /// The places that allocated the owners.
    pub sites: Vec<SiteRow>,
}

impl HeapAnswers<'_> {
    /// The number of roots that stand for something that was not read.
    fn unread(&self, name: &str) -> u64 {
        let is_unread = |node: &usize| {
            self.type_names.is_root(self.graph, *node) && self.graph.name(NodeIndex(*node as u32)) == name
        };
        (0..self.graph.len()).filter(is_unread).count() as u64
    }

    /// Leak candidates. Empty if the snapshot has no node for unreachable blocks.
    pub fn leaks(&self) -> Leaks {
        let mut rows: HashMap<(u32, bool), (OwnerRow, SiteSums<'_>)> = HashMap::default();
        let (mut count, mut size) = (0, 0);
        for node in &self.leaks.nodes {
            let at = *node as usize;
            let (row, sites) =
                rows.entry((self.type_names.of(self.graph, at), self.weakly.get(at))).or_default();
            sites.add(self.graph, at);
            row.owners += 1;
            row.in_cycles += u64::from(self.leaks.cyclic.contains(node));
            row.count += self.dominators.blocks(at);
            row.size = row.size.saturating_add(self.dominators.retained[at]);
            count += self.dominators.blocks(at);
            size = self.dominators.retained[at].saturating_add(size);
        }
        let name = |((id, weak), (row, sites)): ((u32, bool), (OwnerRow, SiteSums<'_>))| OwnerRow {
            weak,
            name: self.type_names.name(id).to_owned(),
            sites: sites.rows(),
            ..row
        };
        let mut owners: Vec<OwnerRow> = rows.into_iter().map(name).collect();
        owners.sort_by(|a, b| order::largest_first((a.size, (&a.name, a.weak)), (b.size, (&b.name, b.weak))));
        let below = super::unreachable_node(self.graph).map(|node| node as usize);
        let all = below.map_or((1, 0), |node| (self.dominators.blocks(node), self.dominators.retained[node]));
        let mut leaks = Leaks {
            owners,
            shared_count: all.0.saturating_sub(count + 1),
            shared_size: all.1.saturating_sub(size),
            unread_threads: self.unread(UNREAD_REGISTERS),
            unread_mappings: self.unread(UNREAD_MEMORY),
            ..Leaks::default()
        };
        for node in 0..self.graph.len() {
            if self.is_alive(node) || self.type_names.is_root(self.graph, node) {
                continue;
            }
            let sum = match self.weakly.get(node) {
                true => (&mut leaks.weak_count, &mut leaks.weak_size),
                false => (&mut leaks.lost_count, &mut leaks.lost_size),
            };
            *sum.0 += self.graph.block_count(node);
            *sum.1 = sum.1.saturating_add(self.graph.self_sizes.get(node));
        }
        leaks
    }
}
