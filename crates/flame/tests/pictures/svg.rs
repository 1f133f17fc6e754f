//! Still pictures, read back by an XML parser.

use roxmltree::{Document, Node};
use stackglass_flame::{Graph, GraphBuilder, Page, Paint, Painted, Span, Status, Svg, Swatch};
use stackglass_profile::Frame;

fn rust(func: &str) -> Frame {
    Frame { func: func.into(), foreign: false, ..Frame::unknown(0) }
}

/// Boxes with their titles: left edge, width, title.
fn boxes<'d>(picture: &'d Document<'_>) -> Vec<(f64, f64, &'d str)> {
    let titled = |node: &Node<'d, '_>| node.children().find(|child| child.has_tag_name("title"))?.text();
    let paths = picture.descendants().filter(|node| node.has_tag_name("path"));
    paths
        .filter_map(|path| {
            let title = titled(&path)?;
            let d = path.attribute("d")?.strip_prefix('M')?;
            let width = d.split_once('h')?.1.split_once('v')?.0;
            Some((d.split_once(' ')?.0.parse().ok()?, width.parse().ok()?, title))
        })
        .collect()
}

#[test]
fn boxes_lie_where_their_spans_are() {
    let mut builder = GraphBuilder::default();
    let mut open = |name: &str, status, from, to| {
        let frame = builder.frame(&if name.is_empty() { Frame::unknown(0) } else { rust(name) });
        builder.open(frame, status, Span::new(from, to));
        builder.close();
    };
    open("", Status::NONE, 1, 100);
    open("a::b", Status::DISPATCH, 1, 40);
    open("c", Status::MEMORY, 41, 90);
    let graph = builder.finish().unwrap();
    let text = Svg::new(&graph).width(1016).title("<T> & \"x\"").to_text();
    let picture = Document::parse(&text).unwrap();
    assert_eq!(
        boxes(&picture),
        [
            (0.0, 1000.0, "all\n100 samples, 100 %, own 10, 10.0 %"),
            (0.0, 400.0, "a::b\n40 samples, 40.0 %, own 40, 40.0 %\ndynamic call"),
            (400.0, 500.0, "c\n50 samples, 50.0 %, own 50, 50.0 %\nmemory management"),
        ]
    );
    assert_eq!(picture.root_element().children().next().unwrap().text(), Some("<T> & \"x\""));
    let top = |icicle| {
        let text = Svg::new(&graph).icicle(icicle).to_text();
        text.find(">all\n").unwrap() < text.find(">a::b\n").unwrap()
            && text.find("translate(8 47)").unwrap() < text.find("translate(8 64)").unwrap()
    };
    assert!(top(true) && !top(false));
}

/// A graph of 1 box with 10 000 small ones in it, each of which has one in itself, and one of half the width.
fn fine() -> Graph {
    let mut builder = GraphBuilder::default();
    let root = builder.frame(&Frame::unknown(0));
    let small = builder.frame(&rust("small"));
    builder.open(root, Status::NONE, Span::new(1, 20_000));
    for at in 0..10_000 {
        builder.open(small, Status::NONE, Span::new(at + 1, at + 1));
        builder.open(small, Status::NONE, Span::new(at + 1, at + 1));
        builder.close();
        builder.close();
    }
    builder.open(small, Status::NONE, Span::new(10_001, 20_000));
    builder.finish().unwrap()
}

#[test]
fn small_details_are_merged_and_say_so() {
    let text = Svg::new(&fine()).width(1016).to_text();
    let picture = Document::parse(&text).unwrap();
    let titles = boxes(&picture);
    assert_eq!(titles.len(), 3, "{titles:?}");
    let merged = "20\u{a0}000 boxes left out, 10\u{a0}000 samples, 50.0 %";
    assert!(titles.contains(&(0.0, 500.0, merged)), "{titles:?}");
    assert!(text.contains("details left out</text>"), "the legend tells");
}

#[test]
fn names_from_anywhere_stay_text() {
    let names = [
        "</title><script>alert(1)</script>",
        "\0\u{1b}[31m",
        "\u{202e}txt",
        "a\"b'c&d]]>",
        "\u{ffff}",
        &"x".repeat(100_000),
    ];
    let mut builder = GraphBuilder::default();
    for name in names {
        let frame = builder.frame(&Frame { file: name.into(), line: 3, ..rust(name) });
        builder.open(frame, Status(255), Span::new(1, 10));
    }
    let graph = builder.finish().unwrap();
    let text = Svg::new(&graph).title(names.concat()).unit("<u>").to_text();
    let picture = Document::parse(&text).unwrap();
    assert_eq!(boxes(&picture).len(), names.len());
    let scripts: Vec<_> = picture.descendants().filter(|node| node.has_tag_name("script")).collect();
    assert_eq!(scripts.len(), 1, "the one of the picture");
    assert!(!scripts[0].text().unwrap().contains("alert(1)"));
    let still = Svg::new(&graph).title(names.concat()).unit("<u>").script(false).to_text();
    assert!(!still.contains("<script") && !still.contains("data-"));
    assert!(!text.contains(['\u{202e}', '\0', '\u{1b}']));
}

