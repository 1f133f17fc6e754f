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
const SCRIPTS: [&str; 11] = [
    include_str!("page/data.js"),
    include_str!("page/inverted.js"),
    include_str!("page/format.js"),
    include_str!("page/search.js"),
    include_str!("page/picture.js"),
    include_str!("page/export.js"),
    include_str!("page/state.js"),
    include_str!("page/keys.js"),
    include_str!("page/view.js"),
    include_str!("page/pointer.js"),
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
    views: Vec<(String, &'a Graph)>,
    icicle: bool,
    inverted: bool,
    paint: Paint<'a>,
}

impl<'a> Page<'a> {
    /// A page without graphs.
    pub fn new(title: impl Into<String>) -> Page<'a> {
        Page {
            title: title.into(),
            unit: "samples".to_owned(),
            views: Vec::new(),
            icicle: false,
            inverted: false,
            paint: Paint::default(),
        }
    }

    /// Adds a graph with a label. The first graph is shown first.
    pub fn view(mut self, label: impl Into<String>, graph: &'a Graph) -> Page<'a> {
        self.views.push((label.into(), graph));
        self
    }

    /// The unit of the cost axis, `samples` by default. Boxes show its first word only.
    pub fn unit(mut self, unit: impl Into<String>) -> Page<'a> {
        self.unit = unit.into();
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
        self.paint = paint;
        self
    }

    /// Writes the page.
    ///
    /// # Errors
    /// The errors of `out`.
    pub fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        let script = format!("\"use strict\";\n(() => {{\n{}}})();\n", SCRIPTS.join("\n"));
        let still = self.views.first().map(|(_, graph)| {
            let svg = Svg::new(graph)
                .title(&*self.title)
                .unit(&*self.unit)
                .icicle(self.icicle)
                .most_rows(STILL_ROWS);
            svg.paint(self.paint.clone()).to_text()
        });
        let still = still.unwrap_or_default();
        let inner = still.split_once("<style>").and_then(|(_, rest)| rest.split_once("</style>"));
        let title = captions::harmless(&self.title);
        let title = captions::markup(&title);
        write!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {}; \
             style-src {} {}; base-uri 'none'; form-action 'none'\">\n\
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
        write!(
            out,
            "{{\"title\":{},\"unit\":{},\"icicle\":{},\"inverted\":{},\n\"views\":[",
            text(&self.title),
            text(&self.unit),
            self.icicle,
            self.inverted
        )?;
        for (number, (label, graph)) in self.views.iter().enumerate() {
            let comma = if number == 0 { "" } else { ",\n" };
            let packed = packer.pack(graph, &self.paint);
            write!(out, "{comma}{{\"label\":{},\"nodes\":{},\"looks\":", text(label), graph.nodes().len())?;
            numbers(out, packed.looks.iter().flatten().copied())?;
            write!(out, ",\"data\":\"")?;
            // Parts of a multiple of three bytes need no padding in between.
            for part in packed.bytes.chunks(3 << 14) {
                out.write_all(BASE64.encode(part).as_bytes())?;
            }
            write!(out, "\"}}")?;
        }
        write!(out, "],\n\"swatches\":[")?;
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

/// Text as JSON for a script element, with [`harmless`](captions::harmless) characters.
fn text(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for c in captions::harmless(text).chars() {
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
