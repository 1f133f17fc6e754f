//! Colours of pictures: a few swatches for both themes, and a function that chooses one for each box.
//!
//! Pictures refer to swatches by number, so that a page contains each colour once and can change its theme. Custom
//! functions are passed to [`Paint::new`] or [`Paint::whole`].

use crate::by_function::unmarked;
use crate::categories::native::is_kernel;
use crate::status::of_name;
use crate::{Color, Graph, Node, Status};
use stackglass_profile::Frame;
use stackglass_profile::frame::file_name;
use stackglass_report::kinds::{self, Class};
use std::fmt;
use std::hash::BuildHasher;
use std::rc::Rc;

/// Red, green, blue.
pub type Rgb = [u8; 3];

/// A colour of a picture.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Swatch {
    /// In the light theme.
    pub light: Rgb,
    /// In the dark theme.
    pub dark: Rgb,
    /// Its meaning for the legend. Swatches with the same meaning share an entry; those without a meaning have none.
    pub meaning: String,
}

/// The colours of the boxes of a graph.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Painted {
    /// The colours.
    pub swatches: Vec<Swatch>,
    /// By node: the number of its swatch.
    pub boxes: Vec<usize>,
}

type Painter<'a> = Rc<dyn Fn(&Graph) -> Painted + 'a>;
type Notes<'a> = Rc<dyn Fn(&Graph, &Node) -> Option<String> + 'a>;

/// The colours and notes of boxes.
#[derive(Clone)]
pub struct Paint<'a> {
    painter: Painter<'a>,
    notes: Option<Notes<'a>>,
    /// The legend has the share of each colour.
    has_shares: bool,
}

impl<'a> Paint<'a> {
    /// A paint of these swatches. `choose` returns a swatch number for each box.
    pub fn new(swatches: Vec<Swatch>, choose: impl Fn(&Graph, &Node) -> usize + 'a) -> Paint<'a> {
        Paint::whole(move |graph| Painted {
            swatches: swatches.clone(),
            boxes: graph.nodes().iter().map(|node| choose(graph, node)).collect(),
        })
    }

    /// A paint for whole graphs, for schemes in which a colour depends on earlier ones.
    pub fn whole(painter: impl Fn(&Graph) -> Painted + 'a) -> Paint<'a> {
        Paint { painter: Rc::new(painter), notes: None, has_shares: true }
    }

    /// Adds a line to the details of a box, for example how it changed.
    pub fn notes(mut self, notes: impl Fn(&Graph, &Node) -> Option<String> + 'a) -> Paint<'a> {
        self.notes = Some(Rc::new(notes));
        self
    }

    /// Leaves shares out of the legend: those of changes would say nothing.
    pub(crate) fn without_shares(mut self) -> Paint<'a> {
        self.has_shares = false;
        self
    }

    pub(crate) fn has_shares(&self) -> bool {
        self.has_shares
    }

    /// The added line of a box.
    pub fn note(&self, graph: &Graph, node: &Node) -> Option<String> {
        self.notes.as_ref()?(graph, node)
    }

    /// The colours of a graph. Invalid swatch numbers mean the last swatch. Without swatches all boxes are grey.
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

/// Meaning, and lightest and darkest shade for each theme. Similar hues differ in lightness, for readers with red-green
/// colour blindness. Status bits have marks; a dynamic call has only its mark, since nothing is wrong with it.
const KINDS: [(&str, [Rgb; 2], [Rgb; 2]); 8] = [
    ("code of the program", [[255, 217, 153], [250, 194, 110]], [[133, 88, 24], [110, 70, 16]]),
    ("standard library", [[190, 219, 250], [158, 199, 243]], [[43, 88, 133], [32, 70, 110]]),
    ("C library", [[224, 224, 230], [205, 206, 215]], [[84, 86, 98], [69, 71, 82]]),
    ("foreign code", [[178, 226, 205], [148, 211, 184]], [[32, 104, 82], [24, 86, 67]]),
    ("no name known", [[240, 238, 232], [230, 227, 219]], [[60, 58, 54], [52, 50, 47]]),
    ("memory management", [[232, 190, 240], [219, 166, 230]], [[117, 62, 130], [98, 48, 110]]),
    ("kernel", [[240, 226, 132], [228, 211, 104]], [[98, 92, 30], [80, 75, 22]]),
    ("", [[235, 235, 235], [235, 235, 235]], [[55, 55, 55], [55, 55, 55]]),
];
const SHADES: usize = 3;
const MEMORY: usize = 5;
const KERNEL: usize = 6;
const ROOT: usize = 7;

/// Colours by kind of code. Shades distinguish neighbours; a function has the same shade everywhere. What is hidden below a box
/// gives it a mark, not a colour: a caller of `malloc` is no memory management.
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
            // Examines each frame once, since there are many more boxes.
            let frames: Vec<(usize, usize)> =
                graph.frames().iter().map(|frame| (kind(frame, rust), shade(&frame.func))).collect();
            let boxes = graph.nodes().iter().map(|node| {
                let (kind, shade) = frames[node.frame.0 as usize];
                let is_root = node.depth == 0 && graph.frame(node).is_unknown();
                if is_root { ROOT * SHADES + shade } else { kind * SHADES + shade }
            });
            Painted { swatches: swatches.clone(), boxes: boxes.collect() }
        })
    }
}

/// The index into [`KINDS`] of a frame. In a program without Rust only libraries are foreign.
fn kind(frame: &Frame, rust: bool) -> usize {
    let frame = &*unmarked(frame);
    if is_kernel(frame, file_name(&frame.module)) {
        return KERNEL;
    }
    if of_name(frame).any(Status::MEMORY) {
        return MEMORY;
    }
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
    // A fixed hash: pictures of the same profile are equal byte for byte.
    foldhash::fast::FixedState::with_seed(7).hash_one(func) as usize % SHADES
}

/// Whether black text is more readable than white on this colour. The better one has a contrast of 4.58 or more on every
/// colour.
pub(crate) fn wants_black(color: Rgb) -> bool {
    Color(color).contrast(Color::BLACK) >= Color(color).contrast(Color::WHITE)
}

/// `#rrggbb`, or `#rgb` if it is the same.
pub(crate) fn hex(color: Rgb) -> String {
    if color.iter().all(|part| part >> 4 == part & 15) {
        return color.iter().fold("#".to_owned(), |text, part| format!("{text}{:x}", part & 15));
    }
    color.iter().fold("#".to_owned(), |text, part| format!("{text}{part:02x}"))
}
