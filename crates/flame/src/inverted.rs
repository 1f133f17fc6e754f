//! The graph upside down: functions with time of their own first, their callers above them.

use crate::{FrameId, Graph, GraphBuilder, NodeId, Span};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// Callers beyond this many are left out: a graph of very deep recursion would grow with the square of its depth.
const CALLERS: usize = 1024;

/// A box in the making.
struct Box {
    frame: FrameId,
    status: crate::Status,
    samples: u64,
    children: Vec<u32>,
}

impl Graph {
    /// The same samples, innermost frame first: below the root all functions that have time of their own, below each
    /// its callers. Siblings are sorted by samples, most first.
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
        let root =
            |samples| Box { frame: nodes[0].frame, status: nodes[0].status, samples, children: Vec::new() };
        let mut boxes = vec![root(0)];
        let mut known: HashMap<(u32, FrameId), u32, RandomState> = HashMap::default();
        for (number, own) in self.own().into_iter().enumerate().skip(1).filter(|(_, own)| *own > 0) {
            let (mut at, mut node) = (0_u32, number as NodeId);
            boxes[0].samples += own;
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
                    boxes.push(Box { frame, status, samples: 0, children: Vec::new() });
                }
                let entry = &mut boxes[below as usize];
                entry.samples += own;
                entry.status |= caller.status;
                (at, node) = (below, parents[node as usize]);
            }
        }
        let mut builder = GraphBuilder::with_frames_of(self);
        let mut steps = vec![Some((0_u32, 1_i64))];
        while let Some(step) = steps.pop() {
            let Some((number, start)) = step else {
                builder.close();
                continue;
            };
            let entry = &boxes[number as usize];
            builder.open(entry.frame, entry.status, Span::of_len(start, entry.samples));
            steps.push(None);
            let mut children = entry.children.clone();
            children.sort_by_key(|child| std::cmp::Reverse(boxes[*child as usize].samples));
            let (first, mut start) = (steps.len(), start);
            for child in children {
                steps.push(Some((child, start)));
                start = start.saturating_add_unsigned(boxes[child as usize].samples);
            }
            steps[first..].reverse();
        }
        builder.finish().unwrap_or_default()
    }
}
