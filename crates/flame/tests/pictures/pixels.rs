//! Every pixel shows the box that lies there, and every tag its frame.

use super::graphs::{graphs, moved, number, numbered};
use proptest::prelude::*;
use stackglass_flame::{FlameColors, Graph, GraphBuilder, PixelsError, Span, Status, flamepixels, flametags};
use stackglass_profile::Frame;

/// The box that lies at a position in a depth.
fn at(graph: &Graph, position: i64, depth: usize) -> Option<usize> {
    let lies = |node: &stackglass_flame::Node| {
        node.depth as usize == depth && (node.span.start()..=node.span.stop()).contains(&position)
    };
    graph.nodes().iter().position(lies)
}

proptest! {
    #[test]
    fn each_position_has_a_pixel(graph in graphs()) {
        let pixels = flamepixels(&graph, &numbered(), Some(1.0)).unwrap();
        let tags = flametags(&graph, &pixels).unwrap();
        prop_assert_eq!(pixels.size(), (graph.root().span.len() as usize, graph.depth()));
        prop_assert_eq!(tags.index.size(), pixels.size());
        for depth in 0..graph.depth() {
            for cost in 0..pixels.size().0 {
                let node = at(&graph, cost as i64 + 1, depth);
                let shown = number(pixels.get(cost, depth).unwrap());
                prop_assert_eq!(node.map_or(0, |node| node + 1), shown);
                let frame = node.map_or(Frame::unknown(0), |node| graph.frame(&graph.nodes()[node]).clone());
                prop_assert_eq!(tags.frame(cost, depth), Some(&frame));
            }
        }
    }

    #[test]
    fn scaled_boxes_keep_their_places(graph in graphs(), scale in 0.01..3.0f64) {
        let pixels = flamepixels(&graph, &numbered(), Some(scale)).unwrap();
        let tags = flametags(&graph, &pixels).unwrap();
        prop_assert_eq!(tags.index.size(), pixels.size());
        let mut columns = vec![0; graph.nodes().len()];
        for (depth, row) in pixels.rows().enumerate() {
            for (cost, color) in row.iter().enumerate() {
                let Some(node) = number(*color).checked_sub(1) else { continue };
                columns[node] += 1;
                let span = graph.nodes()[node].span;
                prop_assert_eq!(graph.nodes()[node].depth as usize, depth);
                let column = cost as f64 + 1.0;
                prop_assert!(column >= span.start() as f64 * scale - 0.5, "{column} is before {span}");
                prop_assert!(column <= span.stop() as f64 * scale + 0.5, "{column} is behind {span}");
            }
        }
        // Boxes of more than two columns are seen, but for what a neighbour takes.
        for (node, columns) in graph.nodes().iter().zip(columns) {
            let width = node.span.len() as f64 * scale;
            let least = width - 3.0 - scale;
            prop_assert!(columns as f64 >= least, "{columns} columns of {width}");
        }
    }

    #[test]
    fn parts_of_graphs_are_painted_from_their_start(graph in graphs(), by in -100_000..100_000i64) {
        let colors = FlameColors::default();
        let elsewhere = moved(&graph, by);
        let pixels = flamepixels(&graph, &colors, None).unwrap();
        prop_assert_eq!(&flamepixels(&elsewhere, &colors, None).unwrap(), &pixels);
        prop_assert_eq!(flametags(&elsewhere, &pixels).unwrap(), flametags(&graph, &pixels).unwrap());
        prop_assert!(pixels.size().0 <= 1000);
    }
}

/// So many boxes, each in the one before it.
fn deep(boxes: u32) -> Graph {
    let mut builder = GraphBuilder::default();
    let frame = builder.frame(&Frame::unknown(0));
    for _ in 0..boxes {
        builder.open(frame, Status::NONE, Span::new(1, 1000));
    }
    builder.finish().unwrap()
}

#[test]
fn a_deep_graph_neither_recurses_nor_takes_all_memory() {
    let graph = deep(1_000_000);
    let failed = flamepixels(&graph, &FlameColors::default(), None);
    assert_eq!(failed, Err(PixelsError::TooLarge { cost: 1000, depth: 1_000_000 }));
    let pixels = flamepixels(&graph, &FlameColors::default(), Some(0.01)).unwrap();
    assert_eq!(flametags(&graph, &pixels).unwrap().index.size(), (10, 1_000_000));
}

#[test]
fn scales_that_are_none() {
    let graph = deep(2);
    for scale in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(
            flamepixels(&graph, &FlameColors::default(), Some(scale)),
            Err(PixelsError::Scale(_))
        ));
    }
    let huge = flamepixels(&graph, &FlameColors::default(), Some(1e300));
    assert!(matches!(huge, Err(PixelsError::TooLarge { .. })));
    let other = flamepixels(&deep(3), &FlameColors::default(), None).unwrap();
    assert_eq!(flametags(&graph, &other), Err(PixelsError::OtherGraph { pixels: 3, graph: 2 }));
}

#[test]
fn spans_from_strange_files_do_no_harm() {
    let mut builder = GraphBuilder::default();
    let frame = builder.frame(&Frame::unknown(0));
    builder.open(frame, Status::NONE, Span::new(5, 8));
    for span in
        [Span::new(i64::MIN, i64::MAX), Span::new(i64::MAX, i64::MAX), Span::new(-9, 5), Span::new(8, 99)]
    {
        builder.open(frame, Status::NONE, span);
        builder.close();
    }
    let graph = builder.finish().unwrap();
    let pixels = flamepixels(&graph, &numbered(), None).unwrap();
    assert_eq!(pixels.row(1).iter().map(|color| number(*color)).collect::<Vec<_>>(), [4, 2, 2, 5]);
    assert!(flametags(&graph, &pixels).is_ok());
    let mut builder = GraphBuilder::default();
    let frame = builder.frame(&Frame::unknown(0));
    builder.open(frame, Status::NONE, Span::new(i64::MIN, i64::MAX));
    let graph = builder.finish().unwrap();
    assert_eq!(flamepixels(&graph, &numbered(), None).unwrap().size(), (1000, 1));
}
