//! Which colour a box gets: by its place, by its status, or by any rule of the reader.
//!
//! [`FlameColors`] is the usual scheme, [`StackFrameCategory`](crate::StackFrameCategory) colours by kind of code,
//! and [`ColorBy`] by a function.
//!
//! Source: `FlameColors` of FlameGraphs.jl.

mod builder;
mod deutan;
pub(crate) mod greedy;
mod space;

pub use builder::{FlameColorsBuilder, Highlight};

use crate::{Color, Graph, Node, Status};
use std::fmt;

/// A rule for colours.
pub trait ColorFunction {
    /// Behind all boxes.
    fn background(&self) -> Color;

    /// Of text.
    fn font(&self) -> Color;

    /// The colour of a box. Boxes are asked for depth first. `next` has one number for each depth
    /// ([`Node::depth`]), all 1 at first: who takes colours in turn counts in it. `None` when there is no colour to
    /// give, which ends the painting.
    fn node(&self, next: &mut [usize], graph: &Graph, node: &Node) -> Option<Color>;

    /// What there is to say about colours below a picture.
    fn legend(&self) -> Vec<(String, Color)> {
        Vec::new()
    }
}

/// Colours by a function of the box, as [`ColorFunction::node`].
///
/// ```
/// use stackglass_flame::{Color, ColorBy, Graph, Node};
///
/// let by_depth = ColorBy::new(|_, _: &Graph, node: &Node| Some(Color([(node.depth % 25) as u8 * 10, 0, 0])));
/// # let mut builder = stackglass_flame::GraphBuilder::default();
/// # let frame = builder.frame(&stackglass_profile::Frame::unknown(0));
/// # builder.open(frame, stackglass_flame::Status::NONE, stackglass_flame::Span::new(1, 2));
/// # let graph = builder.finish().unwrap();
/// let pixels = stackglass_flame::flamepixels(&graph, &by_depth, None)?;
/// # assert_eq!(pixels.row(0), [Color::BLACK; 2]);
/// # Ok::<(), stackglass_flame::PixelsError>(())
/// ```
pub struct ColorBy<F> {
    background: Color,
    font: Color,
    node: F,
}

impl<F: Fn(&mut [usize], &Graph, &Node) -> Option<Color>> ColorBy<F> {
    /// On white, in black.
    pub fn new(node: F) -> ColorBy<F> {
        ColorBy { background: Color::WHITE, font: Color::BLACK, node }
    }

    /// With another background and font.
    pub fn on(self, background: Color, font: Color) -> ColorBy<F> {
        ColorBy { background, font, ..self }
    }
}

impl<F: Fn(&mut [usize], &Graph, &Node) -> Option<Color>> ColorFunction for ColorBy<F> {
    fn background(&self) -> Color {
        self.background
    }

    fn font(&self) -> Color {
        self.font
    }

    fn node(&self, next: &mut [usize], graph: &Graph, node: &Node) -> Option<Color> {
        (self.node)(next, graph, node)
    }
}

impl<F> fmt::Debug for ColorBy<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ColorBy { background, font, .. } = self;
        f.debug_struct("ColorBy").field("background", background).field("font", font).finish_non_exhaustive()
    }
}

/// Colours in turn: the first half of a list at odd depths (the root's is 1), the second half at even ones, so that
/// neighbours differ.
///
/// ```
/// use stackglass_flame::FlameColors;
///
/// let colors: Vec<String> = FlameColors::default().colors.iter().map(|color| color.to_string()).collect();
/// assert_eq!(colors, ["e1b2ff", "6fdc91", "00b58b", "2ca3ff"]);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlameColors {
    /// Of boxes of which there is nothing to say.
    pub colors: Vec<Color>,
    /// Behind all boxes.
    pub colorbg: Color,
    /// Of text.
    pub colorfont: Color,
    /// Of boxes with [`Status::DISPATCH`]; none: as all others.
    pub colorsrt: Vec<Color>,
    /// Of boxes with [`Status::MEMORY`]; none: as all others.
    pub colorsgc: Vec<Color>,
}

impl FlameColors {
    /// Chooses colours for a background, a font, and so on.
    pub fn builder() -> FlameColorsBuilder {
        FlameColorsBuilder::default()
    }

    fn list(&self, status: Status) -> &[Color] {
        if status.any(Status::DISPATCH) && !self.colorsrt.is_empty() {
            &self.colorsrt
        } else if status.any(Status::MEMORY) && !self.colorsgc.is_empty() {
            &self.colorsgc
        } else {
            &self.colors
        }
    }
}

/// Two colours for each depth, on white.
impl Default for FlameColors {
    fn default() -> FlameColors {
        FlameColors::builder().build()
    }
}

impl ColorFunction for FlameColors {
    fn background(&self) -> Color {
        self.colorbg
    }

    fn font(&self) -> Color {
        self.colorfont
    }

    fn node(&self, next: &mut [usize], _: &Graph, node: &Node) -> Option<Color> {
        let list = self.list(node.status);
        let number = next.get_mut(node.depth as usize)?;
        let turn = *number - 1;
        *number += 1;
        let half = list.len().div_ceil(2);
        let offset = if node.depth % 2 == 1 { half } else { 0 };
        list.get((turn.checked_rem(half)? + offset).checked_rem(list.len())?).copied()
    }

    fn legend(&self) -> Vec<(String, Color)> {
        let marks =
            [("calls through a vtable or pointer", &self.colorsrt), ("memory management", &self.colorsgc)];
        marks.into_iter().filter_map(|(text, list)| Some((text.to_owned(), *list.first()?))).collect()
    }
}
