//! Everything about all types, in a few passes over the graph: what holds each, what it holds, and what would go with it.

use super::sites::SiteSums;
use super::{Dominator, HeapAnswers, RetainerRow, SiteRow, TypeRow};
use foldhash::HashMap;
use stackglass_report::order;

/// Types on the way to a block beyond this number do not say what would go with them.
const MOST_ABOVE: usize = 64;

/// Answers about one of all types.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EachType {
    /// The type.
    pub name: String,
    /// Those of its nodes that hold the most, as in [`TypeAnswer::largest`](super::TypeAnswer::largest).
    pub largest: Vec<Dominator>,
    /// What holds its nodes.
    pub retainers: Vec<RetainerRow>,
    /// What its fields hold.
    pub fields: Vec<RetainerRow>,
    /// The places that allocated its nodes.
    pub sites: Vec<SiteRow>,
    /// What would go with all of its nodes, by type, themselves included: the sum of the bytes is the retained size.
    pub retains: Vec<TypeRow>,
}

impl HeapAnswers<'_> {
    /// Answers about each type, in the order of [`HeapAnswers::types`]; of each list, at most so many rows.
    pub fn each_type(&self, rows: usize) -> Vec<EachType> {
        let mut retainers = self.edges_by_field(|_, to| self.type_of_block(to), |from, _| self.holder(from));
        let mut fields = self.edges_by_field(|from, _| self.type_of_block(from), |_, to| self.holder(to));
        let (mut sites, mut retains, mut largest) =
            (self.sites_of_each(), self.retains(), self.largest_of_each());
        let mut all = Vec::new();
        for id in 0..self.type_names.len() as u32 {
            let mut each = EachType {
                name: self.type_names.name(id).to_owned(),
                largest: largest
                    .remove(&id)
                    .unwrap_or_default()
                    .iter()
                    .take(rows)
                    .map(|group| self.of_group(group))
                    .collect(),
                retainers: retainers.remove(&id).unwrap_or_default(),
                fields: fields.remove(&id).unwrap_or_default(),
                sites: sites.remove(&id).map(SiteSums::rows).unwrap_or_default(),
                retains: retains.remove(&id).unwrap_or_default(),
            };
            if each.retains.is_empty() && each.largest.is_empty() {
                continue;
            }
            each.retainers.truncate(rows);
            each.fields.truncate(rows);
            each.sites.truncate(rows);
            each.retains.truncate(rows);
            all.push(each);
        }
        all
    }

    /// The number of the type of a node; `None` for roots.
    fn type_of_block(&self, node: usize) -> Option<u32> {
        (!self.type_names.is_root(self.graph, node)).then(|| self.type_names.of(self.graph, node))
    }

    fn sites_of_each(&self) -> HashMap<u32, SiteSums<'_>> {
        let mut sums: HashMap<u32, SiteSums<'_>> = HashMap::default();
        for node in 0..self.graph.allocated_by.len() {
            if let Some(id) = self.type_of_block(node) {
                sums.entry(id).or_default().add(self.graph, node);
            }
        }
        sums
    }

    /// What would go with each type, by type, the most bytes first. A type whose nodes hold each other counts what they hold once.
    fn retains(&self) -> HashMap<u32, Vec<TypeRow>> {
        let (graph, tree) = (self.graph, &self.dominators);
        let mut sums: HashMap<(u32, u32), (u64, u64)> = HashMap::default();
        // Types on the way to a node, each with the place behind its outermost node there.
        let mut above: Vec<(u32, usize)> = Vec::new();
        for place in 0..tree.preorder.len() {
            while above.last().is_some_and(|(_, end)| *end <= place) {
                above.pop();
            }
            let node = tree.preorder[place] as usize;
            let Some(id) = self.type_of_block(node) else { continue };
            if above.len() < MOST_ABOVE && !above.iter().any(|(known, _)| *known == id) {
                above.push((id, tree.end(place)));
            }
            for (holder, _) in &above {
                let sum = sums.entry((*holder, id)).or_default();
                sum.0 += graph.block_count(node);
                sum.1 = sum.1.saturating_add(graph.self_sizes.get(node));
            }
        }
        let mut rows: HashMap<u32, Vec<TypeRow>> = HashMap::default();
        for ((holder, id), (count, self_size)) in sums {
            let name = self.type_names.name(id).to_owned();
            rows.entry(holder).or_default().push(TypeRow { name, count, self_size, ..TypeRow::default() });
        }
        for rows in rows.values_mut() {
            rows.sort_by(|a, b| order::largest_first((a.self_size, &a.name), (b.self_size, &b.name)));
        }
        rows
    }
}
