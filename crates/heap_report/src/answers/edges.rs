//! Which edges hold their targets, and how edges are called.
//!
//! The rules are those of DevTools: weak edges hold nothing. In snapshots of browsers, edges of kind `shortcut` hold only
//! where they begin at the root, and what the page owns is not held by what it does not own.

use super::Bits;
use stackglass_profile::heap_graph::HeapGraph;
use std::borrow::Cow;
use std::ops::Range;

/// The numbers of the edges that begin at a node.
pub(super) fn range(graph: &HeapGraph, node: u32) -> Range<usize> {
    let at = node as usize;
    match graph.first_edges.get(at + 1) {
        Some(end) => graph.first_edges[at] as usize..*end as usize,
        None => 0..0,
    }
}

/// The node where an edge begins.
pub(super) fn source(graph: &HeapGraph, edge: usize) -> u32 {
    graph.first_edges.partition_point(|first| *first as usize <= edge).saturating_sub(1) as u32
}

/// The number of a kind of edges or nodes. A number that no edge has, if there is no such kind.
fn edge_kind(graph: &HeapGraph, name: &str) -> u8 {
    let at = graph.edge_kinds.iter().position(|kind| kind == name);
    at.and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX)
}

/// The kind of weak edges.
pub(super) fn weak(graph: &HeapGraph) -> u8 {
    edge_kind(graph, "weak")
}

/// Which edges hold their targets.
pub(super) struct Holding<'g> {
    graph: &'g HeapGraph,
    weak: u8,
    shortcut: u8,
    /// What the page of a browser owns, if the snapshot tells.
    page: Option<Bits>,
    /// A node that holds only some targets.
    limited: Option<(u32, Bits)>,
}

impl<'g> Holding<'g> {
    pub fn new(graph: &'g HeapGraph) -> Holding<'g> {
        let (weak, shortcut) = (weak(graph), edge_kind(graph, "shortcut"));
        let page = page(graph, weak, shortcut);
        Holding { graph, weak, shortcut, page, limited: None }
    }

    /// Makes one node hold only these targets.
    pub fn limit(&mut self, node: u32, targets: Bits) {
        self.limited = Some((node, targets));
    }

    /// The target of an edge, if it holds it.
    #[inline]
    pub fn target(&self, from: u32, edge: usize) -> Option<u32> {
        let (kind, to) = (self.graph.kinds_of_edges[edge], self.graph.targets[edge].0);
        if kind == self.weak || to == from {
            return None;
        }
        if from != 0 {
            if kind == self.shortcut {
                return None;
            }
            if let Some(page) = &self.page
                && page.get(to as usize)
                && !page.get(from as usize)
            {
                return None;
            }
            if let Some((node, targets)) = &self.limited
                && from == *node
                && !targets.get(to as usize)
            {
                return None;
            }
        }
        Some(to)
    }
}

/// Everything that the page's own roots reach.
fn page(graph: &HeapGraph, weak: u8, shortcut: u8) -> Option<Bits> {
    let element = edge_kind(graph, "element");
    let is_root = |edge: &usize| {
        let kind = graph.kinds_of_edges[*edge];
        kind == shortcut || (kind == element && graph.name(graph.targets[*edge]) == "(Document DOM trees)")
    };
    let mut pending: Vec<u32> = range(graph, 0).filter(is_root).map(|edge| graph.targets[edge].0).collect();
    if pending.is_empty() {
        return None;
    }
    let mut page = Bits::new(graph.len());
    pending.retain(|node| page.insert(*node as usize));
    while let Some(node) = pending.pop() {
        for edge in range(graph, node) {
            let to = graph.targets[edge].0;
            if graph.kinds_of_edges[edge] != weak && page.insert(to as usize) {
                pending.push(to);
            }
        }
    }
    Some(page)
}

/// Names of edges, as a programmer writes fields and elements.
pub(super) struct Labels<'g> {
    graph: &'g HeapGraph,
    element: u8,
    hidden: u8,
}

impl<'g> Labels<'g> {
    pub fn new(graph: &'g HeapGraph) -> Labels<'g> {
        Labels { graph, element: edge_kind(graph, "element"), hidden: edge_kind(graph, "hidden") }
    }

    /// `.field`, `[3]`.
    pub fn of(&self, edge: usize) -> Cow<'g, str> {
        let number = self.graph.names_of_edges[edge];
        if self.is_index(edge) {
            return format!("[{number}]").into();
        }
        let name = self.graph.strings.get(number as usize).map_or("", |name| name);
        // V8 has tables with numbers as names.
        if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()) {
            return format!("[{name}]").into();
        }
        let is_word = name.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '$'));
        if is_word { format!(".{name}").into() } else { name.into() }
    }

    /// The same for all elements of arrays, and for all words: `.field`, `[…]`, `.slots[…].key`, `.word …`.
    pub fn without_index(&self, edge: usize) -> Cow<'g, str> {
        if self.is_index(edge) {
            return "[…]".into();
        }
        without_numbers(self.of(edge))
    }

    fn is_index(&self, edge: usize) -> bool {
        let kind = self.graph.kinds_of_edges[edge];
        kind == self.element || kind == self.hidden
    }
}

/// A label with `…` in the place of each index and of the number of a word.
fn without_numbers(label: Cow<'_, str>) -> Cow<'_, str> {
    let mut text = String::new();
    let mut rest = &*label;
    while let Some(at) = rest.find(['[', 'w']) {
        let (before, mark) = rest.split_at(at);
        let start = if mark.starts_with('[') { "[" } else { "word " };
        // A field may end with `word`.
        let is_word = start == "[" || before.ends_with(['.', ' ']) || (before.is_empty() && text.is_empty());
        let inside = mark.strip_prefix(start).filter(|_| is_word).unwrap_or_default();
        let digits = inside.bytes().take_while(u8::is_ascii_digit).count();
        let behind = &inside[digits..];
        let is_number = digits > 0
            && if start == "[" {
                behind.starts_with(']')
            } else {
                !behind.starts_with(char::is_alphanumeric)
            };
        let kept = if is_number { start.len() } else { 1 };
        text.push_str(&rest[..at + kept]);
        rest = &mark[kept..];
        if is_number {
            text.push('…');
            rest = behind;
        }
    }
    if text.is_empty() {
        return label;
    }
    text.push_str(rest);
    text.into()
}

#[cfg(test)]
mod tests {
    use super::without_numbers;

    #[test]
    fn numbers_of_elements_and_words_are_left_out() {
        let cases = [
            (".slots[0].b", ".slots[…].b"),
            ("[12].value.events[3]", "[…].value.events[…]"),
            (".word 0", ".word …"),
            ("word 17", "word …"),
            (".map.word 3", ".map.word …"),
            (".password 3", ".password 3"),
            (".words", ".words"),
            (".word 3a", ".word 3a"),
            (".name[u8]", ".name[u8]"),
            (".f[", ".f["),
            ("", ""),
        ];
        for (label, expected) in cases {
            assert_eq!(without_numbers(label.into()), expected);
        }
    }
}
