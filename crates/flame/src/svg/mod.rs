//! Flame graphs as SVG: self-contained, with tooltips, and in the theme of the surrounding page.
//!
//! Files are small: a box is one path, and rows and colours are defined once. Boxes narrower than a point are merged into
//! hatched boxes with their number. The picture is complete without scripts. Where a browser opens the file, a script zooms
//! into it and searches (`script.js`); for zooms the file also has narrower boxes, which are not drawn.

mod rows;
mod style;

use crate::captions::{self, Mark};
use crate::frame_captions::FrameCaptions;
use crate::legend::{self, Entry, Sample};
use crate::paint::Painted;
use crate::{Graph, NodeId, Paint};
use rows::{BoxKind, Detail, DrawnBox, Run};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write};
use style::class;

/// Points from one row to the next.
const ROW: usize = 17;
/// Width of a character of labels, which have 11 points.
const LETTER: f64 = 6.62;
/// Margin left and right of the boxes.
const MARGIN: usize = 8;
/// Height of the heading.
const TOP: usize = 34;

/// A script can zoom to boxes of this share of the whole picture, as in inferno's pictures, but not to more boxes than this.
const LEAST_SHARE: f64 = 0.0001;
const MOST_BOXES: usize = 20_000;

/// The options of an SVG picture.
#[derive(Debug)]
pub struct Svg<'a> {
    graph: &'a Graph,
    title: String,
    unit: String,
    width: usize,
    icicle: bool,
    by_line: bool,
    script: bool,
    paint: Paint<'a>,
    most_rows: u32,
}

/// What all boxes need while drawing.
struct Drawing<'a> {
    painted: Painted,
    /// By swatch: the name of its class.
    classes: Vec<String>,
    /// By node: its own samples.
    own: Vec<u64>,
    captions: FrameCaptions<'a>,
}

