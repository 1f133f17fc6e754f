//! A heap snapshot: the live blocks of a process, and which of them point to which.
//!
//! Nodes and edges are stored as columns, some 20 bytes for a node and 9 for an edge, since real heaps have millions of
//! both. Node 0 is the root. Kinds are those of V8's heap snapshots, the format in which such graphs are stored.

use crate::SmallNumbers;
use std::collections::HashMap;

/// Name of the node that holds all blocks that nothing reaches.
pub const UNREACHABLE: &str = "(unreachable blocks)";

/// Name of the node of a thread's registers, below the node of the thread, if there are leak candidates and these registers were not
/// read: the thread was left alone in a system call.
pub const UNREAD_REGISTERS: &str = "(registers that were not read)";

/// Name of the node of a mapping, below the node of its file, if there are leak candidates and the mapping may have addresses that
/// could not be read.
pub const UNREAD_MEMORY: &str = "(memory that was not read)";

mod allocated;

pub use allocated::{AllocatingFunction, AllocationStack, AllocationStacks};

/// Index of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct NodeIndex(pub u32);

/// Index of a name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct NameId(pub u32);

/// What a node is, as V8 numbers it. Other programs' snapshots may have other kinds; see [`HeapGraph::node_kinds`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum NodeKind {
    /// Not shown by viewers.
    Hidden = 0,
    /// A block of elements.
    Array = 1,
    /// Text or bytes.
    String = 2,
    /// A block of one value of a known type.
    Object = 3,
    /// A block of which only the place that allocated it is known.
    Native = 8,
    /// A root, or a group of roots.
    Synthetic = 9,
}

/// How a node holds another, as V8 numbers it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum EdgeKind {
    /// An element of an array: the name is an index.
    Element = 1,
    /// A field.
    Property = 2,
    /// A connection between roots, or a field that viewers put below others.
    Internal = 3,
    /// Does not keep its target alive: a weak reference, or a word that may be no pointer.
    Weak = 6,
}

/// V8's node kinds, in order.
pub const NODE_KINDS: [&str; 15] = [
    "hidden",
    "array",
    "string",
    "object",
    "code",
    "closure",
    "regexp",
    "number",
    "native",
    "synthetic",
    "concatenated string",
    "sliced string",
    "symbol",
    "bigint",
    "object shape",
];

/// V8's edge kinds, in order.
pub const EDGE_KINDS: [&str; 7] =
    ["context", "element", "property", "internal", "hidden", "shortcut", "weak"];

/// An edge to `to`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    /// Index into [`HeapGraph::edge_kinds`].
    pub kind: u8,
    /// A [`NameId`], or an index for elements and hidden edges.
    pub name_or_index: u32,
    /// The target.
    pub to: NodeIndex,
}

/// A graph of nodes and edges. Edges are grouped by the node where they begin.
#[derive(Clone, Debug, Default)]
pub struct HeapGraph {
    /// Names of the node kinds in this graph.
    pub node_kinds: Vec<String>,
    /// Names of the edge kinds in this graph.
    pub edge_kinds: Vec<String>,
    /// Of each node: index into [`HeapGraph::node_kinds`].
    pub kinds: Vec<u16>,
    /// Of each node: its name, which is its type.
    pub names: Vec<NameId>,
    /// Of each node: its own size in bytes.
    pub self_sizes: SmallNumbers,
    /// Of each node: bytes at its end that its owner does not use, such as capacity beyond the length of a `Vec`. Empty
    /// if no node has any.
    pub unused: Vec<u32>,
    /// Of each node: the number of blocks that it stands for, at least 1. Empty if no node stands for several.
    pub members: Vec<u32>,
    /// Of each node: the address of its block; 0 for a root, and for a group of blocks. Empty if addresses are unknown, or if
    /// nothing asked for them.
    pub addresses: Vec<u64>,
    /// Of each node: the stack that allocated it. Empty if no stacks are known.
    pub allocated_by: Vec<AllocationStack>,
    /// The stacks that allocated nodes.
    pub stacks: AllocationStacks,
    /// Of each node: the number of its first edge; one entry more than nodes.
    pub first_edges: Vec<u32>,
    /// Of each edge: index into [`HeapGraph::edge_kinds`].
    pub kinds_of_edges: Vec<u8>,
    /// Of each edge: a name or an index.
    pub names_of_edges: Vec<u32>,
    /// Of each edge: its target.
    pub targets: Vec<NodeIndex>,
    /// Texts of names.
    pub strings: Vec<Box<str>>,
}

