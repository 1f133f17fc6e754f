//! Reads a snapshot from four part files.

use super::super::ReadOptions;
use super::super::error::HeapSnapshotError;
use super::super::parts::Parts;
use crate::fault::Fault;
use stackglass_profile::heap_graph::{AllocationStack, HeapGraph, NameId, NodeIndex};
use std::path::Path;

/// Reads the snapshot with this prefix. It is checked as for assembling.
pub(in crate::heapsnapshot) fn read(
    prefix: &Path,
    options: ReadOptions,
) -> Result<HeapGraph, HeapSnapshotError> {
    let parts = Parts::open(prefix)?;
    let edge_kinds = parts.meta.edge_kinds.len();
    if edge_kinds > 256 {
        return Err(HeapSnapshotError::invalid(
            prefix,
            format!("{edge_kinds} kinds of edges, more than 256"),
        ));
    }
    let (counts, _) = parts.count_edges().map_err(|fault| fault.in_file(&parts.edges.path))?;
    let mut graph = HeapGraph {
        node_kinds: parts.meta.node_kinds.clone(),
        edge_kinds: parts.meta.edge_kinds.clone(),
        ..HeapGraph::default()
    };
    nodes(&parts, options, &mut graph).map_err(|fault| fault.in_file(&parts.nodes.path))?;
    edges(&parts, counts, &mut graph).map_err(|fault| fault.in_file(&parts.edges.path))?;
    parts
        .strings
        .each(|text| -> Result<(), Fault> {
            graph.strings.push(String::from_utf8_lossy(text).into());
            Ok(())
        })
        .map_err(|fault| fault.in_file(&parts.strings.path))?;
    graph.stacks = parts.stacks.named(&graph.strings);
    Ok(graph)
}

fn nodes(parts: &Parts, options: ReadOptions, graph: &mut HeapGraph) -> Result<(), Fault> {
    let count = parts.nodes.count() as usize;
    graph.kinds.reserve_exact(count);
    graph.names.reserve_exact(count);
    graph.self_sizes.reserve_exact(count);
    let with_addresses = options.addresses && parts.have_addresses();
    let (mut row, mut sizes) = (0, 0);
    parts.nodes.each(|bytes| -> Result<(), Fault> {
        let node = parts.node(row, bytes)?;
        parts.add_size(row, &node, &mut sizes)?;
        row += 1;
        graph.push_stack(AllocationStack(node.stack));
        graph.kinds.push(node.kind as u16);
        graph.names.push(NameId(node.name as u32));
        graph.self_sizes.push(node.self_size);
        push_unused(graph, node.unused.into());
        if with_addresses {
            graph.addresses.push(node.address().unwrap_or(0));
        }
        Ok(())
    })
}

/// Places the edges, which may be in any order, at the nodes where they begin.
fn edges(parts: &Parts, counts: Vec<u32>, graph: &mut HeapGraph) -> Result<(), Fault> {
    // Of each node: the place of its next edge.
    let mut next = counts;
    let mut begun = 0;
    for place in &mut next {
        begun += std::mem::replace(place, begun);
    }
    graph.kinds_of_edges = vec![0; begun as usize];
    graph.names_of_edges = vec![0; begun as usize];
    graph.targets = vec![NodeIndex(0); begun as usize];
    parts.each_edge(|edge| -> Result<(), Fault> {
        let at = next[edge.from as usize] as usize;
        let Some(target) = graph.targets.get_mut(at) else {
            return Err(Fault::Whole("changed while it was read".into()));
        };
        *target = NodeIndex(edge.to as u32);
        graph.kinds_of_edges[at] = edge.kind as u8;
        graph.names_of_edges[at] = edge.name_or_index.min(u32::MAX.into()) as u32;
        next[edge.from as usize] += 1;
        Ok(())
    })?;
    // Each place is now the first one of the node that follows.
    next.insert(0, 0);
    graph.first_edges = next;
    Ok(())
}

/// Adds the unused bytes of the last node. The column is empty as long as no node has any.
#[inline]
fn push_unused(graph: &mut HeapGraph, bytes: u64) {
    if bytes > 0 && graph.unused.is_empty() {
        graph.unused.reserve_exact(graph.names.capacity());
        graph.unused.resize(graph.len() - 1, 0);
    }
    if bytes > 0 || !graph.unused.is_empty() {
        graph.unused.push(bytes.min(u32::MAX.into()) as u32);
    }
}
