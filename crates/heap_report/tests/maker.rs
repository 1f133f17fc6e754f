//! Heap graphs with known content.

use stackglass_profile::heap_graph::{
    AllocatingFunction, AllocationStack, AllocationStacks, EdgeKind, HeapGraph, HeapGraphBuilder,
    HeapGraphSink, NodeIndex, NodeKind,
};
use std::collections::HashMap;

/// Collects nodes and edges in any order.
#[derive(Default)]
pub struct Maker {
    pub nodes: Vec<(NodeKind, String, u64, u64)>,
    pub edges: Vec<(u32, u32, EdgeKind, Result<u32, String>)>,
    stacks: AllocationStacks,
    /// By node.
    sites: HashMap<u32, AllocationStack>,
}

pub const ROOT: u32 = 0;

impl Maker {
    /// A graph with the root only.
    pub fn new() -> Maker {
        let mut heap = Maker::default();
        assert_eq!(heap.node(NodeKind::Synthetic, "", 0), ROOT);
        heap
    }

    pub fn node(&mut self, kind: NodeKind, name: &str, size: u64) -> u32 {
        self.nodes.push((kind, name.to_owned(), size, 0));
        self.nodes.len() as u32 - 1
    }

    pub fn root(&mut self, from: u32, name: &str) -> u32 {
        let root = self.node(NodeKind::Synthetic, name, 0);
        self.field(from, root, name);
        root
    }

    pub fn object(&mut self, from: u32, field: &str, name: &str, size: u64) -> u32 {
        let object = self.node(NodeKind::Object, name, size);
        self.field(from, object, field);
        object
    }

    pub fn field(&mut self, from: u32, to: u32, name: &str) {
        self.edges.push((from, to, EdgeKind::Property, Err(name.to_owned())));
    }

    pub fn element(&mut self, from: u32, to: u32, index: u32) {
        self.edges.push((from, to, EdgeKind::Element, Ok(index)));
    }

    pub fn allocated_by(&mut self, node: u32, name: &str, line: u32) {
        let function = AllocatingFunction { name: name.into(), file: "src/main.rs".into(), line };
        let function = self.stacks.insert_function(function);
        self.sites.insert(node, self.stacks.insert(AllocationStack::ROOT, function));
    }

    pub fn graph(mut self) -> HeapGraph {
        let mut builder = HeapGraphBuilder::default();
        builder.stacks(&self.stacks);
        for (index, (kind, name, size, unused)) in self.nodes.iter().enumerate() {
            let name = builder.name(name);
            builder.unused(*unused);
            builder.allocated_by(self.sites.get(&(index as u32)).copied().unwrap_or_default());
            builder.node(*kind, name, index as u64, *size).unwrap();
        }
        self.edges.sort_by_key(|edge| edge.0);
        for (from, to, kind, label) in self.edges {
            let label = label.unwrap_or_else(|name| builder.name(&name).0);
            builder.edge(NodeIndex(from), NodeIndex(to), kind, label).unwrap();
        }
        builder.finish()
    }
}
