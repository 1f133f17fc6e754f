//! A flame graph as a matrix: one column for each unit of the cost axis, one row for each depth.
//!
//! Source: `flamepixels` and `flametags` of FlameGraphs.jl, with their rounding half to even. Neighbours may overlap by one
//! column, which the later one gets, and narrow boxes may get no column.

use crate::{Color, ColorFunction, Graph, Node};
use stackglass_profile::Frame;

/// Default number of columns.
const COLUMNS: f64 = 1000.0;

/// Maximum number of cells, so that a deep graph does not use all memory.
const CELLS: usize = 1 << 27;

/// A matrix. The first dimension is cost, the second depth.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Matrix<T> {
    cost: usize,
    depth: usize,
    /// The cells, row by row.
    cells: Vec<T>,
}

/// The colours of a flame graph.
pub type Pixels = Matrix<Color>;

impl<T: Copy> Matrix<T> {
    fn filled(cost: usize, depth: usize, with: T) -> Result<Matrix<T>, PixelsError> {
        let cells = cost.checked_mul(depth).filter(|cells| *cells <= CELLS);
        let cells = cells.ok_or(PixelsError::TooLarge { cost, depth })?;
        Ok(Matrix { cost, depth, cells: vec![with; cells] })
    }

    /// Number of columns (cost) and rows (depth).
    pub fn size(&self) -> (usize, usize) {
        (self.cost, self.depth)
    }

    /// The row of a depth; 0 is the root's.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, depth: usize) -> &[T] {
        assert!(depth < self.depth, "row {depth} of {}", self.depth);
        &self.cells[depth * self.cost..][..self.cost]
    }

    /// All rows, the root's first.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[T]> {
        (0..self.depth).map(|depth| self.row(depth))
    }

    /// A cell; both indices start at 0.
    pub fn get(&self, cost: usize, depth: usize) -> Option<T> {
        (cost < self.cost && depth < self.depth).then(|| self.cells[depth * self.cost + cost])
    }
}

/// The stack frames of pixels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tags {
    /// For each pixel, the number of its frame in `frames`, from 1 as in Julia. 1 if there is no box.
    pub index: Matrix<u32>,
    /// The frames. The first one is unknown.
    pub frames: Vec<Frame>,
}

impl Tags {
    /// The frame of a pixel; both indices start at 0.
    pub fn frame(&self, cost: usize, depth: usize) -> Option<&Frame> {
        self.frames.get(self.index.get(cost, depth)? as usize - 1)
    }
}

/// Why pixels could not be computed.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PixelsError {
    /// A colour function returned no colour.
    #[error("there is no colour for a box at depth {depth}: give at least one colour")]
    NoColor {
        /// Depth of the box; 0 is the root's.
        depth: u32,
    },
    /// The scale is invalid.
    #[error("cannot scale the cost axis by {0}: use a number that is not negative")]
    Scale(f64),
    /// The matrix would have too many cells.
    #[error("{cost} by {depth} are too many pixels: use a smaller cost scale, or fold recursion")]
    TooLarge {
        /// Columns.
        cost: usize,
        /// Rows.
        depth: usize,
    },
    /// The pixels belong to another graph.
    #[error(
        "these pixels have {pixels} rows, but the graph has {graph} levels: they belong to another graph"
    )]
    OtherGraph {
        /// Rows of the pixels.
        pixels: usize,
        /// Levels of the graph.
        graph: usize,
    },
    /// A box lies outside the picture, which the reference refuses.
    #[doc(hidden)]
    #[error("a box at depth {depth} lies outside the picture")]
    Outside {
        /// Depth of the box.
        depth: u32,
    },
}

/// Paints a graph. `costscale` is the number of columns for each sample. By default there are at most about 1000 columns.
///
/// The root's span may start anywhere, as in a part of another graph. It is painted from the first column on.
///
/// # Errors
/// If there is no colour for a box, or if the matrix would be too large.
pub fn flamepixels(
    graph: &Graph,
    colors: &(impl ColorFunction + ?Sized),
    costscale: Option<f64>,
) -> Result<Pixels, PixelsError> {
    pixels(graph, colors, costscale, false)
}

