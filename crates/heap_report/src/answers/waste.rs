//! Memory that a change of the program would save: unused capacity and equal strings.

use super::edges::{Labels, range};
use super::type_names::{is_type_of_texts, of_kind};
use super::{Bits, HeapAnswers};
use foldhash::HashMap;
use stackglass_report::order;

/// V8 cuts texts at this length, so that equal ones may be different. Ours end with `…` if they are cut.
const CUT: usize = 1024;

/// Memory that could be saved.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Waste {
    /// Unused ends of buffers by the field that holds them, the largest sum first. Empty if the snapshot does not have them.
    pub unused: Vec<UnusedRow>,
    /// Equal strings; `None` if the snapshot does not contain texts.
    pub duplicates: Option<Duplicates>,
}

/// Buffers with unused capacity.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UnusedRow {
    /// The type of the buffers.
    pub name: String,
    /// The type with the field that holds them, or the name of a root.
    pub holder: String,
    /// The field.
    pub field: String,
    /// Number of buffers with unused capacity.
    pub count: u64,
    /// Bytes of these buffers.
    pub self_size: u64,
    /// Bytes at their ends that nothing uses.
    pub unused_size: u64,
}

/// Texts that are in memory more than once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Duplicates {
    /// By text, that with the largest waste first.
    pub strings: Vec<DuplicateString>,
}

/// A text that is in memory more than once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DuplicateString {
    /// The text.
    pub text: String,
    /// Number of copies.
    pub count: u64,
    /// Bytes of all copies.
    pub self_size: u64,
    /// Bytes in use of all copies but the largest. Unused capacity is not among them.
    pub waste: u64,
}

impl HeapAnswers<'_> {
    /// Unused capacity and equal strings of what is alive.
    pub fn waste(&self) -> Waste {
        Waste { unused: self.unused(), duplicates: self.duplicates() }
    }

    fn unused(&self) -> Vec<UnusedRow> {
        let graph = self.graph;
        if graph.unused.iter().all(|unused| *unused == 0) {
            return Vec::new();
        }
        let labels = Labels::new(graph);
        let mut seen = Bits::new(graph.len());
        let mut rows: HashMap<_, UnusedRow> = HashMap::default();
        for from in (0..graph.len()).filter(|from| self.is_alive(*from)) {
            for edge in range(graph, from as u32) {
                let Some(to) = self.holding.target(from as u32, edge) else { continue };
                let to = to as usize;
                let unused = graph.unused.get(to).copied().unwrap_or(0);
                if unused == 0 || self.type_names.is_root(graph, to) || !seen.insert(to) {
                    continue;
                }
                let key = (self.holder(from), labels.without_index(edge), self.holder(to));
                let row = rows.entry(key).or_default();
                row.count += graph.block_count(to);
                row.self_size = row.self_size.saturating_add(graph.self_sizes.get(to));
                row.unused_size = row.unused_size.saturating_add(unused.into());
            }
        }
        let named =
            |((holder, field, buffer), row): ((_, std::borrow::Cow<'_, str>, _), UnusedRow)| UnusedRow {
                name: self.holder_name(buffer),
                holder: self.holder_name(holder),
                field: field.into_owned(),
                ..row
            };
        let mut rows: Vec<UnusedRow> = rows.into_iter().map(named).collect();
        rows.sort_by(|a, b| {
            let names = |row: &UnusedRow| (row.holder.clone(), row.field.clone(), row.name.clone());
            order::largest_first((a.unused_size, names(a)), (b.unused_size, names(b)))
        });
        rows
    }

    fn duplicates(&self) -> Option<Duplicates> {
        let graph = self.graph;
        // Number of copies, their bytes, the bytes in use, and the most of one copy.
        let mut texts: HashMap<&str, (u64, u64, u64, u64)> = HashMap::default();
        let mut has_texts = false;
        for node in 0..graph.len() {
            let size = graph.self_sizes.get(node);
            if size == 0 || !self.type_names.is_text(graph, node) || !self.is_alive(node) {
                continue;
            }
            let text = &*graph.strings[graph.names[node].0 as usize];
            // A text that V8 has not put together yet has the name of its kind.
            let kind = graph.node_kinds.get(usize::from(graph.kinds[node])).map_or("", |kind| kind);
            if is_type_of_texts(text) || *text == of_kind(kind) {
                continue;
            }
            has_texts = true;
            if text.len() < CUT && !text.ends_with('…') {
                let (count, sum, used, most) = texts.entry(text).or_default();
                let members = graph.block_count(node);
                *count += members;
                *sum = sum.saturating_add(size);
                // Unused capacity is counted as such.
                let in_use = size.saturating_sub(graph.unused.get(node).copied().unwrap_or(0).into());
                *used = used.saturating_add(in_use);
                *most = (in_use / members).max(*most);
            }
        }
        if !has_texts {
            return None;
        }
        let rows = texts.into_iter().filter(|(_, (count, ..))| *count > 1);
        let mut strings: Vec<DuplicateString> = rows
            .map(|(text, (count, self_size, used, most))| DuplicateString {
                text: text.to_owned(),
                count,
                self_size,
                waste: used - most,
            })
            .collect();
        strings.sort_by(|a, b| order::largest_first((a.waste, &a.text), (b.waste, &b.text)));
        Some(Duplicates { strings })
    }
}