impl HeapGraph {
    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The number of blocks that a node stands for: 1 unless it is a group.
    pub fn block_count(&self, node: usize) -> u64 {
        self.members.get(node).map_or(1, |members| (*members).max(1).into())
    }

    /// The edges that begin at a node.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn edges(&self, node: NodeIndex) -> impl Iterator<Item = Edge> + '_ {
        let at = node.0 as usize;
        let range = self.first_edges[at] as usize..self.first_edges[at + 1] as usize;
        range.map(|edge| Edge {
            kind: self.kinds_of_edges[edge],
            name_or_index: self.names_of_edges[edge],
            to: self.targets[edge],
        })
    }

    /// Sets the stack that allocated the node that is added next. The column is empty as long as none is known.
    #[inline]
    pub fn push_stack(&mut self, stack: AllocationStack) {
        if stack != AllocationStack::UNKNOWN && self.allocated_by.is_empty() {
            self.allocated_by.reserve_exact(self.kinds.capacity());
            self.allocated_by.resize(self.kinds.len(), AllocationStack::UNKNOWN);
        }
        if stack != AllocationStack::UNKNOWN || !self.allocated_by.is_empty() {
            self.allocated_by.push(stack);
        }
    }

    /// The function that allocated a node, if it is known.
    pub fn allocated_by(&self, node: usize) -> Option<&AllocatingFunction> {
        self.stacks.function(*self.allocated_by.get(node)?)
    }

    /// The name of a node.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn name(&self, node: NodeIndex) -> &str {
        &self.strings[self.names[node.0 as usize].0 as usize]
    }
}

/// Receives a heap graph node by node: all nodes in order, and the edges grouped by the node where they begin.
pub trait HeapGraphSink {
    /// Why writing failed.
    type Error;

    /// Interns a name.
    fn name(&mut self, text: &str) -> NameId;

    /// Sets the unused bytes at the end of the node that is added next. See [`HeapGraph::unused`].
    ///
    fn unused(&mut self, bytes: u64) {
        let _ = bytes;
    }

    /// Sets all stacks that allocated nodes.
    fn stacks(&mut self, stacks: &AllocationStacks) {
        let _ = stacks;
    }

    /// Sets the stack that allocated the node that is added next.
    fn allocated_by(&mut self, stack: AllocationStack) {
        let _ = stack;
    }

    /// Adds the next node. Its `id` identifies it across snapshots of one process: its address for blocks.
    ///
    /// # Errors
    /// If it cannot be written.
    fn node(
        &mut self,
        kind: NodeKind,
        name: NameId,
        id: u64,
        self_size: u64,
    ) -> Result<NodeIndex, Self::Error>;

    /// Adds an edge. `from` never decreases. Both nodes may be added later.
    ///
    /// # Errors
    /// If it cannot be written.
    fn edge(
        &mut self,
        from: NodeIndex,
        to: NodeIndex,
        kind: EdgeKind,
        name_or_index: u32,
    ) -> Result<(), Self::Error>;
}

/// Builds a [`HeapGraph`] in memory.
#[derive(Debug, Default)]
pub struct HeapGraphBuilder {
    graph: HeapGraph,
    known: HashMap<Box<str>, NameId>,
    /// Unused bytes of the next node.
    unused: u32,
    /// The stack that allocated it.
    allocated_by: AllocationStack,
}

