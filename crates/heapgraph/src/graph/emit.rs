//! Writes nodes and edges in their final order: the root, groups of roots, roots, then blocks by address.

use super::edges::{Edges, OWNS, Text, UNKNOWN, WEAK};
use super::input::Input;
use super::reach::Unreached;
use crate::references;
use crate::root::RootKind;
use stackglass_profile::heap_graph::{
    EdgeKind, HeapGraphSink, NameId, NodeIndex, NodeKind, UNREACHABLE, UNREAD_MEMORY, UNREAD_REGISTERS,
};

/// Sums of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// All nodes.
    pub nodes: u64,
    /// Edges that hold their targets.
    pub edges: u64,
    /// Edges that do not.
    pub weak_edges: u64,
    /// Live blocks.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Blocks of known type.
    pub typed_blocks: u64,
    /// Their bytes.
    pub typed_bytes: u64,
    /// Blocks that nothing reaches.
    pub unreached_blocks: u64,
}

/// A node above the blocks, with its edges.
struct Upper {
    name: String,
    /// Rows of the nodes below, with the names of the edges; the row of a block is [`Upper::BLOCK`] more than its index.
    children: Vec<Child>,
}

enum Child {
    Node {
        row: usize,
        name: String,
    },
    Start {
        row: u32,
        index: u32,
    },
    /// The edges of a root.
    Root(usize),
}

pub(super) fn emit<S: HeapGraphSink>(
    input: &Input<'_>,
    edges: &Edges,
    unreached: &Unreached,
    sink: &mut S,
) -> Result<Totals, S::Error> {
    sink.stacks(input.stacks);
    let upper = upper_nodes(input, edges, unreached);
    let blocks_from = upper.len() as u32;
    let mut totals = Totals { nodes: u64::from(blocks_from), ..Totals::default() };
    let mut out =
        Out { labels: vec![None; edges.names.texts().len()], blocks_from, edges, sink, totals: &mut totals };
    for (row, node) in upper.iter().enumerate() {
        let name = out.sink.name(&node.name);
        // Small odd numbers identify what is no block.
        out.sink.node(NodeKind::Synthetic, name, row as u64 * 2 + 1, 0)?;
        let from = NodeIndex(row as u32);
        for child in &node.children {
            match child {
                Child::Node { row, name } => {
                    let name = out.sink.name(name);
                    out.sink.edge(from, NodeIndex(*row as u32), EdgeKind::Property, name.0)?;
                    out.totals.edges += 1;
                }
                Child::Start { row, index } => {
                    out.sink.edge(from, NodeIndex(blocks_from + row), EdgeKind::Element, *index)?;
                    out.totals.edges += 1;
                }
                Child::Root(place) => out.edges(from, *place)?,
            }
        }
    }
    let names: Vec<NameId> = input.sites.iter().map(|site| out.sink.name(&site.name)).collect();
    for index in 0..input.blocks.len() {
        let site = input.site(index);
        let size = input.blocks.size(index);
        let shown = if input.all_one { 1 } else { size };
        out.sink.allocated_by(input.sites[site].allocated_by);
        let unused = edges.owned.unused.get(index);
        if unused > 0 {
            out.sink.unused(unused);
        }
        let address = input.blocks.addresses[index];
        let known = edges.texts.get(&(index as u32));
        let from = match known.and_then(|known| text(input, index, *known)) {
            Some(text) => {
                let name = out.sink.name(&text);
                out.sink.node(NodeKind::String, name, address, shown)?
            }
            None => out.sink.node(input.sites[site].kind, names[site], address, shown)?,
        };
        out.totals.blocks += 1;
        out.totals.bytes += size;
        // The name is a type, although its layout may be unknown.
        if input.sites[site].kind != NodeKind::Native {
            out.totals.typed_blocks += 1;
            out.totals.typed_bytes += size;
        }
        out.edges(from, input.roots.len() + index)?;
    }
    totals.nodes += totals.blocks;
    totals.unreached_blocks = unreached.blocks.len() as u64;
    Ok(totals)
}

