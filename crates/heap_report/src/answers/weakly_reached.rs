//! Which leak candidates weak edges lead to.
//!
//! A block that only a `Weak<T>` keeps goes with the `Weak<T>`. A pointer in a union, in an integer or in bytes may be in use. Such
//! blocks, and all to which they lead, are no leaks for certain. Nothing leads to the others.

use super::Bits;
use super::edges::range;
use stackglass_profile::heap_graph::HeapGraph;

/// The nodes that are not alive, and to which edges of any kind lead from those that are.
pub(super) fn weakly_reached(graph: &HeapGraph, alive: &Bits, unreachable: Option<u32>) -> Bits {
    let mut seen = alive.clone();
    let mut weakly = Bits::new(graph.len());
    if let Some(node) = unreachable {
        // It leads to all candidates.
        seen.insert(node as usize);
    }
    let mut pending = Vec::new();
    let mut visit = |node: u32, pending: &mut Vec<u32>| {
        for edge in range(graph, node) {
            let to = graph.targets[edge].0;
            if seen.insert(to as usize) {
                weakly.insert(to as usize);
                pending.push(to);
            }
        }
    };
    for node in (0..graph.len() as u32).filter(|node| alive.get(*node as usize)) {
        if Some(node) != unreachable {
            visit(node, &mut pending);
        }
    }
    while let Some(node) = pending.pop() {
        visit(node, &mut pending);
    }
    weakly
}
