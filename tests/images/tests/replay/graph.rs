//! A heap graph with the addresses of its blocks.

use stackglass_heapgraph::graph::Totals;
use stackglass_inspect::heap::{HeapError, TakeOptions, write_graph};
use stackglass_process_view::core_image::CoreImage;
use stackglass_profile::heap_graph::{EdgeKind, HeapGraphSink, NameId, NodeIndex, NodeKind, UNREACHABLE};
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;

/// A block or another node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    pub name: String,
    pub kind: NodeKind,
    /// Its address, for blocks.
    id: u64,
    pub size: u64,
    /// Bytes that its owner does not use.
    pub unused: u64,
}

/// A graph in memory.
#[derive(Debug, Default)]
pub struct Graph {
    pub nodes: Vec<Node>,
    pub edges: Vec<(NodeIndex, NodeIndex, EdgeKind, String)>,
    pub totals: Totals,
    names: Vec<String>,
    known: HashMap<String, NameId>,
    unused: u64,
}

impl Graph {
    /// Reads the heap of an image.
    ///
    /// # Errors
    /// If its blocks are not known.
    pub fn read(image: &CoreImage) -> Result<Graph, HeapError> {
        let mut graph = Graph::default();
        let options = TakeOptions { with_texts: false, ..TakeOptions::default() };
        let written = write_graph(image, &options, &|_, _| Vec::new(), &mut graph)?;
        graph.totals = written.totals;
        Ok(graph)
    }

    /// The blocks by address. Other nodes come first.
    pub fn blocks(&self) -> BTreeMap<u64, (NodeIndex, &Node)> {
        let first = self.nodes.len() - self.totals.blocks as usize;
        let blocks = self.nodes.iter().enumerate().skip(first);
        blocks.map(|(index, node)| (node.id, (NodeIndex(index as u32), node))).collect()
    }

    /// Of each node, whether edges that hold their targets lead to it from a root.
    pub fn reached(&self) -> Vec<bool> {
        let mut holds = vec![Vec::new(); self.nodes.len()];
        for (from, to, kind, _) in &self.edges {
            let is_owner = self.nodes[from.0 as usize].name != UNREACHABLE;
            if is_owner && *kind != EdgeKind::Weak {
                holds[from.0 as usize].push(to.0 as usize);
            }
        }
        let mut reached = vec![false; self.nodes.len()];
        let mut pending = vec![0];
        while let Some(node) = pending.pop() {
            if !std::mem::replace(&mut reached[node], true) {
                pending.extend_from_slice(&holds[node]);
            }
        }
        reached
    }

    /// Blocks by address with type, size and whether they are reached, and edges between blocks. Names of frames in libraries are
    /// no part of it.
    pub fn facts(&self) -> Vec<String> {
        let reached = self.reached();
        let blocks = self.blocks();
        let of_index: HashMap<u32, u64> = blocks.iter().map(|(at, (index, _))| (index.0, *at)).collect();
        let block = |(at, (index, node)): (&u64, &(NodeIndex, &Node))| {
            let Node { name, kind, size, unused, .. } = node;
            let reached = reached[index.0 as usize];
            format!("{at:x}: {name}, {kind:?}, {size} bytes, {unused} unused, reached: {reached}")
        };
        let edge = |(from, to, kind, name): &(NodeIndex, NodeIndex, EdgeKind, String)| {
            let (from, to) = (of_index.get(&from.0)?, of_index.get(&to.0)?);
            Some(format!("{from:x} -> {to:x}: {kind:?} {name}"))
        };
        let mut facts: Vec<String> = blocks.iter().map(block).collect();
        facts.extend(self.edges.iter().filter_map(edge));
        facts
    }
}

impl HeapGraphSink for Graph {
    type Error = Infallible;

    fn name(&mut self, text: &str) -> NameId {
        if let Some(known) = self.known.get(text) {
            return *known;
        }
        let id = NameId(self.names.len() as u32);
        self.names.push(text.to_owned());
        self.known.insert(text.to_owned(), id);
        id
    }

    fn unused(&mut self, bytes: u64) {
        self.unused = bytes;
    }

    fn node(&mut self, kind: NodeKind, name: NameId, id: u64, size: u64) -> Result<NodeIndex, Infallible> {
        let name = self.names[name.0 as usize].clone();
        self.nodes.push(Node { name, kind, id, size, unused: std::mem::take(&mut self.unused) });
        Ok(NodeIndex(self.nodes.len() as u32 - 1))
    }

    fn edge(&mut self, from: NodeIndex, to: NodeIndex, kind: EdgeKind, name: u32) -> Result<(), Infallible> {
        let name = match kind {
            EdgeKind::Element => format!("[{name}]"),
            _ => self.names[name as usize].clone(),
        };
        self.edges.push((from, to, kind, name));
        Ok(())
    }
}
