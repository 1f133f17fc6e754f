//! Text on boxes is readable: a contrast of 4.5 or more (WCAG 2.1, AA) on every colour that a scheme can give, in both themes.

use stackglass_flame::png::{PictureOptions, write_picture};
use stackglass_flame::{
    CategoryColors, Color, ColorBy, Difference, FlameColors, Graph, GraphBuilder, Paint, Span, Status, Svg,
    Swatch, schemes,
};
use stackglass_profile::Frame;
use std::collections::BTreeMap;
use std::io::Cursor;

/// Relative luminance, after the standard.
fn luminance([red, green, blue]: [u8; 3]) -> f64 {
    let [red, green, blue] = [red, green, blue].map(|part| {
        let share = f64::from(part) / 255.0;
        if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    });
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

fn contrast(one: [u8; 3], two: [u8; 3]) -> f64 {
    let (one, two) = (luminance(one) + 0.05, luminance(two) + 0.05);
    one.max(two) / one.min(two)
}

/// So many boxes in a row, each with a function, a crate, a module and bits of its own.
fn row(boxes: u32) -> Graph {
    let mut builder = GraphBuilder::default();
    let root = builder.frame(&Frame::unknown(0));
    builder.open(root, Status::NONE, Span::of_len(1, u64::from(boxes) * 10));
    let registry = "/home/a/.cargo/registry/src/index-0/b-1.0.0/lib.rs";
    for at in 0..boxes {
        let foreign = at % 3 == 0;
        let frame = Frame {
            func: match at % 7 {
                0 => "".into(),
                1 => "malloc".into(),
                2 => format!("core::num::of{at}").into(),
                3 => format!("do_syscall{at}").into(),
                _ => format!("krate{at}::run").into(),
            },
            krate: if foreign || at % 7 < 4 { "".into() } else { format!("krate{at}").into() },
            file: if at % 5 == 0 { registry.into() } else { "".into() },
            module: ["app", "/lib/libc.so.6", "[kernel.kallsyms]", "/lib/libz.so.1"][at as usize % 4].into(),
            foreign,
            ..Frame::unknown(0)
        };
        let frame = builder.frame(&frame);
        builder.open_at(1, frame, Status((at / 8) as u8 % 8), Span::of_len(i64::from(at) * 10 + 1, 10));
    }
    builder.finish().unwrap()
}

/// By class of a style sheet: the value of a property.
fn rules<'s>(style: &'s str, property: &str) -> BTreeMap<&'s str, [u8; 3]> {
    let mut found = BTreeMap::new();
    for rule in style.split('}') {
        let Some((names, body)) = rule.split_once('{') else { continue };
        let Some(value) = body.strip_prefix(property) else { continue };
        let digits = value.trim_start_matches('#');
        let full: String =
            if digits.len() == 3 { digits.chars().flat_map(|c| [c, c]).collect() } else { digits.into() };
        if let Ok(color) = full.parse::<Color>() {
            found.extend(names.split(',').map(|name| (name, color.0)));
        }
    }
    found
}

/// The least contrast of text in an SVG picture of these swatches, of both themes.
fn least(swatches: &[Swatch]) -> f64 {
    let numbers = 0..swatches.len();
    let graph = row(numbers.len() as u32);
    let paint = Paint::new(swatches.to_vec(), move |graph, node| {
        graph.number_of(node).unwrap() as usize % numbers.len()
    });
    let text = Svg::new(&graph).width(swatches.len() * 30 + 100).paint(paint).to_text();
    let style = text.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
    let (light, dark) = style.split_once("@media(prefers-color-scheme:dark){").unwrap();
    let mut least = f64::INFINITY;
    for (theme, usual) in [(light, [0; 3]), (dark, [255; 3])] {
        let fills = rules(theme, "fill:");
        let boxes = fills.iter().filter(|(name, _)| name[1..].chars().all(|c| c.is_ascii_lowercase()));
        let mut count = 0;
        for (name, fill) in boxes.filter(|(name, _)| name.starts_with('.')) {
            let ink = fills.get(&*format!("{name}+text")).copied().unwrap_or(usual);
            least = least.min(contrast(*fill, ink));
            count += 1;
        }
        assert_eq!(count, swatches.len(), "each swatch has a rule in each theme");
    }
    least
}

#[test]
fn text_is_readable_in_all_schemes() {
    let graph = row(300);
    let julia = |dark| FlameColors::builder().n(8).darkmode(dark).build();
    let categories = CategoryColors::from_graph(&graph);
    let difference = Difference::new(&graph, &graph, 1.0, 1.0);
    for (name, paint) in [
        ("kind", Paint::default()),
        ("category", schemes::paint(categories.clone(), categories.darkmode(true))),
        ("crate", schemes::by_crate()),
        ("julia", schemes::paint(julia(false), julia(true))),
        ("difference", difference.paint()),
    ] {
        let mut swatches = paint.paint(&graph).swatches;
        swatches.iter_mut().for_each(|swatch| swatch.meaning.clear());
        swatches.sort_by_key(|swatch| (swatch.light, swatch.dark));
        swatches.dedup();
        assert!(swatches.len() >= 6, "{name}: {} colours", swatches.len());
        let least = least(&swatches);
        assert!(least >= 4.5, "{name}: {least}");
    }
}

#[test]
fn text_is_readable_on_any_colour() {
    let colors = (0..4096_u32).map(|number| [8, 4, 0].map(|bit| (number >> bit & 15) as u8 * 17));
    let swatches = colors.map(|color| Swatch { light: color, dark: color, meaning: String::new() });
    let least = least(&swatches.collect::<Vec<_>>());
    assert!((4.5..4.7).contains(&least), "{least}");
}

#[test]
fn text_is_readable_in_bitmaps() {
    for number in 0..512_u32 {
        let color = [6, 3, 0].map(|bit| (number >> bit & 7) as u8 * 36);
        let mut builder = GraphBuilder::default();
        let frame = builder.frame(&Frame { func: "HHHH".into(), ..Frame::unknown(0) });
        builder.open(frame, Status::NONE, Span::new(1, 10));
        let graph = builder.finish().unwrap();
        let (page, font) = if number % 2 == 0 { ([255; 3], [0; 3]) } else { ([23; 3], [255; 3]) };
        let colors = ColorBy::new(move |_, _, _| Some(Color(color))).on(Color(page), Color(font));
        let mut file = Vec::new();
        write_picture(&graph, &PictureOptions::new(&colors).width(60).fine(true), &mut file).unwrap();
        let mut reader = png::Decoder::new(Cursor::new(file)).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        // Within the box: margin 8, heading 20, each pixel twice.
        let rows = bytes.chunks(info.width as usize * 3).skip(58).take(30);
        let pixels = rows.flat_map(|row| row[60..198].chunks(3));
        let best = pixels.map(|pixel| contrast([pixel[0], pixel[1], pixel[2]], color)).fold(0.0, f64::max);
        assert!(best >= 4.5, "{color:?}: {best}");
    }
}
