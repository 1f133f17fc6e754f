//! The inverted graph: functions with own time first, their callers above them.

use crate::layout::{WeightedBox, lay_out};
use crate::{FrameId, Graph, GraphBuilder, NodeId};
use foldhash::HashMap;

/// Maximum number of callers of a function. Without it, the graph of a deep recursion would grow with the square of its
/// depth.
const CALLERS: usize = 1024;

impl Graph {
    /// The same samples, innermost frame first. Below the root are all functions with own time, and below each its callers.
    /// Siblings are sorted by samples, largest first.
    ///
    /// ```
    /// use stackglass_flame::{GraphBuilder, Span, Status};
    /// use stackglass_profile::Frame;
    ///
    /// let mut builder = GraphBuilder::default();
    /// let name = |name: &str| Frame { func: name.into(), ..Frame::unknown(0) };
    /// for (func, span) in [("", Span::new(1, 9)), ("main", Span::new(1, 9)), ("work", Span::new(1, 6))] {
    ///     let frame = builder.frame(&name(func));
    ///     builder.open(frame, Status::NONE, span);
    /// }
    /// let inverted = builder.finish().unwrap().inverted();
    /// let names: Vec<_> = inverted.nodes().iter().map(|node| &*inverted.frame(node).func).collect();
    /// assert_eq!(names, ["", "work", "main", "main"]);
    /// ```
    pub fn inverted(&self) -> Graph {
        let (nodes, parents) = (self.nodes(), self.parents());
        let root = |weight| WeightedBox {
            frame: nodes[0].frame,
            status: nodes[0].status,
            weight,
            children: Vec::new(),
        };
        // Samples without any box keep their share of the width.
        let mut boxes = vec![root(self.own().first().copied().unwrap_or(0))];
        let mut known: HashMap<(u32, FrameId), u32> = HashMap::default();
        for (number, own) in self.own().into_iter().enumerate().skip(1).filter(|(_, own)| *own > 0) {
            let (mut at, mut node) = (0_u32, number as NodeId);
            boxes[0].weight += own;
            for _ in 0..CALLERS {
                if node == 0 {
                    break;
                }
                let caller = &nodes[node as usize];
                let new = boxes.len() as u32;
                let below = *known.entry((at, caller.frame)).or_insert(new);
                if below == new {
                    boxes[at as usize].children.push(new);
                    let (frame, status) = (caller.frame, caller.status);
                    boxes.push(WeightedBox { frame, status, weight: 0, children: Vec::new() });
                }
                let entry = &mut boxes[below as usize];
                entry.weight += own;
                entry.status |= caller.status;
                (at, node) = (below, parents[node as usize]);
            }
        }
        for number in 0..boxes.len() {
            let mut children = std::mem::take(&mut boxes[number].children);
            children.sort_by_key(|child| std::cmp::Reverse(boxes[*child as usize].weight));
            boxes[number].children = children;
        }
        lay_out(GraphBuilder::with_frames_of(self), &boxes).unwrap_or_default()
    }
}
