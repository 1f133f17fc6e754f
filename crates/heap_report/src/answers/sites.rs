//! Where blocks were allocated.

use super::HeapAnswers;
use foldhash::HashMap;
use stackglass_profile::heap_graph::{AllocatingFunction, HeapGraph};
use stackglass_report::order;

/// Blocks that one place in a function allocated.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SiteRow {
    /// The place: `FUNCTION (FILE:LINE)`.
    pub name: String,
    /// Number of blocks.
    pub count: u64,
    /// Their own bytes.
    pub self_size: u64,
}

/// Sums of blocks by the function that allocated them. Snapshots without stacks have no rows.
#[derive(Default)]
pub(super) struct SiteSums<'g>(HashMap<&'g AllocatingFunction, SiteRow>);

impl<'g> SiteSums<'g> {
    pub(super) fn add(&mut self, graph: &'g HeapGraph, node: usize) {
        let Some(function) = graph.allocated_by(node) else { return };
        let row = self.0.entry(function).or_default();
        row.count += graph.block_count(node);
        row.self_size = row.self_size.saturating_add(graph.self_sizes.get(node));
    }

    /// The rows, the most bytes first.
    pub(super) fn rows(self) -> Vec<SiteRow> {
        // Lines of several files may have one name.
        let mut by_name: HashMap<String, SiteRow> = HashMap::default();
        for (function, row) in self.0 {
            let sum = by_name.entry(function.to_string()).or_default();
            sum.count += row.count;
            sum.self_size = sum.self_size.saturating_add(row.self_size);
        }
        let mut rows: Vec<SiteRow> = by_name.into_iter().map(|(name, row)| SiteRow { name, ..row }).collect();
        rows.sort_by(|a, b| order::largest_first((a.self_size, &a.name), (b.self_size, &b.name)));
        rows
    }
}

impl HeapAnswers<'_> {
    /// The sites that allocated the nodes of a type, by its number.
    pub(super) fn sites_of(&self, id: u32) -> Vec<SiteRow> {
        let mut sums = SiteSums::default();
        for node in 0..self.graph.allocated_by.len() {
            if self.is_of(node, id) {
                sums.add(self.graph, node);
            }
        }
        sums.rows()
    }
}
