//! Colours of pictures: a few swatches, each for both themes, and a function that chooses one for a box.
//!
//! Pictures name a swatch by number, so a page holds each colour once and can change its theme. A function of the
//! reader's own goes in by [`Paint::new`] or [`Paint::whole`].

use crate::{Graph, Node, Status};
use stackglass_profile::Frame;
use stackglass_report::kinds::{self, Class};
use std::fmt;
use std::hash::BuildHasher;
use std::rc::Rc;

/// Red, green, blue.
pub type Rgb = [u8; 3];

/// A colour of a picture.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Swatch {
    /// On a light page.
    pub light: Rgb,
    /// On a dark page.
    pub dark: Rgb,
    /// What it means, for the legend; swatches of one meaning share an entry, those without have none.
    pub meaning: String,
}

/// A graph with a colour for each box.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Painted {
    /// The colours.
    pub swatches: Vec<Swatch>,
    /// The number of one for each node of the graph.
    pub boxes: Vec<usize>,
}

type Painter<'a> = Rc<dyn Fn(&Graph) -> Painted + 'a>;
type Notes<'a> = Rc<dyn Fn(&Graph, &Node) -> Option<String> + 'a>;

/// Which colour each box has, and what is said of it.
#[derive(Clone)]
pub struct Paint<'a> {
    painter: Painter<'a>,
    notes: Option<Notes<'a>>,
}

impl<'a> Paint<'a> {
    /// These swatches, and the number of one for each box.
    pub fn new(swatches: Vec<Swatch>, choose: impl Fn(&Graph, &Node) -> usize + 'a) -> Paint<'a> {
        Paint::whole(move |graph| Painted {
            swatches: swatches.clone(),
            boxes: graph.nodes().iter().map(|node| choose(graph, node)).collect(),
        })
    }

    /// Colours a graph as a whole: for schemes in which a colour depends on those before it.
    pub fn whole(painter: impl Fn(&Graph) -> Painted + 'a) -> Paint<'a> {
        Paint { painter: Rc::new(painter), notes: None }
    }

    /// Adds a line to what is shown of a box under the pointer: how it changed, for example.
    pub fn notes(mut self, notes: impl Fn(&Graph, &Node) -> Option<String> + 'a) -> Paint<'a> {
        self.notes = Some(Rc::new(notes));
        self
    }

    /// The line that is added for a box.
    pub fn note(&self, graph: &Graph, node: &Node) -> Option<String> {
        self.notes.as_ref()?(graph, node)
    }

    /// The colours of a graph. Where a swatch is named that is not there, it is the last one; where none is, grey.
    pub fn paint(&self, graph: &Graph) -> Painted {
        let mut painted = (self.painter)(graph);
        if painted.swatches.is_empty() {
            painted.swatches.push(Swatch { light: [200; 3], dark: [80; 3], meaning: String::new() });
        }
        let last = painted.swatches.len() - 1;
        painted.boxes.resize(graph.nodes().len(), last);
        painted.boxes.iter_mut().for_each(|swatch| *swatch = last.min(*swatch));
        painted
    }
}

impl fmt::Debug for Paint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Paint").finish_non_exhaustive()
    }
}

/// Meaning, and lightest and darkest shade for each theme. Neighbours in hue differ in lightness, so that they can be
/// told apart by readers who do not see red and green as two colours; status bits have a mark besides.
const KINDS: [(&str, [Rgb; 2], [Rgb; 2]); 8] = [
    ("code of the program", [[255, 217, 153], [250, 194, 110]], [[133, 88, 24], [110, 70, 16]]),
    ("standard library", [[190, 219, 250], [158, 199, 243]], [[43, 88, 133], [32, 70, 110]]),
    ("C library", [[224, 224, 230], [205, 206, 215]], [[84, 86, 98], [69, 71, 82]]),
    ("foreign code", [[178, 226, 205], [148, 211, 184]], [[32, 104, 82], [24, 86, 67]]),
    ("no name known", [[240, 238, 232], [230, 227, 219]], [[60, 58, 54], [52, 50, 47]]),
    ("memory management", [[232, 190, 240], [219, 166, 230]], [[117, 62, 130], [98, 48, 110]]),
    ("", [[235, 235, 235], [235, 235, 235]], [[55, 55, 55], [55, 55, 55]]),
    ("dynamic call", [[250, 160, 150], [242, 135, 125]], [[158, 46, 48], [134, 34, 38]]),
];
const SHADES: usize = 3;
const MEMORY: usize = 5;
const ROOT: usize = 6;
const DISPATCH: usize = 7;

/// By status and by kind of code; shades tell neighbours apart and are the same for a function wherever it stands.
impl Default for Paint<'_> {
    fn default() -> Self {
        let mix = |[from, to]: [Rgb; 2], shade: usize| {
            std::array::from_fn(|i| {
                let (from, to) = (usize::from(from[i]), usize::from(to[i]));
                ((from * (SHADES - 1 - shade) + to * shade) / (SHADES - 1)) as u8
            })
        };
        let shades = KINDS.iter().flat_map(|(meaning, light, dark)| {
            (0..SHADES).map(move |shade| Swatch {
                light: mix(*light, shade),
                dark: mix(*dark, shade),
                meaning: (*meaning).to_owned(),
            })
        });
        let swatches: Vec<Swatch> = shades.collect();
        Paint::whole(move |graph| {
            let rust = graph.frames().iter().any(|frame| !frame.foreign);
            // Names are looked at once each; boxes are many more.
            let frames: Vec<(usize, usize)> =
                graph.frames().iter().map(|frame| (kind(frame, rust), shade(&frame.func))).collect();
            let boxes = graph.nodes().iter().map(|node| {
                let (kind, shade) = frames[node.frame.0 as usize];
                let kind = match node.status {
                    _ if node.depth == 0 && graph.frame(node).is_unknown() => ROOT,
                    status if status.any(Status::DISPATCH) => DISPATCH,
                    status if status.any(Status::MEMORY) => MEMORY,
                    _ => kind,
                };
                kind * SHADES + shade
            });
            Painted { swatches: swatches.clone(), boxes: boxes.collect() }
        })
    }
}

/// By whose code it is; a number of [`KINDS`]. In a program without Rust only libraries are foreign.
fn kind(frame: &Frame, rust: bool) -> usize {
    if frame.func.is_empty() {
        return 4;
    }
    match kinds::class(frame) {
        Class::Own if frame.foreign && (rust || kinds::is_library(frame)) => 3,
        Class::Own => 0,
        Class::Std => 1,
        Class::C => 2,
    }
}

fn shade(func: &str) -> usize {
    // The same in every run: pictures of the same profile are equal to the byte.
    foldhash::fast::FixedState::with_seed(7).hash_one(func) as usize % SHADES
}

/// Whether black is read better than white on this colour.
pub(crate) fn wants_black([red, green, blue]: Rgb) -> bool {
    // Weights of the three in brightness, as in Rec. 601.
    299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue) > 140_000
}

/// `#rrggbb`, or `#rgb` where that is the same.
pub(crate) fn hex(color: Rgb) -> String {
    if color.iter().all(|part| part >> 4 == part & 15) {
        return color.iter().fold("#".to_owned(), |text, part| format!("{text}{:x}", part & 15));
    }
    color.iter().fold("#".to_owned(), |text, part| format!("{text}{part:02x}"))
}