/// As [`flamepixels`], with spans as they are, as in the reference: boxes outside are errors.
#[doc(hidden)]
pub fn flamepixels_unmoved(
    graph: &Graph,
    colors: &(impl ColorFunction + ?Sized),
    costscale: Option<f64>,
) -> Result<Pixels, PixelsError> {
    pixels(graph, colors, costscale, true)
}

fn pixels(
    graph: &Graph,
    colors: &(impl ColorFunction + ?Sized),
    costscale: Option<f64>,
    unmoved: bool,
) -> Result<Pixels, PixelsError> {
    let width = graph.root().span.len() as f64;
    let scale = costscale.unwrap_or(if width < COLUMNS { 1.0 } else { COLUMNS / width });
    if !(scale >= 0.0 && scale.is_finite()) {
        return Err(PixelsError::Scale(scale));
    }
    let columns = (width * scale).round_ties_even() as usize;
    let mut pixels = Matrix::filled(columns, graph.depth(), colors.background())?;
    let mut next = vec![1; pixels.depth];
    let painter = Painter { graph, scale, unmoved };
    painter.paint(&mut pixels, |node| {
        colors.node(&mut next, graph, node).ok_or(PixelsError::NoColor { depth: node.depth })
    })?;
    Ok(pixels)
}

/// The stack frames of pixels: a matrix of the same size.
///
/// The scale is computed from the number of columns. If the pixels had a custom scale, tags may differ from them by one
/// column, as in the reference.
///
/// # Errors
/// If the pixels belong to another graph.
pub fn flametags(graph: &Graph, pixels: &Pixels) -> Result<Tags, PixelsError> {
    if pixels.depth != graph.depth() {
        return Err(PixelsError::OtherGraph { pixels: pixels.depth, graph: graph.depth() });
    }
    let mut index = Matrix::filled(pixels.cost, pixels.depth, 1)?;
    let mut frames = vec![Frame::unknown(0)];
    // By frame: its number, or 0 if it has none yet.
    let mut numbers: Vec<u32> = vec![0; graph.frames().len()];
    let unknown = |frame: &Frame| frame.is_unknown() && frame.module.is_empty();
    let painter =
        Painter { graph, scale: pixels.cost as f64 / graph.root().span.len() as f64, unmoved: false };
    painter.paint(&mut index, |node| {
        let number = &mut numbers[node.frame.0 as usize];
        if *number == 0 {
            let frame = graph.frame(node);
            if !unknown(frame) {
                frames.push(frame.clone());
            }
            *number = if unknown(frame) { 1 } else { frames.len() as u32 };
        }
        Ok(*number)
    })?;
    Ok(Tags { index, frames })
}

struct Painter<'g> {
    graph: &'g Graph,
    scale: f64,
    unmoved: bool,
}

impl Painter<'_> {
    /// Fills the cells of all boxes, depth first.
    fn paint<T: Copy>(
        &self,
        matrix: &mut Matrix<T>,
        mut of: impl FnMut(&Node) -> Result<T, PixelsError>,
    ) -> Result<(), PixelsError> {
        let before = if self.unmoved { 0 } else { i128::from(self.graph.root().span.start()) - 1 };
        let column =
            |position: i64| (((i128::from(position) - before) as f64) * self.scale).round_ties_even() as i64;
        let columns = matrix.cost as i64;
        for node in self.graph.nodes() {
            let value = of(node)?;
            let (first, last) = (column(node.span.start()).max(1), column(node.span.stop()));
            if first <= last && last > columns && self.unmoved {
                return Err(PixelsError::Outside { depth: node.depth });
            }
            let last = last.min(columns);
            if first <= last {
                let row = node.depth as usize * matrix.cost;
                matrix.cells[row..][first as usize - 1..last as usize].fill(value);
            }
        }
        Ok(())
    }
}
