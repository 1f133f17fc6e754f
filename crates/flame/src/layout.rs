//! Lays out weighted boxes side by side as a graph.

use crate::{FrameId, Graph, GraphBuilder, Span, Status};

/// A box with its weight, and the numbers of its children in display order.
pub(crate) struct WeightedBox {
    pub frame: FrameId,
    pub status: Status,
    pub weight: u64,
    pub children: Vec<u32>,
}

/// The graph of these boxes, the first of which is the root; `None` if there are none.
pub(crate) fn lay_out(mut builder: GraphBuilder, boxes: &[WeightedBox]) -> Option<Graph> {
    // The remaining steps, the next one last: boxes to open with their starts, or `None` to close one.
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
