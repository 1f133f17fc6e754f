//! Flame graphs as SVG: static, self-contained, with tooltips, and in the theme of the surrounding page.
//!
//! Files are small: a box is one path, and rows and colours are defined once. Boxes narrower than a pixel are merged into
//! hatched boxes with their number.

use crate::frame_captions::FrameCaptions;
use crate::paint::{Painted, hex, wants_black};
use crate::{Graph, Node, NodeId, Paint, Status, captions};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Points from one row to the next.
const ROW: usize = 17;
/// Width of a character of labels, which have 11 points.
const LETTER: f64 = 6.62;
/// Margin left and right of the boxes.
const MARGIN: usize = 8;

/// The options of an SVG picture.
#[derive(Debug)]
pub struct Svg<'a> {
    graph: &'a Graph,
    title: String,
    unit: String,
    width: usize,
    icicle: bool,
    paint: Paint<'a>,
    most_rows: u32,
}

/// What all boxes need while drawing.
struct Drawing<'a> {
    /// By swatch: the name of its class.
    classes: Vec<String>,
    /// By node: its own samples.
    own: Vec<u64>,
    captions: FrameCaptions<'a>,
}

/// A box of a row, in tenths of points from the left.
struct DrawnBox {
    left: i64,
    right: i64,
    kind: BoxKind,
}

enum BoxKind {
    Node(NodeId),
    /// Boxes that are too small or too deep, merged.
    Merged {
        boxes: u64,
        samples: u64,
    },
}

/// Adjacent boxes that are merged, in tenths of points from the left.
#[derive(Clone, Copy)]
struct MergedRun {
    left: f64,
    right: f64,
    boxes: u64,
    samples: u64,
}

impl<'a> Svg<'a> {
    /// A graph with its root at the bottom, 1200 points wide.
    pub fn new(graph: &'a Graph) -> Svg<'a> {
        let (title, unit) = ("Flame graph".to_owned(), "samples".to_owned());
        Svg { graph, title, unit, width: 1200, icicle: false, paint: Paint::default(), most_rows: u32::MAX }
    }

    /// The title above the picture.
    pub fn title(mut self, title: impl Into<String>) -> Svg<'a> {
        self.title = title.into();
        self
    }

