//! A flame graph with labels as a bitmap.

use super::canvas::{Canvas, Density};
use super::merged::Merged;
use super::{PngError, write_rows};
use crate::captions::{self, MARKS, Mark};
use crate::frame_captions::FrameCaptions;
use crate::paint::wants_black;
use crate::{Color, ColorFunction, Graph, Node, PixelsError};
use std::fmt;
use std::io::Write;
use std::ops::Range;

/// Position of the root.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Layout {
    /// At the bottom, with callees above their callers.
    #[default]
    Flame,
    /// At the top, with callees below their callers.
    Icicle,
}

/// The options of a PNG picture.
#[derive(Clone)]
pub struct PictureOptions<'c> {
    colors: &'c dyn ColorFunction,
    layout: Layout,
    title: String,
    unit: String,
    width: usize,
    levels: usize,
    density: Density,
    by_line: bool,
}

/// Limits of a picture: width in bitmap pixels, and total number of bitmap pixels.
const WIDEST: usize = 20_000;
const PIXELS: usize = 1 << 26;

/// Number of levels by default: a picture of more is too high to be looked at.
pub const MOST_LEVELS: usize = 100;

/// Margin around the boxes.
const MARGIN: usize = 8;
/// Height of a line of text above and below the boxes, and of a row of boxes with its gap.
const LINE: usize = 20;
const BOX: usize = 18;
const GAP: usize = 1;
/// Distance between a box and its text, and the size of a colour in the legend.
const PADDING: usize = 3;
const SWATCH: usize = 12;

/// Hatching in the light and the dark theme, as on the page: ground and lines.
const HATCH: [[Color; 2]; 2] =
    [[Color::hex(0xf2f2f2), Color::hex(0xc4c4c4)], [Color::hex(0x242424), Color::hex(0x4d4d4d)]];

/// Boxes narrower than this have no gap to the next one.
const WITH_GAP: usize = 4;

impl<'c> PictureOptions<'c> {
    /// A picture 1200 pixels wide, of at most 100 levels, with the root at the bottom.
    pub fn new(colors: &'c dyn ColorFunction) -> PictureOptions<'c> {
        PictureOptions {
            colors,
            layout: Layout::Flame,
            title: String::new(),
            unit: "samples".to_owned(),
            width: 1200,
            levels: MOST_LEVELS,
            density: Density::ONE,
            by_line: false,
        }
    }

    /// Where the root is.
    pub fn layout(self, layout: Layout) -> Self {
        PictureOptions { layout, ..self }
    }

    /// The title above the boxes.
    pub fn title(self, title: impl Into<String>) -> Self {
        PictureOptions { title: title.into(), ..self }
    }

    /// The unit of the cost axis.
    pub fn unit(self, unit: impl Into<String>) -> Self {
        PictureOptions { unit: unit.into(), ..self }
    }

    /// Width in pixels.
    pub fn width(self, width: usize) -> Self {
        PictureOptions { width, ..self }
    }

    /// Maximum number of levels. If there are more, the last row and the legend show it.
    pub fn levels(self, levels: usize) -> Self {
        PictureOptions { levels, ..self }
    }

    /// Labels boxes with their lines, for graphs in which a box stands for a line of a function.
    pub fn by_line(self, by_line: bool) -> Self {
        PictureOptions { by_line, ..self }
    }

    /// Doubles the resolution, for high-resolution screens and print, unless the picture would be too large.
    pub fn fine(self, fine: bool) -> Self {
        PictureOptions { density: if fine { Density::TWO } else { Density::ONE }, ..self }
    }
}

impl fmt::Debug for PictureOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PictureOptions { layout, title, width, levels, .. } = self;
        write!(f, "PictureOptions {{ {layout:?}, {title:?}, {width} wide, {levels} levels }}")
    }
}

/// Draws a graph and writes it as a PNG.
///
/// Boxes narrower than a pixel are drawn together, hatched. Text in boxes is black or white, whichever is more readable.
///
/// # Errors
/// If the picture would be too large, if there is no colour for a box, or if writing fails.
pub fn write_picture(graph: &Graph, options: &PictureOptions<'_>, out: impl Write) -> Result<(), PngError> {
    let simple = PictureOptions { density: Density::ONE, ..options.clone() };
    let page = match Page::new(graph, options) {
        Err(PngError::TooLarge { .. }) => Page::new(graph, &simple)?,
        page => page?,
    };
    let canvas = page.draw()?;
    let rows = canvas.rows().map(|row| row.iter().flat_map(|color| color.0));
    write_rows(page.columns, page.rows, rows, out)
}

/// The layout in bitmap pixels.
struct Page<'p> {
    graph: &'p Graph,
    options: &'p PictureOptions<'p>,
    columns: usize,
    rows: usize,
    /// Width of the boxes.
    boxes: Range<usize>,
    /// Number of rows. Deeper levels share the last one.
    levels: usize,
    /// Number of levels of the graph.
    depth: usize,
    legend: Vec<Vec<Entry>>,
    captions: FrameCaptions<'p>,
}

