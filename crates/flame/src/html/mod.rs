//! Flame graphs as one self-contained HTML page: no server, no network, no other file.
//!
//! The viewer in `page/` is plain JavaScript and CSS and is embedded unchanged. The graphs are embedded as numbers and names
//! (`pack.rs`). A content security policy forbids other scripts and all requests, so that names cannot inject code. Without
//! JavaScript the page shows a static picture.

mod pack;

use crate::paint::hex;
use crate::{Graph, Paint, Svg, captions};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use pack::Packer;
use sha2::{Digest, Sha256};
use std::io::{self, Write};

/// The scripts of the viewer, in order.
const SCRIPTS: [&str; 18] = [
    include_str!("page/work.js"),
    include_str!("page/data.js"),
    include_str!("page/merged.js"),
    include_str!("page/changes.js"),
    include_str!("page/inverted.js"),
    include_str!("page/names.js"),
    include_str!("page/format.js"),
    include_str!("page/search.js"),
    include_str!("page/picture.js"),
    include_str!("page/export.js"),
    include_str!("page/links.js"),
    include_str!("page/state.js"),
    include_str!("page/keys.js"),
    include_str!("page/view.js"),
    include_str!("page/legend.js"),
    include_str!("page/pointer.js"),
    include_str!("page/print.js"),
    include_str!("page/page.js"),
];
const STYLE: &str = include_str!("page/page.css");
/// Number of rows of the static picture.
const STILL_ROWS: u32 = 200;
const BODY: &str = include_str!("page/body.html");

/// A page with flame graphs, for example one for each thread and task.
///
/// ```
/// use stackglass_flame::{GraphBuilder, Page, Span, Status};
/// use stackglass_profile::Frame;
///
/// let mut builder = GraphBuilder::default();
/// let frame = builder.frame(&Frame::unknown(0));
/// builder.open(frame, Status::NONE, Span::new(1, 10));
/// let graph = builder.finish().unwrap();
/// let page = Page::new("rg").view("all threads", &graph).view("thread 1", &graph).to_text();
/// assert!(page.starts_with("<!doctype html>"));
/// ```
#[derive(Debug)]
pub struct Page<'a> {
    title: String,
    unit: String,
    wall_unit: String,
    views: Vec<PageView<'a>>,
    still: Option<&'a Graph>,
    icicle: bool,
    inverted: bool,
    wall: bool,
    by_line: bool,
    foreign: bool,
    schemes: Vec<(String, Paint<'a>)>,
    difference: Option<[f64; 2]>,
}

/// Graphs of one thread, task, or of everything.
#[derive(Debug)]
struct PageView<'a> {
    label: String,
    /// `None` if there are samples asleep only.
    graph: Option<&'a Graph>,
    asleep: Option<&'a Graph>,
    apart: bool,
}

/// Most colour schemes of a page.
const MOST_SCHEMES: usize = 4;

