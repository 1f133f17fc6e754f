//! What is said of a frame, worked out once however many boxes it has.

use crate::{Graph, Node, shown};
use std::cell::OnceCell;

/// Longest name that is written out in full.
const LONGEST: usize = 400;

/// Names of the frames of a graph.
pub(crate) struct Words<'g> {
    graph: &'g Graph,
    frames: Vec<OnceCell<Said>>,
    /// The root may have a name of its own.
    root: OnceCell<Said>,
}

/// What is said of one.
pub(crate) struct Said {
    /// Its name, for labels.
    pub(crate) name: String,
    /// Name and place, as markup.
    pub(crate) told: String,
}

impl<'g> Words<'g> {
    pub(crate) fn new(graph: &'g Graph) -> Words<'g> {
        let frames = graph.frames().iter().map(|_| OnceCell::new()).collect();
        Words { graph, frames, root: OnceCell::new() }
    }

    /// Those of a box.
    pub(crate) fn of(&self, node: &Node) -> &Said {
        let cell = if node.depth == 0 { &self.root } else { &self.frames[node.frame.0 as usize] };
        cell.get_or_init(|| {
            let name = shown::node_name(self.graph, node).into_owned();
            let cut = name.char_indices().nth(LONGEST).map_or(&*name, |(end, _)| &name[..end]);
            let more = if cut.len() < name.len() { "…" } else { "" };
            let place = shown::place(self.graph, self.graph.frame(node));
            let line = if place.is_empty() { "" } else { "\n" };
            let told = shown::markup(&format!("{cut}{more}{line}{place}")).into_owned();
            Said { name, told }
        })
    }
}
