//! Blocks of 4 GiB or more are divided into several nodes in a file, since viewers have 32 bits for a size. A graph has room for
//! all of it: they become one node again.

use super::super::limits::CONTINUED;
use stackglass_profile::heap_graph::HeapGraph;

/// Joins the nodes of such blocks. A graph whose blocks are not divided in this way is unchanged.
pub(super) fn join(graph: &mut HeapGraph) {
    let Some(name) = graph.strings.iter().rposition(|text| &**text == CONTINUED) else { return };
    let Some(kind) = graph.edge_kinds.iter().position(|kind| kind == "internal") else { return };
    let is_ours = |graph: &HeapGraph, edge: usize| {
        graph.names_of_edges[edge] as usize == name && usize::from(graph.kinds_of_edges[edge]) == kind
    };
    let count = (0..graph.targets.len()).filter(|edge| is_ours(graph, *edge)).count();
    let Some(first) = graph.len().checked_sub(count).filter(|first| *first > 0 && count > 0) else { return };
    // The parts follow all other nodes, in the order of the edges to them.
    let mut next = first;
    for edge in 0..graph.targets.len() {
        let to = graph.targets[edge].0 as usize;
        match (is_ours(graph, edge), to >= first) {
            (true, true) if to == next => next += 1,
            (false, false) => {}
            _ => return,
        }
    }
    if graph.first_edges[first] as usize != graph.targets.len() {
        return;
    }
    let mut kept = 0;
    for node in 0..first {
        let edges = graph.first_edges[node] as usize..graph.first_edges[node + 1] as usize;
        graph.first_edges[node] = kept as u32;
        for edge in edges {
            let to = graph.targets[edge];
            if to.0 as usize >= first {
                let size = graph.self_sizes.get(to.0 as usize);
                graph.self_sizes.set(node, graph.self_sizes.get(node).saturating_add(size));
                continue;
            }
            graph.kinds_of_edges[kept] = graph.kinds_of_edges[edge];
            graph.names_of_edges[kept] = graph.names_of_edges[edge];
            graph.targets[kept] = to;
            kept += 1;
        }
    }
    graph.first_edges.truncate(first + 1);
    graph.first_edges[first] = kept as u32;
    graph.kinds_of_edges.truncate(kept);
    graph.names_of_edges.truncate(kept);
    graph.targets.truncate(kept);
    graph.kinds.truncate(first);
    graph.names.truncate(first);
    graph.self_sizes.truncate(first);
    graph.unused.truncate(first);
    graph.members.truncate(first);
    graph.addresses.truncate(first);
    graph.allocated_by.truncate(first);
}
