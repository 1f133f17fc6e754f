//! `.heapsnapshot`: a file that is read is a consistent graph.

use super::memory::bounded;
use stackglass_files::heapsnapshot::read_bytes;
use stackglass_profile::heap_graph::{HeapGraph, NodeIndex};

/// The bytes are the file.
pub fn check(bytes: &[u8]) {
    // Two bytes are a number of the graph, three are a string.
    let allowed = 64 * bytes.len() + (1 << 20);
    if let Ok(graph) = bounded(allowed, || read_bytes(bytes)) {
        check_graph(&graph);
    }
}

/// Every node and edge can be looked at, and sums of sizes do not overflow.
pub fn check_graph(graph: &HeapGraph) {
    let nodes = graph.len();
    assert!(nodes == graph.names.len() && nodes == graph.self_sizes.len());
    assert_eq!(graph.first_edges.len(), nodes + 1);
    assert!(graph.first_edges.is_sorted());
    assert_eq!(graph.first_edges[nodes] as usize, graph.targets.len());
    assert!(graph.unused.is_empty() || graph.unused.len() == nodes);
    assert!(graph.addresses.is_empty() || graph.addresses.len() == nodes);
    let mut edges = 0;
    for node in (0..nodes as u32).map(NodeIndex) {
        let _ = graph.name(node);
        assert!(usize::from(graph.kinds[node.0 as usize]) < graph.node_kinds.len());
        for edge in graph.edges(node) {
            assert!((edge.to.0 as usize) < nodes);
            let kind = &*graph.edge_kinds[usize::from(edge.kind)];
            if !matches!(kind, "element" | "hidden") {
                let _ = &graph.strings[edge.name_or_index as usize];
            }
            edges += 1;
        }
    }
    assert_eq!(edges, graph.targets.len());
    let _ = graph.self_sizes.iter().sum::<u64>();
}