impl HeapGraphBuilder {
    /// The graph.
    pub fn finish(mut self) -> HeapGraph {
        self.graph.first_edges.resize(self.graph.len() + 1, self.graph.targets.len() as u32);
        self.graph.node_kinds = NODE_KINDS.map(str::to_owned).to_vec();
        self.graph.edge_kinds = EDGE_KINDS.map(str::to_owned).to_vec();
        self.graph
    }
}

impl HeapGraphSink for HeapGraphBuilder {
    type Error = std::convert::Infallible;

    fn name(&mut self, text: &str) -> NameId {
        if let Some(known) = self.known.get(text) {
            return *known;
        }
        let id = NameId(self.graph.strings.len() as u32);
        self.graph.strings.push(text.into());
        self.known.insert(text.into(), id);
        id
    }

    fn unused(&mut self, bytes: u64) {
        self.unused = u32::try_from(bytes).unwrap_or(u32::MAX);
    }

    fn stacks(&mut self, stacks: &AllocationStacks) {
        self.graph.stacks = stacks.clone();
    }

    fn allocated_by(&mut self, stack: AllocationStack) {
        self.allocated_by = stack;
    }

    fn node(
        &mut self,
        kind: NodeKind,
        name: NameId,
        _: u64,
        self_size: u64,
    ) -> Result<NodeIndex, Self::Error> {
        let index = NodeIndex(self.graph.kinds.len() as u32);
        let unused = std::mem::take(&mut self.unused);
        if unused > 0 {
            self.graph.unused.resize(self.graph.len(), 0);
        }
        if unused > 0 || !self.graph.unused.is_empty() {
            self.graph.unused.push(unused);
        }
        let stack = std::mem::take(&mut self.allocated_by);
        self.graph.push_stack(stack);
        self.graph.kinds.push(kind as u16);
        self.graph.names.push(name);
        self.graph.self_sizes.push(self_size);
        Ok(index)
    }

    fn edge(
        &mut self,
        from: NodeIndex,
        to: NodeIndex,
        kind: EdgeKind,
        name_or_index: u32,
    ) -> Result<(), Self::Error> {
        let count = self.graph.targets.len() as u32;
        let begun = self.graph.first_edges.len().max(from.0 as usize + 1);
        self.graph.first_edges.resize(begun, count);
        self.graph.kinds_of_edges.push(kind as u8);
        self.graph.names_of_edges.push(name_or_index);
        self.graph.targets.push(to);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_bytes_belong_to_the_next_node() {
        let mut builder = HeapGraphBuilder::default();
        let name = builder.name("[u8]");
        for bytes in [0, 7, 0, u64::MAX] {
            builder.unused(bytes);
            builder.node(NodeKind::Array, name, 1, 8).unwrap();
        }
        builder.node(NodeKind::Array, name, 1, 8).unwrap();
        assert_eq!(builder.finish().unused, [0, 7, 0, u32::MAX, 0]);
    }

    #[test]
    fn edges_belong_to_the_node_where_they_begin() {
        let mut builder = HeapGraphBuilder::default();
        let name = builder.name("A");
        for id in 0..4 {
            builder.node(NodeKind::Object, name, id, 8).unwrap();
        }
        builder.edge(NodeIndex(0), NodeIndex(1), EdgeKind::Element, 7).unwrap();
        builder.edge(NodeIndex(2), NodeIndex(0), EdgeKind::Weak, name.0).unwrap();
        builder.edge(NodeIndex(2), NodeIndex(3), EdgeKind::Property, name.0).unwrap();
        let graph = builder.finish();
        let targets = |node| graph.edges(NodeIndex(node)).map(|edge| edge.to.0).collect::<Vec<_>>();
        assert_eq!((targets(0), targets(1), targets(2), targets(3)), (vec![1], vec![], vec![0, 3], vec![]));
        assert_eq!(graph.name(NodeIndex(3)), "A");
    }
}
