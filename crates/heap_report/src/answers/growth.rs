//! Growth from snapshot to snapshot, by type.

use super::reach::Reach;
use super::type_names::TypeNames;
use super::unreachable_node;
use super::weakly_reached::weakly_reached;
use foldhash::HashMap;
use stackglass_profile::heap_graph::{AllocationStack, HeapGraph};
use stackglass_report::order;

/// Sums of one snapshot, small enough to keep while the next one is read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HeapSums {
    /// Number of nodes; members of groups count one by one.
    pub nodes: u64,
    /// Number of edges.
    pub edges: u64,
    /// The sum of all own sizes.
    pub self_size: u64,
    /// Number of blocks that no root reaches.
    pub unreachable_count: u64,
    /// Their bytes.
    pub unreachable_size: u64,
    /// Bytes of those to which nothing leads, not even weak edges.
    pub lost_size: u64,
    /// Whether sizes are numbers of blocks (`--all-one`), not bytes.
    pub sizes_are_counts: bool,
    /// Whether the program recorded its allocations: types are those of its stacks, and sizes those that it asked for. Otherwise types
    /// were found by pointers, and sizes are those of malloc's blocks.
    pub is_recorded: bool,
    types: HashMap<Box<str>, Sum>,
}

/// Number and bytes of the blocks of a type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sum {
    /// Number of blocks.
    pub count: u64,
    /// Their bytes.
    pub self_size: u64,
}

impl Sum {
    /// Whether there is more than before: in number or bytes, without a decrease of the other.
    pub fn has_grown(&self, before: &Sum) -> bool {
        self.count >= before.count && self.self_size >= before.self_size && self != before
    }
}

impl HeapSums {
    /// The sums of a graph.
    pub fn new(graph: &HeapGraph) -> HeapSums {
        let types = TypeNames::new(graph);
        let alive = Reach::new(graph).alive;
        let weakly = weakly_reached(graph, &alive, unreachable_node(graph));
        let nodes = (0..graph.len()).map(|node| graph.block_count(node)).sum();
        let mut sums = HeapSums { nodes, edges: graph.targets.len() as u64, ..HeapSums::default() };
        sums.sizes_are_counts = types.sizes_are_counts;
        sums.is_recorded = graph.allocated_by.iter().any(|stack| *stack != AllocationStack::UNKNOWN);
        let mut by_type = vec![Sum::default(); types.len()];
        for node in 0..graph.len() {
            let size = graph.self_sizes.get(node);
            sums.self_size = sums.self_size.saturating_add(size);
            if types.is_root(graph, node) {
                continue;
            }
            let sum = &mut by_type[types.of(graph, node) as usize];
            sum.count += graph.block_count(node);
            sum.self_size = sum.self_size.saturating_add(size);
            if !alive.get(node) {
                sums.unreachable_count += graph.block_count(node);
                sums.unreachable_size = sums.unreachable_size.saturating_add(size);
                if !weakly.get(node) {
                    sums.lost_size = sums.lost_size.saturating_add(size);
                }
            }
        }
        let by_type = by_type.into_iter().enumerate().filter(|(_, sum)| sum.count > 0);
        sums.types = by_type.map(|(id, sum)| (types.name(id as u32).into(), sum)).collect();
        sums
    }
}

/// A type with its sums in each snapshot.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GrowthRow {
    /// The type, or the site that allocated the blocks.
    pub name: String,
    /// By snapshot.
    pub sums: Vec<Sum>,
}

impl GrowthRow {
    /// Bytes more in the last snapshot than in the first.
    pub fn growth(&self) -> i128 {
        let of = |sum: Option<&Sum>| sum.map_or(0, |sum| i128::from(sum.self_size));
        of(self.sums.last()) - of(self.sums.first())
    }
}

/// Types whose sums differ, those with the largest growth first and the largest decrease last. Of three or more snapshots,
/// only types that grew in each step: in number or bytes, without a decrease of the other.
pub fn growth(snapshots: &[HeapSums]) -> Vec<GrowthRow> {
    let mut rows: HashMap<&str, GrowthRow> = HashMap::default();
    for (index, snapshot) in snapshots.iter().enumerate() {
        for (name, sum) in &snapshot.types {
            let row = rows.entry(name).or_insert_with(|| GrowthRow {
                name: name.to_string(),
                sums: vec![Sum::default(); snapshots.len()],
            });
            row.sums[index] = *sum;
        }
    }
    let is_wanted = |row: &GrowthRow| match snapshots.len() {
        0..=2 => row.sums.windows(2).any(|pair| pair[0] != pair[1]),
        _ => row.sums.windows(2).all(|pair| pair[1].has_grown(&pair[0])),
    };
    let mut rows: Vec<GrowthRow> = rows.into_values().filter(is_wanted).collect();
    rows.sort_by(|a, b| order::largest_first((a.growth(), &a.name), (b.growth(), &b.name)));
    rows
}
