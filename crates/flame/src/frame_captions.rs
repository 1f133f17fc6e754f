//! Captions of frames, computed once per frame, not per box.

use crate::{Graph, Node, captions};
use std::cell::OnceCell;

/// Longer names are cut in markup.
const LONGEST: usize = 400;

/// The captions of the frames of a graph.
pub(crate) struct FrameCaptions<'g> {
    graph: &'g Graph,
    frames: Vec<OnceCell<Caption>>,
    /// The root may have a different name.
    root: OnceCell<Caption>,
}

/// The caption of a frame.
pub(crate) struct Caption {
    /// The name, for labels.
    pub(crate) name: String,
    /// Name and location, as markup.
    pub(crate) markup: String,
}

impl<'g> FrameCaptions<'g> {
    pub(crate) fn new(graph: &'g Graph) -> FrameCaptions<'g> {
        let frames = graph.frames().iter().map(|_| OnceCell::new()).collect();
        FrameCaptions { graph, frames, root: OnceCell::new() }
    }

    /// The caption of a box.
    pub(crate) fn of(&self, node: &Node) -> &Caption {
        let cell = if node.depth == 0 { &self.root } else { &self.frames[node.frame.0 as usize] };
        cell.get_or_init(|| {
            let name = captions::node_name(self.graph, node).into_owned();
            let cut = name.char_indices().nth(LONGEST).map_or(&*name, |(end, _)| &name[..end]);
            let more = if cut.len() < name.len() { "…" } else { "" };
            let place = captions::place(self.graph, self.graph.frame(node));
            let line = if place.is_empty() { "" } else { "\n" };
            let markup = captions::markup(&format!("{cut}{more}{line}{place}")).into_owned();
            Caption { name, markup }
        })
    }
}
