//! Colour functions: by position, by status, or by a custom rule.
//!
//! [`FlameColors`] is the scheme of FlameGraphs.jl (`--colors julia`), [`StackFrameCategory`](crate::StackFrameCategory) colours by
//! kind of code, and [`ColorBy`] by a function.
//!
//! Source: `FlameColors` of FlameGraphs.jl.

mod builder;
mod deutan;
pub(crate) mod greedy;
mod space;

pub use builder::{FlameColorsBuilder, Highlight};

use crate::{Color, Graph, Node, Status};
use std::fmt;

/// A colour function.
pub trait ColorFunction {
    /// The background.
    fn background(&self) -> Color;

    /// The colour of text.
    fn font(&self) -> Color;

    /// The colour of a box. Boxes come depth first. `next` has one counter for each depth ([`Node::depth`]), initially 1, for
    /// functions that take colours in turn. `None` stops the painting.
    fn node(&self, next: &mut [usize], graph: &Graph, node: &Node) -> Option<Color>;

    /// The legend: meanings of colours.
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
    /// Black text on white.
    pub fn new(node: F) -> ColorBy<F> {
        ColorBy { background: Color::WHITE, font: Color::BLACK, node }
    }

    /// Sets background and font.
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

/// Colours in turn, so that neighbours differ: the first half of a list at odd depths, the second half at even ones. The
/// root's depth is 1.
///
/// ```
/// use stackglass_flame::FlameColors;
///
/// let colors: Vec<String> = FlameColors::default().colors.iter().map(|color| color.to_string()).collect();
/// assert_eq!(colors, ["e1b2ff", "6fdc91", "00b58b", "2ca3ff"]);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlameColors {
    /// The colours of boxes without status bits.
    pub colors: Vec<Color>,
    /// The background.
    pub colorbg: Color,
    /// The colour of text.
    pub colorfont: Color,
    /// The colours of boxes with [`Status::DISPATCH`]. If empty, they are like others.
    pub colorsrt: Vec<Color>,
    /// The colours of boxes with [`Status::MEMORY`]. If empty, they are like others.
    pub colorsgc: Vec<Color>,
}

impl FlameColors {
    /// Returns a builder.
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
