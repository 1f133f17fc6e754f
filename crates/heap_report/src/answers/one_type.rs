//! Everything about one type.

use super::{Dominator, HeapAnswers, HeapPath, RetainerRow, SiteRow, TypeRow};
use stackglass_report::order;

const MOST_PATHS: usize = 100;

/// Answers about one type.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TypeAnswer {
    /// Its nodes that roots reach.
    pub alive: TypeRow,
    /// Its nodes that no root reaches.
    pub unreachable: TypeRow,
    /// The number of those to which weak edges lead, from blocks that roots reach.
    pub only_weak: u64,
    /// The shortest path from a root to its nodes by each field or root that holds some, at most 100; shortest first.
    pub paths: Vec<HeapPath>,
    /// What holds its nodes.
    pub retainers: Vec<RetainerRow>,
    /// What its fields hold; [`RetainerRow::holder`] is the type of the targets.
    pub fields: Vec<RetainerRow>,
    /// The places that allocated its nodes.
    pub sites: Vec<SiteRow>,
    /// Those of its nodes that hold the most.
    pub largest: Vec<Dominator>,
}

/// A type and the bytes of its blocks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TypeSize {
    /// The type.
    pub name: String,
    /// The sum of the own sizes of its blocks.
    pub self_size: u64,
}

/// How well the name of a type agrees with a text: 0 if it is the text, more if it is a block with values of that type.
/// `None` if it is another type.
fn nearness(name: &str, text: &str) -> Option<usize> {
    const BLOCKS: [(&str, &str); 9] = [
        ("", ""),
        ("ArcInner<", ">"),
        ("RcInner<", ">"),
        ("Arc<", ">"),
        ("Rc<", ">"),
        ("Box<", ">"),
        ("_Sp_counted_ptr_inplace<", ", …"),
        ("", "[]"),
        ("[", "]"),
    ];
    BLOCKS.iter().position(|(begin, end)| {
        let Some(rest) = name.strip_prefix(begin).and_then(|rest| rest.strip_prefix(text)) else {
            return false;
        };
        match end.strip_suffix('…') {
            Some(separator) => rest.starts_with(separator),
            None => rest == *end,
        }
    })
}

impl HeapAnswers<'_> {
    /// The types that a text may mean, those with the most bytes first: the type of exactly this name, else that of shared
    /// values, boxes or arrays of it, else all types that contain the text.
    pub fn types_named(&self, text: &str) -> Vec<TypeSize> {
        let mut sizes: Vec<Option<u64>> = vec![None; self.type_names.len()];
        for node in 0..self.graph.len() {
            if !self.type_names.is_root(self.graph, node) {
                let size = sizes[self.type_names.of(self.graph, node) as usize].get_or_insert(0);
                *size = size.saturating_add(self.graph.self_sizes.get(node));
            }
        }
        let named = |(id, size): (usize, &Option<u64>)| {
            let name = self.type_names.name(id as u32);
            size.filter(|_| name.contains(text))
                .map(|self_size| TypeSize { name: name.to_owned(), self_size })
        };
        let mut found: Vec<TypeSize> = sizes.iter().enumerate().filter_map(named).collect();
        found.sort_by(|a, b| order::largest_first((a.self_size, &a.name), (b.self_size, &b.name)));
        let best =
            found.iter().enumerate().filter_map(|(at, found)| Some((nearness(&found.name, text)?, at)));
        match best.min() {
            Some((_, at)) => vec![found.swap_remove(at)],
            None => found,
        }
    }

    /// Everything about a type; `None` if there is no such type. Of the largest nodes, at most `rows`.
    pub fn type_answer(&self, name: &str, rows: usize) -> Option<TypeAnswer> {
        let id = (0..self.type_names.len() as u32).find(|id| self.type_names.name(*id) == name)?;
        let table = self.types();
        let row = |rows: Vec<TypeRow>| {
            let none = TypeRow { name: name.to_owned(), ..TypeRow::default() };
            rows.into_iter().find(|row| row.name == name).unwrap_or(none)
        };
        Some(TypeAnswer {
            alive: row(table.alive),
            unreachable: row(table.unreachable),
            only_weak: self.only_weak(id),
            paths: self.paths_to(id, MOST_PATHS),
            retainers: self.retainers_of(id),
            fields: self.fields_of(id),
            sites: self.sites_of(id),
            largest: self.largest_of(id, rows),
        })
    }

    /// The number of blocks of a type to which only weak edges lead.
    fn only_weak(&self, id: u32) -> u64 {
        let nodes = (0..self.graph.len()).filter(|node| self.weakly.get(*node) && self.is_of(*node, id));
        nodes.map(|node| self.graph.block_count(node)).sum()
    }
}