/// A piece of a line of the legend.
struct Entry {
    text: String,
    /// `None`: hatched.
    color: Option<Color>,
    mark: Option<&'static Mark>,
}

impl<'p> Page<'p> {
    fn new(graph: &'p Graph, options: &'p PictureOptions<'p>) -> Result<Page<'p>, PngError> {
        let density = options.density;
        let columns = options.width.saturating_mul(density.pixels(1));
        let margin = density.pixels(MARGIN);
        let depth = graph.depth();
        let levels = depth.min(options.levels.max(1));
        let too_large = |rows| PngError::TooLarge { columns, rows };
        if columns > WIDEST {
            return Err(too_large(levels.saturating_mul(density.pixels(BOX))));
        }
        if columns <= 2 * margin {
            return Err(PngError::Empty { columns, rows: levels });
        }
        let boxes = margin..columns - margin;
        let narrow = |node: &Node| {
            !node.span.is_empty()
                && (node.span.len() as f64) < graph.root().span.len() as f64 / boxes.len() as f64
        };
        let merges = depth > levels || graph.nodes().iter().any(narrow);
        let legend = legend(graph, options, merges.then_some([levels, depth]), boxes.len());
        let lines = 1 + legend.len();
        let rows = levels
            .saturating_mul(density.pixels(BOX))
            .saturating_add(density.pixels(lines * LINE) + 2 * margin);
        if rows.saturating_mul(columns) > PIXELS {
            return Err(too_large(rows));
        }
        let captions = FrameCaptions::new(graph);
        Ok(Page { graph, options, columns, rows, boxes, levels, depth, legend, captions })
    }

    fn draw(&self) -> Result<Canvas, PngError> {
        let Page { graph, options, .. } = *self;
        let (density, colors) = (options.density, options.colors);
        let mut canvas = Canvas::new(self.columns, self.rows, colors.background(), density);
        let mut merged = Merged::new(self.boxes.len(), self.levels);
        let mut next = vec![1; self.depth];
        let root = graph.root().span;
        let scale = self.boxes.len() as f64 / root.len().max(1) as f64;
        // In pixels from the left end of the boxes. Boxes outside the root are not drawn.
        let place = |position: i128| {
            let place = (position - i128::from(root.start())) as f64 * scale;
            place.clamp(0.0, self.boxes.len() as f64)
        };
        for node in graph.nodes() {
            if node.span.is_empty() {
                continue;
            }
            let depth = node.depth as usize;
            let shared = depth + 1 >= self.levels && self.depth > self.levels;
            let (from, to) = (place(node.span.start().into()), place(i128::from(node.span.stop()) + 1));
            if to - from < 1.0 || shared {
                merged.add(depth.min(self.levels - 1), from, to);
                continue;
            }
            let color =
                colors.node(&mut next, graph, node).ok_or(PixelsError::NoColor { depth: node.depth })?;
            let (left, right) =
                (self.boxes.start + from.round() as usize, self.boxes.start + to.round() as usize);
            let gap = if right - left < density.pixels(WITH_GAP) { 0 } else { density.pixels(GAP) };
            let rows = self.rows_of(depth);
            canvas.fill(left..right - gap, rows.clone(), color);
            let room = (right - left).saturating_sub(density.pixels(2 * PADDING)) / density.text_width();
            let name = &self.captions.of(node).name;
            let text = captions::node_label(graph, node, name, options.by_line, room);
            let top = rows.start + (rows.len() - density.text_height().min(rows.len())) / 2;
            let ink = ink_on(color);
            canvas.text(&text, left + density.pixels(PADDING), top, ink);
            if let Some(mark) = captions::mark(node) {
                let below = rows.end - density.pixels(2)..rows.end;
                draw_mark(&mut canvas, left..right - gap, below, mark, density, color);
            }
        }
        for (row, columns) in merged.runs() {
            let columns = columns.start + self.boxes.start..columns.end + self.boxes.start;
            self.hatch(&mut canvas, columns, self.rows_of(row));
        }
        self.words(&mut canvas);
        Ok(canvas)
    }

    /// The rows of pixels of a level.
    fn rows_of(&self, depth: usize) -> Range<usize> {
        let density = self.options.density;
        let place = match self.options.layout {
            Layout::Icicle => depth,
            Layout::Flame => self.levels - 1 - depth,
        };
        let top = density.pixels(MARGIN + LINE + place * BOX);
        top..top + density.pixels(BOX - GAP)
    }

    fn hatch(&self, canvas: &mut Canvas, columns: Range<usize>, rows: Range<usize>) {
        let is_dark = !wants_black(self.options.colors.background().0);
        let [ground, lines] = HATCH[usize::from(is_dark)];
        canvas.hatch(columns, rows, ground, lines);
    }

    /// Title and total above, legend below.
    fn words(&self, canvas: &mut Canvas) {
        let (density, ink) = (self.options.density, self.options.colors.font());
        let total = captions::counted(self.graph.root().span.len(), &self.options.unit);
        let room = self.boxes.len() / density.text_width();
        let top = density.pixels(MARGIN);
        let mut left_room = room;
        if let Some(left) = room.checked_sub(total.chars().count()) {
            canvas.text(&total, self.boxes.end - total.chars().count() * density.text_width(), top, ink);
            left_room = left.saturating_sub(2);
        }
        canvas.text(
            &cut(&captions::sanitize(&self.options.title).replace('→', "->"), left_room),
            self.boxes.start,
            top,
            ink,
        );
        let mut top = density.pixels(MARGIN + LINE + self.levels * BOX + MARGIN / 2);
        for line in &self.legend {
            let mut left = self.boxes.start;
            for entry in line {
                let lower = top + (density.text_height() - density.pixels(SWATCH)) / 2;
                let (columns, rows) =
                    (left..left + density.pixels(SWATCH), lower..lower + density.pixels(SWATCH));
                match entry.color {
                    Some(color) => canvas.fill(columns.clone(), rows.clone(), color),
                    None => self.hatch(canvas, columns.clone(), rows.clone()),
                }
                if let Some(mark) = entry.mark {
                    let ground = entry.color.unwrap_or_default();
                    draw_mark(canvas, columns, rows.end - density.pixels(2)..rows.end, mark, density, ground);
                }
                canvas.text(&entry.text, left + density.pixels(SWATCH + PADDING * 2), top, ink);
                left += entry.width(density);
            }
            top += density.pixels(LINE);
        }
    }
}

impl Entry {
    fn width(&self, density: Density) -> usize {
        density.pixels(SWATCH + PADDING * 2 + LINE) + self.text.chars().count() * density.text_width()
    }
}

/// Black or white.
fn ink_on(color: Color) -> Color {
    if wants_black(color.0) { Color::BLACK } else { Color::WHITE }
}

/// Draws the dashes of a mark, weaker than text.
fn draw_mark(
    canvas: &mut Canvas,
    columns: Range<usize>,
    rows: Range<usize>,
    mark: &Mark,
    density: Density,
    ground: Color,
) {
    let ink = ink_on(ground);
    let part = |at: usize| ((u16::from(ground.0[at]) * 2 + u16::from(ink.0[at]) * 3) / 5) as u8;
    let ink = Color([part(0), part(1), part(2)]);
    let [on, off] = mark.dashes.map(|length| density.pixels(length));
    for start in columns.clone().step_by(on + off) {
        canvas.fill(start..(start + on).min(columns.end), rows.clone(), ink);
    }
}

/// The legend in lines that fit. `merged`: some boxes are too small to draw; levels that are drawn, and all levels.
fn legend(
    graph: &Graph,
    options: &PictureOptions<'_>,
    merged: Option<[usize; 2]>,
    room: usize,
) -> Vec<Vec<Entry>> {
    let colors = options.colors.legend().into_iter();
    let mut entries: Vec<Entry> = colors
        .map(|(text, color)| {
            let mark = MARKS.iter().find(|mark| text.starts_with(mark.meaning));
            Entry { text, color: Some(color), mark }
        })
        .collect();
    for mark in &MARKS {
        let is_there = graph.nodes().iter().any(|node| captions::bits(node).any(mark.bit));
        if is_there && entries.iter().all(|entry| !entry.text.starts_with(mark.meaning)) {
            let color = Some(options.colors.background());
            entries.push(Entry { text: mark.meaning.to_owned(), color, mark: Some(mark) });
        }
    }
    if let Some([levels, depth]) = merged {
        let mut text = "details left out".to_owned();
        if depth > levels {
            let [levels, depth] = [levels, depth].map(|number| captions::thousands(number as u64));
            text += &format!("; {levels} of {depth} levels are drawn");
        }
        entries.push(Entry { text, color: None, mark: None });
    }
    let mut lines: Vec<Vec<Entry>> = Vec::new();
    let mut left = 0;
    for entry in entries {
        let width = entry.width(options.density);
        match lines.last_mut() {
            Some(line) if width <= left => {
                left -= width;
                line.push(entry);
            }
            _ => {
                left = room.saturating_sub(width);
                lines.push(vec![entry]);
            }
        }
    }
    lines
}

fn cut(text: &str, room: usize) -> String {
    if text.chars().nth(room).is_none() {
        return text.to_owned();
    }
    let kept = text.chars().take(room.saturating_sub(1)).chain(['…']);
    kept.take(room).collect()
}
