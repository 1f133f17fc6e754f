//! Random graphs: children lie within their parents, one after the other, with free space between them.

use proptest::prelude::*;
use stackglass_flame::{Color, ColorBy, ColorFunction, Graph, GraphBuilder, Node, Span, Status};
use stackglass_profile::Frame;
use std::cell::Cell;

pub fn graphs() -> impl Strategy<Value = Graph> {
    let steps = prop::collection::vec((0..4u8, 0..6i64, 0..400i64, 0..8u8), 0..120);
    (1..3000i64, steps).prop_map(|(len, steps)| build(1, len, &steps))
}

/// The same graph, which starts elsewhere.
pub fn moved(graph: &Graph, by: i64) -> Graph {
    let mut builder = GraphBuilder::default();
    for node in graph.nodes() {
        while builder.depth() > node.depth as usize {
            builder.close();
        }
        let frame = builder.frame(graph.frame(node));
        builder.open(frame, node.status, Span::new(node.span.start() + by, node.span.stop() + by));
    }
    builder.finish().unwrap()
}

/// For each step: boxes to leave, free space to leave, and the greatest length of the box that it opens.
fn build(start: i64, len: i64, steps: &[(u8, i64, i64, u8)]) -> Graph {
    let mut builder = GraphBuilder::default();
    let frames: Vec<_> = (0..7).map(|line| builder.frame(&Frame { line, ..Frame::unknown(0) })).collect();
    builder.open(frames[0], Status::NONE, Span::of_len(start, len as u64));
    // Of each open box: where the next child may start, and where it ends.
    let mut open = vec![(start, start + len)];
    for (number, (leave, free, len, status)) in steps.iter().enumerate() {
        for _ in 0..*leave {
            if open.len() > 1 {
                open.pop();
                builder.close();
            }
        }
        let (next, end) = open.last_mut().unwrap();
        let from = (*next + free).min(*end);
        let to = (from + len).min(*end);
        *next = to;
        builder.open(frames[number % 7], Status(*status), Span::new(from, to - 1));
        open.push((from, to));
    }
    builder.finish().unwrap()
}

/// A separate colour for each box, by its number from 1 on; 0 is the background.
pub fn numbered() -> impl ColorFunction {
    let number = Cell::new(0u32);
    let color = move |_: &mut [usize], _: &Graph, _: &Node| {
        number.set(number.get() + 1);
        let [_, red, green, blue] = number.get().to_be_bytes();
        Some(Color([red, green, blue]))
    };
    ColorBy::new(color).on(Color::BLACK, Color::WHITE)
}

pub fn number(color: Color) -> usize {
    color.0.iter().fold(0, |number, part| number << 8 | usize::from(*part))
}
