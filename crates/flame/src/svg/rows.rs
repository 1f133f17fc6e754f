//! The boxes of a picture by row: those to draw, and runs of boxes that are too small or too deep.

use crate::{Graph, NodeId};

/// A box of a row, in tenths of points from the left.
pub(super) struct DrawnBox {
    pub(super) left: i64,
    pub(super) right: i64,
    pub(super) kind: BoxKind,
}

pub(super) enum BoxKind {
    Node(NodeId),
    Merged(Run),
}

/// Adjacent boxes that are merged.
#[derive(Clone, Copy)]
pub(super) struct Run {
    /// In tenths of points from the left.
    left: f64,
    right: f64,
    /// On the cost axis, from the start of the root.
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) boxes: u64,
    pub(super) samples: u64,
}

/// What to draw.
pub(super) struct Detail {
    /// Width of the picture in tenths of points.
    pub(super) width: f64,
    /// Width of the narrowest box, in tenths of points.
    pub(super) least: f64,
    pub(super) most_rows: u32,
}

impl Detail {
    /// The x coordinate of a position on the cost axis, in tenths of points.
    fn x(&self, graph: &Graph, position: i64) -> f64 {
        let root = graph.root().span;
        let share = (position as f64 - root.start() as f64) / (root.len().max(1)) as f64;
        share.clamp(0.0, 1.0) * self.width
    }

    /// The number of boxes that are not merged.
    pub(super) fn count(&self, graph: &Graph) -> usize {
        let least = self.least / self.width * graph.root().span.len() as f64;
        let is_drawn = |node: &&crate::Node| node.span.len() as f64 >= least && node.depth < self.most_rows;
        graph.nodes().iter().filter(is_drawn).count()
    }

    /// The boxes to draw, by row, from left to right.
    pub(super) fn rows(&self, graph: &Graph) -> Vec<Vec<DrawnBox>> {
        let (nodes, start) = (graph.nodes(), graph.root().span.start());
        let mut rows: Vec<Vec<DrawnBox>> = Vec::new();
        // By row: the run of merged boxes so far.
        let mut runs: Vec<Option<Run>> = vec![None];
        let mut number = 0;
        while let Some(node) = nodes.get(number) {
            let depth = node.depth as usize;
            let (from, end) = (node.span.start(), node.span.stop().saturating_add(1));
            let (left, right) = (self.x(graph, from), self.x(graph, end));
            let (from, end) = (from.saturating_sub(start), end.saturating_sub(start));
            if rows.len() <= depth {
                rows.resize_with(depth + 1, Vec::new);
                runs.resize(depth + 2, None);
            }
            if (right - left < self.least || node.depth + 1 >= self.most_rows) && depth > 0 {
                let (boxes, samples) = (u64::from(node.end) - number as u64, node.span.len());
                match &mut runs[depth] {
                    Some(run) if left <= run.right + self.least && left >= run.left => {
                        run.right = run.right.max(right);
                        run.end = run.end.max(end);
                        run.boxes += boxes;
                        run.samples = run.samples.saturating_add(samples);
                    }
                    run => {
                        let new = Run { left, right, start: from, end, boxes, samples };
                        rows[depth].extend(run.replace(new).map(merged));
                    }
                }
                number = node.end as usize;
                continue;
            }
            for row in [depth, depth + 1] {
                if let Some(run) = runs[row].take() {
                    rows[row].push(merged(run));
                }
            }
            let kind = BoxKind::Node(number as NodeId);
            rows[depth].push(DrawnBox { left: left.round() as i64, right: right.round() as i64, kind });
            number += 1;
        }
        for (row, run) in rows.iter_mut().zip(runs) {
            row.extend(run.map(merged));
        }
        rows
    }
}

fn merged(run: Run) -> DrawnBox {
    // At least one point wide, so that it can be seen and hovered.
    let (left, right) = (run.left.floor() as i64, run.right.max(run.left + 10.0).round() as i64);
    DrawnBox { left, right, kind: BoxKind::Merged(run) }
}
