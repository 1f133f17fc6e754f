//! Trims start-up code: Julia's shell as in FlameGraphs.jl, and the start of native programs and threads.

use crate::{Graph, NodeId, Status};

/// The graph without the first shell box in pre-order. Its callees are appended to the root's children, and the rest of
/// its branch is removed. Spans stay.
pub(crate) fn without_shell(graph: Graph) -> Graph {
    let is_shell = |number: &NodeId| {
        let node = &graph.nodes()[*number as usize];
        node.status.any(Status::RUNTIME) && crate::status::of_julia(graph.frame(node)).any(Status::RUNTIME)
    };
    let Some(shell) = (1..graph.nodes().len() as NodeId).find(is_shell) else { return graph };
    let stays = |branch: &NodeId| !graph.branch(*branch).contains(&shell);
    let mut order: Vec<NodeId> = graph.children(0).filter(stays).collect();
    order.extend(graph.children(shell));
    let depth = |number: NodeId| graph.nodes()[number as usize].depth;
    graph.with_branches(&order, |branch| depth(branch) - 1)
}

/// The graph without contiguous outermost boxes that only start a program or a thread. Their callees move up to the root.
/// Spans stay, so that time spent in them is empty space. A graph of nothing else is unchanged.
pub(crate) fn without_starts(graph: Graph) -> Graph {
    let nodes = graph.nodes();
    let mut goes = vec![false; nodes.len()];
    goes[0] = true;
    let parents = graph.parents();
    for number in 1..nodes.len() {
        goes[number] = goes[parents[number] as usize] && nodes[number].status.any(Status::RUNTIME);
    }
    if !goes[1..].contains(&true) || !goes.contains(&false) {
        return graph;
    }
    graph.retain(|number| !goes[number as usize])
}