    /// The unit of the cost axis, `samples` by default. Boxes show its first word only.
    pub fn unit(mut self, unit: impl Into<String>) -> Svg<'a> {
        self.unit = unit.into();
        self
    }

    /// Width of the picture in points, at least 100.
    pub fn width(mut self, points: usize) -> Svg<'a> {
        self.width = points.max(100);
        self
    }

    /// Puts the root on top.
    pub fn icicle(mut self, icicle: bool) -> Svg<'a> {
        self.icicle = icicle;
        self
    }

    /// Other colours.
    pub fn paint(mut self, paint: Paint<'a>) -> Svg<'a> {
        self.paint = paint;
        self
    }

    /// Maximum number of rows. Deeper boxes are merged like small ones.
    pub fn most_rows(mut self, rows: u32) -> Svg<'a> {
        self.most_rows = rows.max(2);
        self
    }

    /// Writes the picture.
    ///
    /// # Errors
    /// The errors of `out`.
    pub fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        let (rows, painted) = (self.rows(), self.paint.paint(self.graph));
        let used: BTreeSet<usize> =
            rows.iter().flatten().filter_map(|drawn| swatch(&painted, drawn)).collect();
        let merged = rows.iter().flatten().any(|drawn| matches!(drawn.kind, BoxKind::Merged { .. }));
        let (legend, legend_rows) = self.legend(&painted, &used, merged);
        let (width, top) = (self.width, 34);
        let height = top + rows.len() * ROW + 10 + legend_rows * ROW;
        let title = captions::harmless(&self.title);
        let title = captions::markup(&title);
        write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\"><title>{title}</title>\n<style>{}</style>\n",
            style(&painted, &used)
        )?;
        out.write_all(DEFINITIONS.as_bytes())?;
        let total = captions::counted(self.graph.root().span.len(), &self.unit);
        let heading = captions::label(&self.title, (width - 2 * MARGIN) * 10 / 72).unwrap_or_default();
        let heading = captions::harmless(&heading);
        writeln!(out, "<text class=\"T\" x=\"{MARGIN}\" y=\"20\">{}</text>", captions::markup(&heading))?;
        if heading.len() * 8 + total.len() * 7 + 120 < width {
            let (x, total) = (width - MARGIN, captions::markup(&total));
            writeln!(out, "<text class=\"I\" text-anchor=\"end\" x=\"{x}\" y=\"20\">{total}</text>")?;
        }
        let drawing = Drawing {
            classes: (0..painted.swatches.len()).map(class).collect(),
            own: self.graph.own(),
            captions: FrameCaptions::new(self.graph),
        };
        let mut text = String::new();
        for (depth, row) in rows.iter().enumerate() {
            let down = if self.icicle { depth + 1 } else { rows.len() - depth };
            text.clear();
            let _ = writeln!(text, "<g transform=\"translate({MARGIN} {})\">", top + down * ROW - 4);
            row.iter().for_each(|drawn| self.draw(&mut text, drawn, &painted, &drawing));
            text += "</g>\n";
            out.write_all(text.as_bytes())?;
        }
        writeln!(
            out,
            "<g transform=\"translate({MARGIN} {})\">{legend}</g>",
            top + (rows.len() + 1) * ROW + 2
        )?;
        out.write_all(b"</svg>\n")
    }

    /// The picture as a string.
    pub fn to_text(&self) -> String {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes).expect("memory takes everything");
        String::from_utf8(bytes).expect("all that is written is text")
    }

    /// The x coordinate of a position on the cost axis, in tenths of points.
    fn x(&self, position: i64) -> f64 {
        let root = self.graph.root().span;
        let share = (position as f64 - root.start() as f64) / (root.len().max(1)) as f64;
        share.clamp(0.0, 1.0) * ((self.width - 2 * MARGIN) * 10) as f64
    }

    /// The boxes to draw, by row, from left to right.
    fn rows(&self) -> Vec<Vec<DrawnBox>> {
        let nodes = self.graph.nodes();
        let mut rows: Vec<Vec<DrawnBox>> = Vec::new();
        // By row: the run of merged boxes so far.
        let mut runs: Vec<Option<MergedRun>> = vec![None];
        let mut number = 0;
        while let Some(node) = nodes.get(number) {
            let depth = node.depth as usize;
            let (left, right) = (self.x(node.span.start()), self.x(node.span.stop().saturating_add(1)));
            if rows.len() <= depth {
                rows.resize_with(depth + 1, Vec::new);
                runs.resize(depth + 2, None);
            }
            if (right - left < 10.0 || node.depth + 1 >= self.most_rows) && depth > 0 {
                let (boxes, samples) = (u64::from(node.end) - number as u64, node.span.len());
                match &mut runs[depth] {
                    Some(run) if left <= run.right + 10.0 && left >= run.left => {
                        run.right = run.right.max(right);
                        run.boxes += boxes;
                        run.samples += samples;
                    }
                    run => {
                        rows[depth]
                            .extend(run.replace(MergedRun { left, right, boxes, samples }).map(merged));
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
            rows[depth].push(DrawnBox {
                left: left.round() as i64,
                right: right.round() as i64,
                kind: BoxKind::Node(number as NodeId),
            });
            number += 1;
        }
        for (row, run) in rows.iter_mut().zip(runs) {
            row.extend(run.map(merged));
        }
        rows
    }

    fn node(&self, number: NodeId) -> &Node {
        &self.graph.nodes()[number as usize]
    }

    fn draw(&self, text: &mut String, drawn: &DrawnBox, painted: &Painted, drawing: &Drawing<'_>) {
        let (left, width) = (Tenths(drawn.left), Tenths(drawn.right - drawn.left));
        let class = swatch(painted, drawn).map_or("Z", |number| &drawing.classes[number]);
        let _ = write!(text, "<path class=\"{class}\" d=\"M{left} 4v-16h{width}v16z\"><title>");
        let number = match drawn.kind {
            BoxKind::Merged { boxes, samples } => {
                let total = self.graph.root().span.len();
                let (count, s) = (captions::thousands(boxes), if boxes == 1 { "box" } else { "boxes" });
                let share = captions::percent(samples, total);
                let samples = captions::counted(samples, captions::word(&self.unit));
                let samples = captions::markup(&samples);
                let _ = writeln!(text, "{count} {s} left out, {samples}, {share}</title></path>");
                return;
            }
            BoxKind::Node(number) => number,
        };
        let node = self.node(number);
        let caption = drawing.captions.of(node);
        text.push_str(&caption.markup);
        self.add_details(text, node, drawing.own[number as usize]);
        text.push_str("</title></path>");
        let columns = (drawn.right - drawn.left - 50) as f64 / 10.0 / LETTER;
        if let Some(label) = captions::label(&caption.name, columns.max(0.0) as usize) {
            let x = Tenths(drawn.left + 30);
            let _ = write!(text, "<text x=\"{x}\">{}</text>", captions::markup(&label));
        }
        if let Some(mark) = mark(node.status) {
            let _ = write!(text, "<path class=\"{mark}\" d=\"M{left} 3.2h{width}\"/>");
        }
        text.push('\n');
    }

    /// Adds the details of a tooltip below name and location.
    fn add_details(&self, text: &mut String, node: &Node, own: u64) {
        let (samples, total) = (node.span.len(), self.graph.root().span.len());
        let counted = captions::counted(samples, captions::word(&self.unit));
        let _ = write!(text, "\n{}, {}", captions::markup(&counted), captions::percent(samples, total));
        if own > 0 {
            let _ = write!(text, ", own {}, {}", captions::thousands(own), captions::percent(own, total));
        }
        if let Some(note) = self.paint.note(self.graph, node) {
            let _ = write!(text, "\n{}", captions::markup(&captions::harmless(&note)));
        }
        for (_, meaning) in captions::BITS.iter().filter(|(bit, _)| node.status.any(*bit)) {
            let _ = write!(text, "\n{meaning}");
        }
    }

    /// The legend of the colours and marks in use, and its number of rows.
    fn legend(&self, painted: &Painted, used: &BTreeSet<usize>, merged: bool) -> (String, usize) {
        let mut entries: Vec<(String, String, Option<&str>)> = Vec::new();
        for number in used {
            let meaning = &painted.swatches[*number].meaning;
            if !meaning.is_empty() && entries.iter().all(|(_, text, _)| text != meaning) {
                let mark =
                    captions::BITS.iter().find(|(_, text)| text == meaning).and_then(|(bit, _)| mark(*bit));
                entries.push((class(*number), meaning.clone(), mark));
            }
        }
        for (bit, meaning) in captions::BITS {
            let there = || self.graph.nodes().iter().any(|node| node.status.any(bit));
            if entries.iter().all(|(_, text, _)| text != meaning) && there() {
                entries.push(("N".to_owned(), meaning.to_owned(), mark(bit)));
            }
        }
        if merged {
            entries.push(("Z".to_owned(), "details left out".to_owned(), None));
        }
        let (mut x, mut y, mut text) = (0, 0, String::new());
        for (class, meaning, mark) in &entries {
            let needs = 34 + meaning.chars().count() * 7;
            if x > 0 && x + needs > self.width - 2 * MARGIN {
                (x, y) = (0, y + ROW);
            }
            let _ = write!(text, "<path class=\"{class}\" d=\"M{x} {}v-12h18v12z\"/>", y + 3);
            let label = x + 23;
            let _ = write!(
                text,
                "<text x=\"{label}\" y=\"{y}\">{}</text>",
                captions::markup(&captions::harmless(meaning))
            );
            if let Some(mark) = mark {
                let _ = write!(text, "<path class=\"{mark}\" d=\"M{x} {}.5h18\"/>", y + 1);
            }
            x += needs;
        }
        (text, y / ROW + 1)
    }
}

fn swatch(painted: &Painted, drawn: &DrawnBox) -> Option<usize> {
    match drawn.kind {
        BoxKind::Node(number) => Some(painted.boxes[number as usize]),
        BoxKind::Merged { .. } => None,
    }
}

/// The style rules of the colours in use.
fn style(painted: &Painted, used: &BTreeSet<usize>) -> String {
    let mut style = STYLE.to_owned();
    let colors = |style: &mut String, dark: bool| {
        for number in used {
            let swatch = &painted.swatches[*number];
            let color = if dark { swatch.dark } else { swatch.light };
            let class = class(*number);
            let _ = write!(style, ".{class}{{fill:{}}}", hex(color));
            // Text is black in the light theme and white in the dark one, except on some colours.
            if wants_black(color) == dark {
                let _ = write!(style, ".{class}+text{{fill:{}}}", if dark { "#000" } else { "#fff" });
            }
        }
    };
    colors(&mut style, false);
    style += STYLE_DARK;
    colors(&mut style, true);
    style.push('}');
    style
}

/// The class of the mark of status bits, for readers who cannot see the colours.
fn mark(status: Status) -> Option<&'static str> {
    if status.any(Status::DISPATCH) {
        Some("D")
    } else if status.any(Status::MEMORY) {
        Some("M")
    } else if status.any(Status::RUNTIME) {
        Some("R")
    } else {
        None
    }
}

fn merged(MergedRun { left, right, boxes, samples }: MergedRun) -> DrawnBox {
    // At least one point wide, so that it can be seen and hovered.
    let (left, right) = (left.floor() as i64, right.max(left + 10.0).round() as i64);
    DrawnBox { left, right, kind: BoxKind::Merged { boxes, samples } }
}

/// Name of the class of a swatch: a, b, … z, ba, bb, …
fn class(mut number: usize) -> String {
    let mut letters = Vec::new();
    loop {
        letters.push(b'a' + (number % 26) as u8);
        number /= 26;
        if number == 0 {
            break;
        }
    }
    letters.iter().rev().map(|letter| char::from(*letter)).collect()
}

/// Tenths of points, displayed without `.0`.
struct Tenths(i64);

impl std::fmt::Display for Tenths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 % 10 {
            0 => write!(f, "{}", self.0 / 10),
            tenth => write!(f, "{}.{}", self.0 / 10, tenth.abs()),
        }
    }
}