impl<'a> Svg<'a> {
    /// A graph with its root at the bottom, 1200 points wide, with a script.
    pub fn new(graph: &'a Graph) -> Svg<'a> {
        Svg {
            graph,
            title: "Flame graph".to_owned(),
            unit: "samples".to_owned(),
            width: 1200,
            icicle: false,
            by_line: false,
            script: true,
            paint: Paint::default(),
            most_rows: u32::MAX,
        }
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

    /// Labels boxes with their lines, for graphs in which a box stands for a line of a function.
    pub fn by_line(mut self, by_line: bool) -> Svg<'a> {
        self.by_line = by_line;
        self
    }

    /// Whether the picture zooms and searches where a browser opens it. It does by default.
    pub fn script(mut self, script: bool) -> Svg<'a> {
        self.script = script;
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
        let painted = self.paint.paint(self.graph);
        let rows = self.detail(10.0).rows(self.graph);
        let hidden = if self.script { self.hidden_rows(&rows) } else { Vec::new() };
        let legend = legend::entries(self.graph, &painted, self.paint.has_shares());
        let mut used: BTreeSet<usize> = rows
            .iter()
            .chain(&hidden)
            .flatten()
            .filter_map(|drawn| match drawn.kind {
                BoxKind::Node(number) => Some(painted.boxes[number as usize]),
                BoxKind::Merged(_) => None,
            })
            .collect();
        used.extend(legend.iter().filter_map(|entry| match entry.sample {
            Sample::Swatch(number) => Some(number),
            Sample::Others | Sample::Nothing => None,
        }));
        let merges = rows.iter().flatten().any(|drawn| matches!(drawn.kind, BoxKind::Merged(_)));
        let (legend, legend_rows) = self.legend(legend, merges);
        let width = self.width;
        let height = TOP + rows.len() * ROW + 10 + legend_rows * ROW;
        let title = captions::sanitize(&self.title);
        let title = captions::markup(&title);
        let by_line = if self.script && self.by_line { " data-by=\"line\"" } else { "" };
        let unit = captions::sanitize(captions::word(&self.unit));
        let unit =
            if self.script { format!(" data-unit=\"{}\"", captions::markup(&unit)) } else { String::new() };
        write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\"{unit}{by_line}><title>{title}</title>\n<style>{}</style>\n",
            style::rules(&painted, &used)
        )?;
        out.write_all(style::DEFINITIONS.as_bytes())?;
        self.write_heading(out)?;
        let drawing = Drawing {
            classes: (0..painted.swatches.len()).map(class).collect(),
            own: self.graph.own(),
            captions: FrameCaptions::new(self.graph),
            painted,
        };
        let mut text = String::new();
        for (depth, row) in rows.iter().enumerate() {
            let down = if self.icicle { depth + 1 } else { rows.len() - depth };
            text.clear();
            let _ =
                writeln!(text, "<g class=\"r\" transform=\"translate({MARGIN} {})\">", TOP + down * ROW - 4);
            row.iter().for_each(|drawn| self.draw(&mut text, drawn, &drawing));
            hidden.get(depth).into_iter().flatten().for_each(|drawn| self.hide(&mut text, drawn, &drawing));
            text += "</g>\n";
            out.write_all(text.as_bytes())?;
        }
        let below = TOP + (rows.len() + 1) * ROW + 2;
        writeln!(out, "<g class=\"L\" transform=\"translate({MARGIN} {below})\">{legend}</g>")?;
        if self.script {
            writeln!(out, "<script>{}</script>", captions::markup(&script()))?;
        }
        out.write_all(b"</svg>\n")
    }

    /// The picture as a string.
    pub fn to_text(&self) -> String {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes).expect("memory takes everything");
        String::from_utf8(bytes).expect("all that is written is text")
    }

    /// Title and total.
    fn write_heading(&self, out: &mut impl Write) -> io::Result<()> {
        let room = self.width - 2 * MARGIN;
        let total = captions::counted(self.graph.root().span.len(), &self.unit);
        // Letters of the title are wider than those of labels.
        let title = captions::label(&self.title, room * 10 / 80).unwrap_or_default();
        let title = captions::sanitize(&title);
        let fits = title.chars().count() * 8 + total.chars().count() * 7 + 24 <= room;
        writeln!(out, "<text class=\"T\" x=\"{MARGIN}\" y=\"20\">{}</text>", captions::markup(&title))?;
        if fits || self.script {
            // The script shows it where there is room.
            let hidden = if fits { "" } else { " visibility=\"hidden\"" };
            let (x, total) = (self.width - MARGIN, captions::markup(&total));
            writeln!(out, "<text class=\"I\" text-anchor=\"end\" x=\"{x}\" y=\"20\"{hidden}>{total}</text>")?;
        }
        Ok(())
    }

    fn detail(&self, least: f64) -> Detail {
        Detail { width: ((self.width - 2 * MARGIN) * 10) as f64, least, most_rows: self.most_rows }
    }

    /// The boxes for zooms, by row: those that are too narrow in the whole picture, and runs of those that are left out.
    fn hidden_rows(&self, rows: &[Vec<DrawnBox>]) -> Vec<Vec<DrawnBox>> {
        let mut detail = self.detail(0.0);
        detail.least = detail.width * LEAST_SHARE;
        while detail.least < 10.0 && detail.count(self.graph) > MOST_BOXES {
            detail.least *= 2.0;
        }
        detail.least = detail.least.min(10.0);
        let mut drawn = vec![false; self.graph.nodes().len()];
        for row in rows.iter().flatten() {
            if let BoxKind::Node(number) = row.kind {
                drawn[number as usize] = true;
            }
        }
        let mut fine = detail.rows(self.graph);
        for row in &mut fine {
            row.retain(|of| !matches!(of.kind, BoxKind::Node(number) if drawn[number as usize]));
        }
        fine.resize_with(rows.len(), Vec::new);
        fine
    }

    fn draw(&self, text: &mut String, drawn: &DrawnBox, drawing: &Drawing<'_>) {
        let (left, width) = (Tenths(drawn.left), Tenths(drawn.right - drawn.left));
        let number = match drawn.kind {
            BoxKind::Merged(run) => {
                let _ = write!(text, "<path class=\"Z\" d=\"M{left} 4v-16h{width}v16z\"><title>");
                let (boxes, s) =
                    (captions::thousands(run.boxes), if run.boxes == 1 { "box" } else { "boxes" });
                let samples = captions::counted(run.samples, captions::word(&self.unit));
                let share = captions::percent(run.samples, self.graph.root().span.len());
                let samples = captions::markup(&samples);
                let _ = writeln!(text, "{boxes} {s} left out, {samples}, {share}</title></path>");
                return;
            }
            BoxKind::Node(number) => number,
        };
        let node = &self.graph.nodes()[number as usize];
        let class = &drawing.classes[drawing.painted.boxes[number as usize]];
        let _ = write!(
            text,
            "<path class=\"{class}\" d=\"M{left} 4v-16h{width}v16z\"{}><title>",
            self.data(number)
        );
        self.add_details(text, number, drawing);
        text.push_str("</title></path>");
        let columns = (drawn.right - drawn.left - 50) as f64 / 10.0 / LETTER;
        let name = &drawing.captions.of(node).name;
        let label = captions::node_label(self.graph, node, name, self.by_line, columns.max(0.0) as usize);
        if !label.is_empty() {
            let x = Tenths(drawn.left + 30);
            let _ = write!(text, "<text x=\"{x}\">{}</text>", captions::markup(&label));
        }
        if let Some(Mark { class, .. }) = captions::mark(node) {
            let _ = write!(text, "<path class=\"{class}\" d=\"M{left} 3.2h{width}\"/>");
        }
        text.push('\n');
    }

    /// Adds a box for zooms, which is not drawn.
    fn hide(&self, text: &mut String, drawn: &DrawnBox, drawing: &Drawing<'_>) {
        match drawn.kind {
            BoxKind::Merged(Run { start, end, boxes, samples, .. }) => {
                let len = end.saturating_sub(start);
                let _ = writeln!(text, "<path class=\"Z\" data-s=\"{start} {len} {boxes} {samples}\"/>");
            }
            BoxKind::Node(number) => {
                let class = &drawing.classes[drawing.painted.boxes[number as usize]];
                let _ = write!(text, "<path class=\"{class}\"{}><title>", self.data(number));
                self.add_details(text, number, drawing);
                text.push_str("</title></path>\n");
            }
        }
    }

    /// What the script reads of a box: where it begins on the cost axis, its samples, and its mark.
    fn data(&self, number: NodeId) -> String {
        if !self.script {
            return String::new();
        }
        let (node, root) = (&self.graph.nodes()[number as usize], self.graph.root());
        let start = node.span.start().saturating_sub(root.span.start());
        let mark = captions::mark(node).map_or(String::new(), |mark| format!(" data-m=\"{}\"", mark.class));
        format!(" data-s=\"{start} {}\"{mark}", node.span.len())
    }

    /// Adds the tooltip of a box: name, place, samples, note, status bits.
    fn add_details(&self, text: &mut String, number: NodeId, drawing: &Drawing<'_>) {
        let (node, own) = (&self.graph.nodes()[number as usize], drawing.own[number as usize]);
        text.push_str(&drawing.captions.of(node).markup);
        let (samples, total) = (node.span.len(), self.graph.root().span.len());
        let counted = captions::counted(samples, captions::word(&self.unit));
        let _ = write!(text, "\n{}, {}", captions::markup(&counted), captions::percent(samples, total));
        if own > 0 {
            let _ = write!(text, ", own {}, {}", captions::thousands(own), captions::percent(own, total));
        }
        if let Some(note) = self.paint.note(self.graph, node) {
            let _ = write!(text, "\n{}", captions::markup(&captions::sanitize(&note)));
        }
        for mark in captions::MARKS.iter().filter(|mark| captions::bits(node).any(mark.bit)) {
            let _ = write!(text, "\n{}", mark.meaning);
        }
    }

    /// The legend of the colours and marks in use, and its number of rows.
    fn legend(&self, entries: Vec<Entry>, merges: bool) -> (String, usize) {
        let mut entries: Vec<(String, String, Option<&str>)> = entries
            .into_iter()
            .map(|entry| {
                let class = match entry.sample {
                    Sample::Swatch(number) => class(number),
                    Sample::Others | Sample::Nothing => "N".to_owned(),
                };
                (class, entry.text, entry.mark.map(|mark| mark.class))
            })
            .collect();
        let depth = self.graph.depth();
        let cut = match self.most_rows as usize {
            rows if depth > rows => {
                let [rows, depth] = [rows, depth].map(|number| captions::thousands(number as u64));
                format!("; {rows} of {depth} levels are drawn")
            }
            _ => String::new(),
        };
        if merges {
            entries.push(("Z".to_owned(), format!("details left out{cut}"), None));
        }
        let (mut x, mut y, mut text) = (0, 0, String::new());
        for (class, meaning, mark) in &entries {
            let needs = 34 + meaning.chars().count() * 7;
            if x > 0 && x + needs > self.width - 2 * MARGIN {
                (x, y) = (0, y + ROW);
            }
            let _ = write!(text, "<g class=\"k\" transform=\"translate({x} {y})\">");
            let _ = write!(text, "<path class=\"{class}\" d=\"M0 3v-12h18v12z\"/>");
            if let Some(mark) = mark {
                let _ = write!(text, "<path class=\"{mark}\" d=\"M0 1.5h18\"/>");
            }
            let meaning = captions::sanitize(meaning);
            let _ = write!(text, "<text x=\"23\">{}</text></g>", captions::markup(&meaning));
            x += needs;
        }
        (text, y / ROW + 1)
    }
}

/// The script without comments and indentation.
fn script() -> String {
    let scripts = [include_str!("../html/page/names.js"), include_str!("script.js")];
    let lines = scripts.iter().flat_map(|script| script.lines()).map(str::trim_start);
    let mut script = "(() => {\n".to_owned();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with("//")) {
        script += line;
        script.push('\n');
    }
    script + "})();"
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
