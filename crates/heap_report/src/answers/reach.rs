//! Breadth-first search from the root over all edges that are not weak.
//!
//! As in DevTools, the search begins at the user's own roots, which are children of the root that are not synthetic, and then
//! goes on from the root. What variables and frames of libraries hold comes later: the path to a block begins at the program's own
//! variable, also where a runtime's is nearer. Blocks that nothing reaches come last.

use super::{Bits, edges, unreachable_node};
use stackglass_profile::heap_graph::HeapGraph;
use stackglass_profile::runtimes::is_of_library;

/// No edge leads here on the shortest path.
const NONE: u32 = u32::MAX;
/// What DevTools adds to distances from the root if there are user roots.
const SYSTEM: u64 = 100_000_000;

/// The result of the search.
pub(super) struct Reach {
    /// Of each node: the last edge of the shortest path to it; [`NONE`] for the root and for nodes without a path.
    via: Vec<u32>,
    /// What roots reach.
    pub alive: Bits,
    /// Whether the root has children that are not synthetic.
    has_user_roots: bool,
}

impl Reach {
    pub fn new(graph: &HeapGraph) -> Reach {
        let mut search = Search::new(graph);
        let alive = search.all();
        let has_user_roots = search.has_user_roots;
        Reach { via: search.via, alive, has_user_roots }
    }

    /// The last edge of the shortest path to a node, and the node where it begins. `None` for the root and for nodes without a path.
    pub fn last_step(&self, graph: &HeapGraph, node: u32) -> Option<(usize, u32)> {
        let edge = self.via[node as usize];
        (edge != NONE).then(|| (edge as usize, edges::source(graph, edge as usize)))
    }

    /// The number of edges on the path, by DevTools' count.
    pub fn distance(&self, graph: &HeapGraph, mut node: usize) -> Option<u64> {
        if node == 0 {
            return Some(if self.has_user_roots { SYSTEM } else { 0 });
        }
        let mut length = 0;
        while let Some((_, from)) = self.last_step(graph, node as u32) {
            length += 1;
            if from == 0 {
                let is_system = self.has_user_roots && !is_user_root(graph, node);
                return Some(length + if is_system { SYSTEM } else { 0 });
            }
            node = from as usize;
        }
        None
    }
}

/// Whether a child of the root is one of the user's own roots.
fn is_user_root(graph: &HeapGraph, node: usize) -> bool {
    let kind = graph.node_kinds.get(usize::from(graph.kinds[node]));
    kind.is_none_or(|kind| kind != "synthetic")
        || &*graph.strings[graph.names[node].0 as usize] == "(Document DOM trees)"
}

/// All nodes with a path from the root, in the order in which the search reaches them.
pub(super) fn order(graph: &HeapGraph) -> Vec<u32> {
    let mut search = Search::new(graph);
    search.all();
    search.queue
}

struct Search<'g> {
    graph: &'g HeapGraph,
    weak: u8,
    /// A node that is not entered.
    excluded: u32,
    has_user_roots: bool,
    /// The kind of roots.
    synthetic: Option<u16>,
    /// Variables and frames of libraries, which are entered when nothing else is left.
    late: Vec<u32>,
    queue: Vec<u32>,
    next: usize,
    seen: Bits,
    via: Vec<u32>,
}

impl Search<'_> {
    fn new(graph: &HeapGraph) -> Search<'_> {
        Search {
            graph,
            weak: edges::weak(graph),
            excluded: unreachable_node(graph).unwrap_or(NONE),
            has_user_roots: false,
            synthetic: graph.node_kinds.iter().position(|kind| kind == "synthetic").map(|kind| kind as u16),
            late: Vec::new(),
            queue: Vec::with_capacity(graph.len()),
            next: 0,
            seen: Bits::new(graph.len()),
            via: vec![NONE; graph.len()],
        }
    }

    /// Searches from all roots, then from the node of unreachable blocks. Returns what the former reach.
    fn all(&mut self) -> Bits {
        let graph = self.graph;
        if graph.is_empty() {
            return Bits::default();
        }
        self.seen.insert(0);
        for edge in edges::range(graph, 0) {
            if is_user_root(graph, graph.targets[edge].0 as usize) {
                self.has_user_roots = true;
                self.visit(edge);
            }
        }
        self.run();
        self.queue.push(0);
        self.run();
        let alive = self.seen.clone();
        let unreachable = std::mem::replace(&mut self.excluded, NONE);
        if unreachable != NONE {
            // The search has met it as a child of the root, without entering it.
            let edge = edges::range(graph, 0).find(|edge| graph.targets[*edge].0 == unreachable);
            edge.into_iter().for_each(|edge| self.visit(edge));
            self.run();
        }
        alive
    }

    #[inline]
    fn visit(&mut self, edge: usize) {
        let to = self.graph.targets[edge].0;
        if self.graph.kinds_of_edges[edge] != self.weak
            && to != self.excluded
            && self.seen.insert(to as usize)
        {
            self.via[to as usize] = edge as u32;
            if self.is_late(to as usize) { self.late.push(to) } else { self.queue.push(to) }
        }
    }

    #[inline]
    fn is_late(&self, node: usize) -> bool {
        self.synthetic == Some(self.graph.kinds[node])
            && is_of_library(&self.graph.strings[self.graph.names[node].0 as usize])
    }

    fn run(&mut self) {
        loop {
            while let Some(node) = self.queue.get(self.next) {
                let range = edges::range(self.graph, *node);
                self.next += 1;
                range.for_each(|edge| self.visit(edge));
            }
            if self.late.is_empty() {
                return;
            }
            self.queue.append(&mut self.late);
        }
    }
}