/// The text in a block, if it is text.
fn text(input: &Input<'_>, index: usize, text: Text) -> Option<String> {
    let mut bytes = vec![0; references::shown_bytes(text.length)];
    let count = input.image.memory.read(input.blocks.addresses[index] + text.start, &mut bytes);
    references::text(text.length, &bytes[..count])
}

struct Out<'a, S> {
    /// Names in the sink by label.
    labels: Vec<Option<NameId>>,
    blocks_from: u32,
    edges: &'a Edges,
    sink: &'a mut S,
    totals: &'a mut Totals,
}

impl<S: HeapGraphSink> Out<'_, S> {
    /// The edges of a root or block.
    fn edges(&mut self, from: NodeIndex, place: usize) -> Result<(), S::Error> {
        for edge in self.edges.of(place) {
            let (kind, label) = (self.edges.kinds[edge], self.edges.labels[edge]);
            let is_element = kind & !(WEAK | OWNS | UNKNOWN) == EdgeKind::Element as u8;
            let is_weak = kind & WEAK != 0;
            let (kind, name) = match (is_element, is_weak) {
                (true, false) => (EdgeKind::Element, label),
                // Weak edges have names.
                (true, true) => {
                    (EdgeKind::Weak, self.sink.name(&format!("word {}", label.min(MOST_NAMED))).0)
                }
                (false, _) => (if is_weak { EdgeKind::Weak } else { EdgeKind::Property }, self.name(label).0),
            };
            let to = NodeIndex(self.blocks_from + self.edges.targets[edge].0);
            self.sink.edge(from, to, kind, name)?;
            let count = if is_weak { &mut self.totals.weak_edges } else { &mut self.totals.edges };
            *count += 1;
        }
        for disguised in self.edges.disguised.get(&place).map_or(&[][..], Vec::as_slice) {
            let name = self.sink.name(&format!("byte {}", disguised.at.min(MOST_NAMED.into())));
            let to = NodeIndex(self.blocks_from + disguised.to.0);
            self.sink.edge(from, to, EdgeKind::Weak, name.0)?;
            self.totals.weak_edges += 1;
        }
        Ok(())
    }

    fn name(&mut self, label: u32) -> NameId {
        let edges = self.edges;
        let sink = &mut *self.sink;
        *self.labels[label as usize].get_or_insert_with(|| sink.name(&edges.names.texts()[label as usize]))
    }
}

/// Words of doubtful pointers behind this one share a name.
const MOST_NAMED: u32 = 10_000;

/// The root, the groups of roots, their owners, and the roots with edges.
fn upper_nodes(input: &Input<'_>, edges: &Edges, unreached: &Unreached) -> Vec<Upper> {
    let mut nodes = vec![Upper { name: String::new(), children: Vec::new() }];
    let add = |nodes: &mut Vec<Upper>, parent: usize, name: String| {
        let row = nodes.len();
        nodes[parent].children.push(Child::Node { row, name: name.clone() });
        nodes.push(Upper { name, children: Vec::new() });
        row
    };
    for kind in RootKind::ALL {
        let group = add(&mut nodes, 0, kind.node_name().to_owned());
        let mut owner: Option<(&str, usize)> = None;
        for (place, root) in input.roots.iter().enumerate() {
            let is_unread = root.name == UNREAD_REGISTERS || root.name == UNREAD_MEMORY;
            let tells_doubt = is_unread && !unreached.blocks.is_empty();
            if root.kind != kind || !edges.has_any(place) && !tells_doubt {
                continue;
            }
            let row = match owner {
                Some((name, row)) if name == root.owner => row,
                _ => add(&mut nodes, group, root.owner.clone()),
            };
            owner = Some((&root.owner, row));
            let row = add(&mut nodes, row, root.name.clone());
            nodes[row].children.push(Child::Root(place));
        }
    }
    if !unreached.starts.is_empty() {
        let row = add(&mut nodes, 0, UNREACHABLE.to_owned());
        let starts = unreached.starts.iter().zip(0..);
        nodes[row].children.extend(starts.map(|(block, index)| Child::Start { row: block.0, index }));
    }
    nodes
}
