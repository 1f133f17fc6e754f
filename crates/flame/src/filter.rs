//! Filtering: omits branches without a match.

use crate::{Graph, Matcher, NodeId};

/// The graph of matching boxes, their ancestors and everything below them. A matching root does not count. `None` if no
/// box matches.
pub(crate) fn keep(graph: &Graph, matcher: &Matcher) -> Option<Graph> {
    let matches = matcher.all(graph);
    if !matches.contains(&true) {
        return None;
    }
    let (nodes, parents) = (graph.nodes(), graph.parents());
    let mut kept = matches;
    let mut covered: NodeId = 0;
    for (number, node) in (0..).zip(nodes).skip(1) {
        match kept[number as usize] {
            true => covered = covered.max(node.end),
            false => kept[number as usize] = number < covered,
        }
    }
    for number in (1..nodes.len()).rev() {
        if kept[number] {
            kept[parents[number] as usize] = true;
        }
    }
    kept[0] = true;
    Some(graph.retain(|number| kept[number as usize]))
}
