//! Trimming what only starts programs: Julia's shell as FlameGraphs.jl does it, and the start of native programs
//! and threads.

use crate::{Graph, NodeId, Status};

/// Without the first shell box, in pre-order: what it calls is appended to the root's children, and the branch it
/// was in is removed. Spans stay.
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

/// Without the outermost boxes that only start a program or a thread, as far as they hang together; what they call
/// moves up to the root. Spans stay, so time spent in them is free space. A graph of nothing else stays as it is.
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
