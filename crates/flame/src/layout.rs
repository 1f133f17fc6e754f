//! Boxes that were counted in any order, put side by side into a graph.

use crate::{FrameId, Graph, GraphBuilder, Span, Status};

/// A box in the making; its children are numbers of others, in the order in which they shall stand.
pub(crate) struct WeightedBox {
    pub frame: FrameId,
    pub status: Status,
    pub weight: u64,
    pub children: Vec<u32>,
}

/// The graph of boxes of which the first is the root. `None` when there is none.
pub(crate) fn lay_out(mut builder: GraphBuilder, boxes: &[WeightedBox]) -> Option<Graph> {
    // What is still to do, the next last: boxes with their starts, `None` ends one.
    let mut steps = vec![Some((0_u32, 1_i64))];
    while let Some(step) = steps.pop() {
        let Some((number, mut start)) = step else {
            builder.close();
            continue;
        };
        let counted = boxes.get(number as usize)?;
        builder.open(counted.frame, counted.status, Span::of_len(start, counted.weight));
        steps.push(None);
        let first = steps.len();
        for child in &counted.children {
            steps.push(Some((*child, start)));
            start = start.saturating_add_unsigned(boxes.get(*child as usize)?.weight);
        }
        steps[first..].reverse();
    }
    builder.finish()
}