/// Classes in capitals: T title, I total, Z merged boxes (G ground, H hatching), N no colour, D M R marks of status bits.
const STYLE: &str = "svg{background:#fff;font:11px ui-monospace,Menlo,Consolas,monospace}\
    text{pointer-events:none;fill:#000;white-space:pre}.T{font:600 14px system-ui,sans-serif}\
    path{stroke:#fff;stroke-width:.6}path:hover{stroke:#000;stroke-width:1.2}.Z{fill:url(#z)}.H{stroke:#c4c4c4;stroke-width:1;fill:none}.G{fill:#f2f2f2;stroke:none}.N{fill:none}\
    .D,.M,.R{stroke:#a00016;stroke-width:1.5;fill:none;stroke-dasharray:5 3;pointer-events:none}\
    .M{stroke:#6a1b7c;stroke-dasharray:none}.R{stroke:#555;stroke-dasharray:1 3}";
/// The rules of the dark theme, with an open bracket.
const STYLE_DARK: &str = "@media(prefers-color-scheme:dark){svg{background:#171717}text{fill:#fff}path{stroke:#171717}\
    path:hover{stroke:#fff}.D{stroke:#ff9c9c}.M{stroke:#e8b3f5}.R{stroke:#bbb}.H{stroke:#4d4d4d}.G{fill:#242424}";
/// The hatching of merged boxes.
const DEFINITIONS: &str = "<defs><pattern id=\"z\" width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\">\
    <path class=\"G\" d=\"M0 0h4v4h-4z\"/><path d=\"M-1 1l2-2M0 4l4-4M3 5l2-2\" class=\"H\"/></pattern></defs>\n";
