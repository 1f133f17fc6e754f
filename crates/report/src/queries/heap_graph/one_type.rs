//! Everything about one type.

use super::{Dominator, HeapAnswers, HeapPath, RetainerRow, SiteRow, TypeRow};

const MOST_PATHS: usize = 100;

/// Answers about one type.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TypeAnswer {
    /// Its nodes that roots reach.
    pub alive: TypeRow,
    /// Its nodes that no root reaches.
    pub unreachable: TypeRow,
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

impl HeapAnswers<'_> {
    /// All names of types that contain a text; only one if a type has exactly this name.
    pub fn types_named(&self, text: &str) -> Vec<String> {
        let mut seen = vec![false; self.type_names.len()];
        for node in 0..self.graph.len() {
            if !self.type_names.is_root(self.graph, node) {
                seen[self.type_names.of(self.graph, node) as usize] = true;
            }
        }
        let names = (0..seen.len()).filter(|id| seen[*id]).map(|id| self.type_names.name(id as u32));
        let mut names: Vec<String> = names.filter(|name| name.contains(text)).map(str::to_owned).collect();
        if names.iter().any(|name| name == text) {
            return vec![text.to_owned()];
        }
        names.sort();
        names
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
            paths: self.paths_to(id, MOST_PATHS),
            retainers: self.retainers_of(id),
            fields: self.fields_of(id),
            sites: self.sites_of(id),
            largest: self.largest_of(id, rows),
        })
    }
}
