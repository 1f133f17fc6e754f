//! What holds the nodes of a type, by type and field.

use super::HeapAnswers;
use super::edges::{Labels, range, weak};
use foldhash::HashMap;
use stackglass_profile::heap_graph::NodeIndex;
use stackglass_report::order;

/// One field of one type, or one root, that holds nodes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RetainerRow {
    /// The type with the field, or the name of the root.
    pub holder: String,
    /// The field; elements of arrays are `[…]`.
    pub field: String,
    /// Whether its edges are weak: they keep nothing alive.
    pub weak: bool,
    /// Number of edges.
    pub edges: u64,
    /// Number of different nodes to which they lead.
    pub count: u64,
    /// The sum of the own sizes of these nodes.
    pub self_size: u64,
}

impl HeapAnswers<'_> {
    /// Everything with an edge to nodes of a type, that with the most nodes first.
    pub(super) fn retainers_of(&self, type_id: u32) -> Vec<RetainerRow> {
        let wanted = |to| self.is_of(to, type_id).then_some(type_id);
        self.edges_by_field(|_, to| wanted(to), |from, _| self.holder(from))
            .remove(&type_id)
            .unwrap_or_default()
    }

    /// What the fields of a type hold: the rows' holders are the types of the targets.
    pub(super) fn fields_of(&self, type_id: u32) -> Vec<RetainerRow> {
        let wanted = |from| self.is_of(from, type_id).then_some(type_id);
        self.edges_by_field(|from, _| wanted(from), |_, to| self.holder(to))
            .remove(&type_id)
            .unwrap_or_default()
    }

    pub(super) fn is_of(&self, node: usize, type_id: u32) -> bool {
        !self.type_names.is_root(self.graph, node) && self.type_names.of(self.graph, node) == type_id
    }

    /// The number of the type of a node. Roots are told apart by name.
    pub(super) fn holder(&self, node: usize) -> (bool, u32) {
        match self.type_names.is_root(self.graph, node) {
            true => (true, self.graph.names[node].0),
            false => (false, self.type_names.of(self.graph, node)),
        }
    }

    pub(super) fn holder_name(&self, (is_root, number): (bool, u32)) -> String {
        match is_root {
            true => self.graph.strings[number as usize].to_string(),
            false => self.type_names.name(number).to_owned(),
        }
    }

    /// Sums of edges by type (`wanted`; `None` for edges that do not count), other end and field.
    pub(super) fn edges_by_field(
        &self,
        wanted: impl Fn(usize, usize) -> Option<u32>,
        other: impl Fn(usize, usize) -> (bool, u32),
    ) -> HashMap<u32, Vec<RetainerRow>> {
        let (graph, labels, weak) = (self.graph, Labels::new(self.graph), weak(self.graph));
        let mut numbers: HashMap<_, u32> = HashMap::default();
        let mut keys = Vec::new();
        let mut found: Vec<(u32, u32)> = Vec::new();
        for from in 0..graph.len() {
            for edge in range(graph, from as u32) {
                let to = graph.targets[edge].0 as usize;
                let Some(of) = wanted(from, to) else { continue };
                let is_weak = graph.kinds_of_edges[edge] == weak;
                let key = (of, other(from, to), labels.without_index(edge), is_weak);
                let number = *numbers.entry(key).or_insert_with_key(|key| {
                    keys.push(key.clone());
                    keys.len() as u32 - 1
                });
                found.push((number, to as u32));
            }
        }
        found.sort_unstable();
        let mut rows: Vec<(u32, RetainerRow)> = keys
            .into_iter()
            .map(|(of, holder, field, weak)| {
                let (holder, field) = (self.holder_name(holder), field.into_owned());
                (of, RetainerRow { holder, field, weak, ..RetainerRow::default() })
            })
            .collect();
        let mut before = None;
        for entry in found {
            let row = &mut rows[entry.0 as usize].1;
            // Each member of a group has one edge that is not weak.
            let members = graph.block_count(entry.1 as usize);
            row.edges += if row.weak { 1 } else { members };
            if before != Some(entry) {
                let size = graph.self_sizes.get(NodeIndex(entry.1).0 as usize);
                row.count += members;
                row.self_size = row.self_size.saturating_add(size);
            }
            before = Some(entry);
        }
        rows.sort_by(|(_, a), (_, b)| {
            let key = |row: &RetainerRow| (!row.weak, row.count);
            order::largest_first((key(a), (&a.holder, &a.field)), (key(b), (&b.holder, &b.field)))
        });
        let mut of_types: HashMap<u32, Vec<RetainerRow>> = HashMap::default();
        rows.into_iter().for_each(|(of, row)| of_types.entry(of).or_default().push(row));
        of_types
    }
}
