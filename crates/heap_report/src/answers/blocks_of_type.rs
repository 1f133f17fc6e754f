//! The blocks of one type, one by one, with their addresses: what a debugger needs.

use super::{HeapAnswers, HeapPath};
use std::cmp::Reverse;

/// One block of a type.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BlockRow {
    /// Where it was when the snapshot was taken.
    pub address: u64,
    /// Its own size.
    pub self_size: u64,
    /// Bytes of all blocks that would go with it.
    pub retained_size: u64,
    /// The shortest path from a root to it; `None` if no root reaches it.
    pub path: Option<HeapPath>,
}

/// The blocks of one type.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BlocksOfType {
    /// Those that hold the most bytes, then by address.
    pub rows: Vec<BlockRow>,
    /// The number of blocks that are not among the rows.
    pub more: u64,
    /// The number of blocks that are part of groups, and have no address.
    pub in_groups: u64,
}

impl HeapAnswers<'_> {
    /// The blocks of the type with exactly this name, at most `most` of them. `None` if the graph has no addresses; see
    /// [`HeapGraph::addresses`](stackglass_profile::heap_graph::HeapGraph::addresses).
    pub fn blocks_of_type(&self, name: &str, most: usize) -> Option<BlocksOfType> {
        let (graph, retained) = (self.graph, &self.dominators.retained);
        if graph.addresses.is_empty() {
            return None;
        }
        let id = (0..self.type_names.len() as u32).find(|id| self.type_names.name(*id) == name);
        let nodes = (0..graph.len()).filter(|node| id.is_some_and(|id| self.is_of(*node, id)));
        let (mut single, groups): (Vec<usize>, Vec<usize>) =
            nodes.partition(|node| graph.addresses[*node] != 0);
        single.sort_by_key(|node| (Reverse(retained[*node]), graph.addresses[*node]));
        let row = |node: &usize| BlockRow {
            address: graph.addresses[*node],
            self_size: graph.self_sizes.get(*node),
            retained_size: retained[*node],
            path: if self.is_alive(*node) { self.path(*node) } else { None },
        };
        Some(BlocksOfType {
            rows: single.iter().take(most).map(row).collect(),
            more: single.len().saturating_sub(most) as u64,
            in_groups: groups.iter().map(|node| graph.block_count(*node)).sum(),
        })
    }
}