impl<'a> Page<'a> {
    /// A page without graphs.
    pub fn new(title: impl Into<String>) -> Page<'a> {
        Page {
            title: title.into(),
            unit: "samples".to_owned(),
            wall_unit: "samples".to_owned(),
            views: Vec::new(),
            still: None,
            icicle: false,
            inverted: false,
            wall: false,
            by_line: false,
            foreign: true,
            schemes: vec![(String::new(), Paint::default())],
            difference: None,
        }
    }

    /// Adds a graph with a label. The first graph is shown first.
    pub fn view(mut self, label: impl Into<String>, graph: &'a Graph) -> Page<'a> {
        self.views.push(PageView { label: label.into(), graph: Some(graph), asleep: None, apart: false });
        self
    }

    /// Adds graphs of the same threads: their samples on a CPU and asleep. The page can show both together.
    pub fn view_with_asleep(
        mut self,
        label: impl Into<String>,
        graph: Option<&'a Graph>,
        asleep: Option<&'a Graph>,
    ) -> Page<'a> {
        self.views.push(PageView { label: label.into(), graph, asleep, apart: false });
        self
    }

    /// Adds a graph of something else than the first graph, for example of another event: it is no share of that.
    pub fn view_apart(mut self, label: impl Into<String>, graph: &'a Graph) -> Page<'a> {
        self.views.push(PageView { label: label.into(), graph: Some(graph), asleep: None, apart: true });
        self
    }

    /// The graph for readers without JavaScript; the first graph by default.
    pub fn still(mut self, graph: &'a Graph) -> Page<'a> {
        self.still = Some(graph);
        self
    }

    /// The unit of the cost axis, `samples` by default. Boxes show its first word only.
    pub fn unit(mut self, unit: impl Into<String>) -> Page<'a> {
        self.unit = unit.into();
        self
    }

    /// The unit of the cost axis where samples asleep count as well.
    pub fn wall_unit(mut self, unit: impl Into<String>) -> Page<'a> {
        self.wall_unit = unit.into();
        self
    }

    /// Initially shows samples asleep as well.
    pub fn wall(mut self, wall: bool) -> Page<'a> {
        self.wall = wall;
        self
    }

    /// Initially shows a box for each line of a function, not one for the function.
    pub fn by_line(mut self, by_line: bool) -> Page<'a> {
        self.by_line = by_line;
        self
    }

    /// Initially shows foreign frames, as is the default. The page can hide and show them.
    pub fn foreign(mut self, foreign: bool) -> Page<'a> {
        self.foreign = foreign;
        self
    }

    /// The first two graphs are those of a [`Difference`](crate::Difference), the later one first. The page computes changes
    /// from these numbers, also for the inverted graphs and for a graph of both.
    pub fn difference(mut self, factor: f64, spread: f64) -> Page<'a> {
        self.difference = Some([factor, spread]);
        self
    }

    /// Initially shows the root at the top.
    pub fn icicle(mut self, icicle: bool) -> Page<'a> {
        self.icicle = icicle;
        self
    }

    /// Initially shows the inverted graph.
    pub fn inverted(mut self, inverted: bool) -> Page<'a> {
        self.inverted = inverted;
        self
    }

    /// Other colours.
    pub fn paint(mut self, paint: Paint<'a>) -> Page<'a> {
        self.schemes = vec![(String::new(), paint)];
        self
    }

    /// Colour schemes by name, at most four. The first is shown first.
    pub fn schemes(mut self, schemes: Vec<(String, Paint<'a>)>) -> Page<'a> {
        if !schemes.is_empty() {
            self.schemes = schemes;
            self.schemes.truncate(MOST_SCHEMES);
        }
        self
    }

    /// Writes the page.
    ///
    /// # Errors
    /// The errors of `out`.
    pub fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        let script = format!("\"use strict\";\n(() => {{\n{}}})();\n", SCRIPTS.join("\n"));
        let first = self.views.first().and_then(|view| view.graph.or(view.asleep));
        let merged;
        let still = match self.still.or(first) {
            // Changes belong to the boxes of the graph itself.
            Some(graph) if !self.by_line && self.difference.is_none() => {
                merged = graph.by_function();
                Some(&merged)
            }
            graph => graph,
        };
        let still = still.map(|graph| {
            let svg = Svg::new(graph)
                .script(false)
                .by_line(self.by_line)
                .title(&*self.title)
                .unit(&*self.unit)
                .icicle(self.icicle)
                .most_rows(STILL_ROWS);
            svg.paint(self.schemes[0].1.clone()).to_text()
        });
        let still = still.unwrap_or_default();
        let inner = still.split_once("<style>").and_then(|(_, rest)| rest.split_once("</style>"));
        let title = captions::sanitize(&self.title);
        let title = captions::markup(&title);
        write!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {}; \
             style-src {} {}; worker-src blob:; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta name=\"generator\" content=\"stackglass\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<noscript>",
            fingerprint(&script),
            fingerprint(STYLE),
            fingerprint(inner.map_or("", |(style, _)| style)),
        )?;
        writeln!(out, "<div{}>", if self.icicle { " class=\"down\"" } else { "" })?;
        out.write_all(
            b"<p>A static picture. With JavaScript, this page zooms, searches, and shows each thread.</p>\n",
        )?;
        out.write_all(still.as_bytes())?;
        out.write_all(b"</div>")?;
        write!(out, "</noscript>\n{BODY}<script type=\"application/json\" id=\"data\">\n")?;
        self.write_data(out)?;
        write!(out, "</script>\n<script>{script}</script>\n</body>\n</html>\n")
    }

    /// The page as a string.
    pub fn to_text(&self) -> String {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes).expect("memory takes everything");
        String::from_utf8(bytes).expect("all that is written is text")
    }

    fn write_data(&self, out: &mut impl Write) -> io::Result<()> {
        let mut packer = Packer::default();
        let paints: Vec<&Paint<'_>> = self.schemes.iter().map(|(_, paint)| paint).collect();
        write!(out, "{{\"title\":{},\"unit\":{},", text(&self.title), text(&self.unit))?;
        write!(out, "\"wallUnit\":{},", text(&self.wall_unit))?;
        for (name, value) in [
            ("icicle", self.icicle),
            ("inverted", self.inverted),
            ("wall", self.wall),
            ("byLine", self.by_line),
            ("foreign", self.foreign),
        ] {
            write!(out, "\"{name}\":{value},")?;
        }
        write!(out, "\n\"schemes\":[")?;
        for (number, (name, _)) in self.schemes.iter().enumerate() {
            write!(out, "{}{}", if number == 0 { "" } else { "," }, text(name))?;
        }
        write!(out, "],")?;
        if let (Some([factor, spread]), Some(graph)) =
            (self.difference, self.views.first().and_then(|view| view.graph))
        {
            let numbers = packer.swatches_of(&self.schemes[0].1.paint(graph).swatches);
            write!(out, "\"difference\":{{\"factor\":{factor},\"spread\":{spread},\"swatches\":")?;
            self::numbers(out, numbers.into_iter())?;
            write!(out, "}},")?;
        }
        write!(out, "\n\"views\":[")?;
        for (number, view) in self.views.iter().enumerate() {
            let comma = if number == 0 { "" } else { ",\n" };
            write!(out, "{comma}{{\"label\":{},\"apart\":{}", text(&view.label), view.apart)?;
            for (name, graph) in [("cpu", view.graph), ("asleep", view.asleep)] {
                let Some(graph) = graph else { continue };
                let bytes = packer.pack(graph, &paints, self.difference.is_none());
                write!(out, ",\n\"{name}\":{{\"nodes\":{},\"data\":\"", graph.nodes().len())?;
                // Parts of a multiple of three bytes need no padding in between.
                for part in bytes.chunks(3 << 14) {
                    out.write_all(BASE64.encode(part).as_bytes())?;
                }
                write!(out, "\"}}")?;
            }
            write!(out, "}}")?;
        }
        write!(out, "],\n\"looks\":")?;
        numbers(out, packer.looks().iter().flat_map(|look| look[..3 + paints.len()].iter().copied()))?;
        write!(out, ",\n\"swatches\":[")?;
        for (number, swatch) in packer.swatches().iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            let (light, dark) = (hex(swatch.light), hex(swatch.dark));
            write!(out, "{comma}[\"{light}\",\"{dark}\",{}]", text(&swatch.meaning))?;
        }
        write!(out, "],\n\"frames\":")?;
        numbers(out, packer.frames().iter().flatten().copied())?;
        write!(out, ",\n\"strings\":[")?;
        for (number, string) in packer.strings().iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            write!(out, "{comma}{}", text(string))?;
        }
        writeln!(out, "]}}")
    }
}

fn numbers(out: &mut impl Write, all: impl Iterator<Item = i64>) -> io::Result<()> {
    out.write_all(b"[")?;
    for (at, number) in all.enumerate() {
        let comma = if at == 0 { "" } else { "," };
        write!(out, "{comma}{number}")?;
    }
    out.write_all(b"]")
}

/// Text as JSON for a script element, with escapes by [`sanitize`](captions::sanitize).
fn text(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for c in captions::sanitize(text).chars() {
        match c {
            '"' => json += "\\\"",
            '\\' => json += "\\\\",
            // No tags or comments can begin in data.
            '<' => json += "\\u003c",
            '>' => json += "\\u003e",
            '&' => json += "\\u0026",
            c => json.push(c),
        }
    }
    json.push('"');
    json
}

/// The hash of a script or style sheet for a content security policy.
fn fingerprint(source: &str) -> String {
    format!("'sha256-{}'", BASE64.encode(Sha256::digest(source.as_bytes())))
}
