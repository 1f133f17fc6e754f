//! Flame graphs of profiles: the graph, its pixels, its tags and its pictures, as FlameGraphs.jl computes them.
//!
//! A [`Graph`] is a tree of boxes. Each box has a frame, a [`Status`] and a [`Span`] of the cost axis, which counts
//! samples. [`Flamegraph`] makes a graph from a profile. Nothing here reads files or asks the system.
//!
//! ```
//! use stackglass_flame::Flamegraph;
//! use stackglass_profile::{Data, Dictionary, Frame};
//!
//! let mut dictionary = Dictionary::new();
//! let rust = |name: &str, line| Frame { func: name.into(), line, foreign: false, ..Frame::unknown(0) };
//! dictionary.set(16, [rust("parse", 7)]);
//! dictionary.set(32, [rust("main", 2)]);
//! let data = Data::new(vec![16, 32, 0, 16, 32, 0, 32, 0]).add_fake_meta(1, 1)?;
//! let drawn = Flamegraph::new().graph((&data, &dictionary))?;
//! let graph = drawn.graph.unwrap();
//! let names: Vec<_> = graph.nodes().iter().map(|node| (&*graph.frame(node).func, node.span.to_string())).collect();
//! assert_eq!(names, [("", "1:3".into()), ("main", "1:3".into()), ("parse", "1:2".into())]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod allocations;
mod by_function;
mod captions;
pub mod categories;
pub mod color;
pub mod colors;
pub mod difference;
mod filter;
pub mod flamegraph;
mod frame_captions;
mod frame_options;
mod from_call_tree;
pub mod graph;
pub mod html;
mod inverted;
mod layout;
mod legend;
pub mod matcher;
pub mod paint;
pub mod pixels;
pub mod png;
pub mod print;
pub mod schemes;
pub mod span;
mod startup_code;
pub mod status;
pub mod svg;

pub use allocations::{AllocationGraph, AllocationRecord, Weight};
pub use captions::name as frame_name;
pub use categories::{Category, CategoryColors, CrateColors, StackFrameCategory};
pub use color::Color;
pub use colors::{ColorBy, ColorFunction, FlameColors, FlameColorsBuilder, Highlight};
pub use difference::{Change, Difference};
pub use flamegraph::{FlameError, Flamegraph, FlamegraphResult, Warning};
pub use graph::{FrameId, Graph, GraphBuilder, Node, NodeId};
pub use html::Page;
pub use matcher::Matcher;
pub use paint::{Paint, Painted, Rgb, Swatch};
pub use pixels::{Matrix, Pixels, PixelsError, Tags, flamepixels, flametags};
pub use print::{TreeText, frame_text, node_text};
pub use span::Span;
pub use status::Status;
pub use svg::Svg;
