//! Pictures with labels: their size, and that every box is seen in them.

use super::graphs::graphs;
use proptest::prelude::*;
use stackglass_flame::png::{Layout, PictureOptions, PngError, write_picture};
use stackglass_flame::{Color, FlameColors, Graph, GraphBuilder, Span, Status};
use stackglass_profile::Frame;
use std::io::{self, Cursor, Write};

struct Picture {
    width: usize,
    height: usize,
    bytes: Vec<u8>,
}

impl Picture {
    fn from_graph(graph: &Graph, options: &PictureOptions<'_>) -> Picture {
        let mut file = Vec::new();
        write_picture(graph, options, &mut file).unwrap();
        let mut reader = png::Decoder::new(Cursor::new(file)).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        Picture { width: info.width as usize, height: info.height as usize, bytes }
    }

    fn at(&self, column: usize, row: usize) -> Color {
        let at = (row * self.width + column) * 3;
        Color([self.bytes[at], self.bytes[at + 1], self.bytes[at + 2]])
    }
}

/// Measures of pictures: what is around the boxes, above them, and a box with its gap.
const MARGIN: usize = 8;
const ABOVE: usize = 28;
const BOX: usize = 18;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_box_is_left_out(graph in graphs(), icicle: bool, fine: bool, width in 40..700usize, levels in 1..40usize) {
        let colors = FlameColors::builder().n(1).build();
        let layout = if icicle { Layout::Icicle } else { Layout::Flame };
        let options = PictureOptions::new(&colors).layout(layout).fine(fine).width(width).levels(levels);
        let picture = Picture::from_graph(&graph, &options);
        let density = if fine { 2 } else { 1 };
        prop_assert_eq!(picture.width, width * density);
        let rows = graph.depth().min(levels);
        prop_assert!(picture.height >= (ABOVE + rows * BOX) * density);
        let room = ((width - 2 * MARGIN) * density) as f64;
        let scale = room / graph.root().span.len() as f64;
        for node in graph.nodes().iter().filter(|node| !node.span.is_empty()) {
            let depth = (node.depth as usize).min(rows - 1);
            let row = if icicle { depth } else { rows - 1 - depth };
            let row = (ABOVE + row * BOX) * density;
            let from = MARGIN * density + ((node.span.start() - 1) as f64 * scale) as usize;
            let to = MARGIN * density + (node.span.stop() as f64 * scale).ceil() as usize;
            let seen = (from..to.max(from + 1)).any(|column| picture.at(column, row) != Color::WHITE);
            prop_assert!(seen, "{} at depth {}", node.span, node.depth);
        }
    }
}

fn chain(names: &[&str], samples: i64) -> Graph {
    let mut builder = GraphBuilder::default();
    for name in names {
        let frame = builder.frame(&Frame { func: (*name).into(), ..Frame::unknown(0) });
        builder.open(frame, Status::NONE, Span::new(1, samples));
    }
    builder.finish().unwrap()
}

#[test]
fn the_root_is_at_the_bottom_or_at_the_top() {
    let graph = chain(&["", "app::main"], 10);
    let colors =
        FlameColors { colors: vec![Color::CRIMSON, Color::ORANGE], ..FlameColors::builder().n(0).build() };
    for (layout, upper) in [(Layout::Flame, Color::ORANGE), (Layout::Icicle, Color::CRIMSON)] {
        let picture = Picture::from_graph(&graph, &PictureOptions::new(&colors).layout(layout).width(300));
        assert_eq!(picture.at(MARGIN, ABOVE), upper, "{layout:?}");
        assert_eq!(picture.at(MARGIN, ABOVE + BOX - 1), Color::WHITE, "a gap between levels");
    }
}

#[test]
fn boxes_have_text_in_a_readable_color() {
    let graph = chain(&["", "app::main"], 10);
    let dark = FlameColors::builder().darkmode(true).build();
    let picture = Picture::from_graph(&graph, &PictureOptions::new(&dark).width(300));
    // Within the upper box, where its text is.
    let contrasts = (ABOVE..ABOVE + BOX - 1)
        .flat_map(|row| (MARGIN..100).map(move |column| (column, row)))
        .map(|(column, row)| picture.at(column, row).contrast(Color::WHITE));
    let (dark, light): (Vec<f64>, Vec<f64>) = contrasts.partition(|contrast| *contrast > 7.0);
    assert!(dark.len() > 20, "{} dark pixels are no letters on a light box", dark.len());
    assert!(light.iter().all(|contrast| *contrast > 1.2), "white letters on a light box");
}

#[test]
fn a_deep_graph_is_a_picture() {
    let names = vec!["f"; 1_000_000];
    let colors = FlameColors::default();
    let picture = Picture::from_graph(&chain(&names, 3), &PictureOptions::new(&colors));
    assert!(picture.height < 4000);
}

#[test]
fn what_is_no_picture_is_said() {
    let graph = chain(&["", "main"], 10);
    let colors = FlameColors::default();
    let written = |options: &PictureOptions<'_>| write_picture(&graph, options, io::sink());
    let options = PictureOptions::new(&colors);
    assert!(matches!(written(&options.clone().width(0)), Err(PngError::Empty { .. })));
    assert!(matches!(written(&options.clone().width(usize::MAX)), Err(PngError::TooLarge { .. })));
    let none = FlameColors::builder().n(0).build();
    let failed = written(&PictureOptions::new(&none)).unwrap_err().to_string();
    assert_eq!(failed, "there is no colour for a box at depth 0: give at least one colour");

    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let failed = write_picture(&graph, &options, Full).unwrap_err();
    assert!(
        matches!(&failed, PngError::Write(error) if error.kind() == io::ErrorKind::StorageFull),
        "{failed}"
    );
}
