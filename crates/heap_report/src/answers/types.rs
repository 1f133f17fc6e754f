//! Sums by type, without counting anything twice.

use super::{Bits, HeapAnswers};
use stackglass_report::order;

/// All nodes of one type.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TypeRow {
    /// The type. For blocks of unknown type, the site that allocated them.
    pub name: String,
    /// Number of nodes.
    pub count: u64,
    /// The sum of their own sizes in bytes.
    pub self_size: u64,
    /// Bytes of everything that would go with all of them. What one of them holds for another counts once.
    pub retained_size: u64,
}

/// Types with their sums, those with the most bytes of their own first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TypeTable {
    /// Of nodes that roots reach.
    pub alive: Vec<TypeRow>,
    /// Of nodes that no root reaches.
    pub unreachable: Vec<TypeRow>,
}

/// The sum of all rows. There is no sum of retained sizes.
pub(crate) fn total(rows: &[TypeRow]) -> TypeRow {
    rows.iter().fold(TypeRow::default(), |sum, row| TypeRow {
        count: sum.count + row.count,
        self_size: sum.self_size.saturating_add(row.self_size),
        ..sum
    })
}

impl HeapAnswers<'_> {
    /// Sums of all blocks by type. Roots are left out.
    pub fn types(&self) -> TypeTable {
        let (graph, types) = (self.graph, &self.type_names);
        let mut rows = [true, false].map(|_| vec![TypeRow::default(); types.len()]);
        // Of each type: the place behind the last node that one of its nodes dominates.
        let mut covered = vec![0; types.len()];
        let mut has_place = Bits::new(graph.len());
        let mut add = |node: usize, retained: u64| {
            let row = &mut rows[usize::from(!self.reach.alive.get(node))][types.of(graph, node) as usize];
            row.count += graph.block_count(node);
            row.self_size = row.self_size.saturating_add(graph.self_sizes.get(node));
            row.retained_size = row.retained_size.saturating_add(retained);
        };
        for place in 0..self.dominators.preorder.len() {
            let node = self.dominators.preorder[place] as usize;
            has_place.insert(node);
            if types.is_root(graph, node) {
                continue;
            }
            let covered = &mut covered[types.of(graph, node) as usize];
            let is_outermost = place >= *covered;
            if is_outermost {
                *covered = self.dominators.end(place);
            }
            add(node, if is_outermost { self.dominators.retained[node] } else { 0 });
        }
        for node in (0..graph.len()).filter(|node| !has_place.get(*node)) {
            if !types.is_root(graph, node) {
                add(node, graph.self_sizes.get(node));
            }
        }
        let [alive, unreachable] = rows.map(|rows| self.named(rows));
        TypeTable { alive, unreachable }
    }

    fn named(&self, rows: Vec<TypeRow>) -> Vec<TypeRow> {
        let rows = rows.into_iter().enumerate().filter(|(_, row)| row.count > 0);
        let name = |id: usize| self.type_names.name(id as u32).to_owned();
        let mut rows: Vec<TypeRow> = rows.map(|(id, row)| TypeRow { name: name(id), ..row }).collect();
        rows.sort_by(|a, b| order::largest_first((a.self_size, &a.name), (b.self_size, &b.name)));
        rows
    }
}
