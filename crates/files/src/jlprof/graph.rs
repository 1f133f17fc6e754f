//! The nodes of a flame graph as they lie in a file: one after the other, each before what is in it.
//!
//! Julia recurses once a tag and dies of deep graphs; here a node is read or written when its turn comes, and only its
//! depth is remembered. What Julia accepts is accepted: a graph that ends at any tag, more ends than
//! nodes, nodes behind the root's end (they are further children of the root), any status, any span.

use super::error::JlprofError;
use super::layout::{END, NODE};
use super::source::Source;
use stackglass_profile::Frame;
use std::io::Read;

/// A node of a flame graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GraphNode<F = Frame> {
    /// Nodes that it is in; none for the root, and for nothing else.
    pub depth: usize,
    /// What it shows.
    pub frame: F,
    /// Its status bits.
    pub status: u8,
    /// First position of its span.
    pub start: i64,
    /// Last position. Julia takes one that is before `start - 1` for `start - 1`.
    pub stop: i64,
}

/// The nodes of a file, the root first, each before what is in it.
///
/// Reading stops at the first error.
#[derive(Debug)]
pub struct Nodes<R> {
    source: Source<R>,
    magic: Option<[u8; 8]>,
    /// Depth of the next node.
    depth: usize,
    done: bool,
}

impl<R> Nodes<R> {
    /// Begins at the root's tag.
    pub(super) fn new(source: Source<R>, magic: Option<[u8; 8]>) -> Nodes<R> {
        Nodes { source, magic, depth: 0, done: false }
    }

    /// The file's first eight bytes where they are not the right ones; Julia does not look at them.
    pub fn magic(&self) -> Option<[u8; 8]> {
        self.magic
    }
}

impl<R: Read> Nodes<R> {
    fn node(&mut self) -> Result<Option<GraphNode>, JlprofError> {
        loop {
            let at = self.source.at;
            match (self.source.byte()?, self.depth) {
                (Some(NODE), _) => break,
                // The root stays open.
                (Some(END), 1..) => self.depth = (self.depth - 1).max(1),
                (Some(found), _) => return Err(JlprofError::Tag { at, found }),
                (None, 0) => return Err(JlprofError::Cut { at, inside: "the root" }),
                (None, _) => return Ok(None),
            }
        }
        let frame = self.source.frame()?;
        let [status] = self.source.bytes("the status of a node")?;
        let start = self.source.i64("a span")?;
        let stop = self.source.i64("a span")?;
        let depth = self.depth;
        self.depth += 1;
        Ok(Some(GraphNode { depth, frame, status, start, stop }))
    }
}

impl<R: Read> Iterator for Nodes<R> {
    type Item = Result<GraphNode, JlprofError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let node = self.node().transpose();
        self.done = !matches!(node, Some(Ok(_)));
        node
    }
}