#[test]
fn any_depth_and_any_span() {
    let mut builder = GraphBuilder::default();
    let frame = builder.frame(&rust("deep"));
    for _ in 0..100_000 {
        builder.open(frame, Status::NONE, Span::new(1, 1));
    }
    let graph = builder.finish().unwrap();
    let text = Svg::new(&graph).to_text();
    assert_eq!(text.matches("<title>deep\n").count(), 100_000);
    let text = Svg::new(&graph).most_rows(10).to_text();
    assert_eq!(text.matches("<title>deep\n").count(), 9);
    assert!(text.contains("99\u{a0}991 boxes left out"));

    let mut builder = GraphBuilder::default();
    let frame = builder.frame(&rust("odd"));
    builder.open(frame, Status::NONE, Span::new(1, 0));
    for span in [Span::new(i64::MIN, i64::MAX), Span::new(i64::MAX, i64::MAX), Span::new(-5, -9)] {
        builder.open(frame, Status::NONE, span);
        builder.close();
    }
    let text = Svg::new(&builder.finish().unwrap()).width(0).to_text();
    Document::parse(&text).unwrap();
}

#[test]
fn colours_of_the_readers_own() {
    let graph = fine();
    let swatch = |light: u8| Swatch { light: [light; 3], dark: [255; 3], meaning: format!("<{light}>") };
    // Numbers of swatches that are not there are the last one.
    let paint = Paint::new(vec![swatch(0), swatch(7)], |_, node| if node.depth == 0 { 0 } else { 9 });
    let paint = paint.notes(|_, node| (node.depth == 0).then(|| "a & b".to_owned()));
    let text = Svg::new(&graph).paint(paint.clone()).to_text();
    assert!(text.contains(".a{fill:#000}.a+text{fill:#fff}"), "white ink on black");
    assert!(text.contains("\na &amp; b</title>") && text.contains(">&lt;7&gt; 100 %</text>"));
    let page = Page::new("").view("", &graph).paint(paint).to_text();
    assert!(page.contains(r##"["#000","#fff","\u003c0\u003e"],["#070707","#fff","\u003c7\u003e"]"##));
    let none = Svg::new(&graph).paint(Paint::whole(|_| Painted::default())).to_text();
    Document::parse(&none).unwrap();
}

#[test]
fn dynamic_calls_have_a_mark_and_no_colour_of_their_own() {
    let drawn = |status| {
        let mut builder = GraphBuilder::default();
        let frame = builder.frame(&Frame::unknown(0));
        builder.open(frame, Status::DISPATCH, Span::new(1, 10));
        let frame = builder.frame(&rust("app::eval"));
        builder.open(frame, status, Span::new(1, 10));
        let graph = builder.finish().unwrap();
        (Paint::default().paint(&graph), Svg::new(&graph).to_text())
    };
    let ((plain, _), (called, text)) = (drawn(Status::NONE), drawn(Status::DISPATCH));
    assert_eq!(plain.boxes, called.boxes);
    assert_eq!(text.matches("<path class=\"D\"").count(), 2, "the box and the legend, but not the root");
    assert!(text.contains(">dynamic call</text>"));
}

#[test]
fn labels_have_shares_and_lines_where_boxes_stand_for_lines() {
    let mut builder = GraphBuilder::default();
    let root = builder.frame(&Frame::unknown(0));
    builder.open(root, Status::NONE, Span::new(1, 100));
    for (line, from, to) in [(3, 1, 60), (8, 61, 100)] {
        let frame = builder.frame(&Frame { line, file: "/src/main.rs".into(), ..rust("app::work") });
        builder.open_at(1, frame, Status::NONE, Span::new(from, to));
    }
    let graph = builder.finish().unwrap();
    let lines = Svg::new(&graph).by_line(true).to_text();
    assert!(lines.contains(">app::work:3  60.0 %</text>") && lines.contains(">app::work:8  40.0 %</text>"));
    let functions = Svg::new(&graph.by_function()).to_text();
    assert!(
        functions.contains(">app::work  100 %</text>")
            && functions.contains("<title>app::work\n/src/main.rs\n")
    );
    assert!(functions.contains(">all</text>"), "the root has no share");
}

#[test]
fn narrow_boxes_are_in_the_file_for_zooms() {
    let mut builder = GraphBuilder::default();
    let frame = builder.frame(&rust("wide"));
    builder.open(frame, Status::NONE, Span::new(1, 1_000_000));
    for (name, from, to) in [("narrow", 1, 200), ("none", 201, 201), ("next", 202, 400)] {
        let frame = builder.frame(&rust(name));
        builder.open_at(1, frame, Status::MEMORY, Span::new(from, to));
    }
    let graph = builder.finish().unwrap();
    let text = Svg::new(&graph).to_text();
    let picture = Document::parse(&text).unwrap();
    assert_eq!(boxes(&picture).len(), 2, "the root and the hatched box are drawn");
    let hidden = |still: &str| still.matches("><title>n").count();
    assert_eq!(hidden(&text), 2);
    assert!(text.contains(" data-s=\"201 199\" data-m=\"M\"><title>next\n"));
    assert!(text.contains("<path class=\"Z\" data-s=\"200 1 1 1\"/>"), "what is left out");
    assert_eq!(hidden(&Svg::new(&graph).script(false).to_text()), 0);
}
