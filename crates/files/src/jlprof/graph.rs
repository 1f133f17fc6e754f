//! The nodes of a flame graph in file order, each before its children.
//!
//! Julia recurses for each tag and fails on deep graphs. This reader keeps only the depth of the next node. It accepts
//! everything that Julia accepts: a graph that ends at any tag, more ends than nodes, nodes after the root's end (they are
//! children of the root), any status, any span.

use super::error::JlprofError;
use super::layout::{END, NODE};
use super::source::Source;
use stackglass_profile::Frame;
use std::io::Read;

/// A node of a flame graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GraphNode<F = Frame> {
    /// Its level; 0 for the root only.
    pub depth: usize,
    /// Its frame.
    pub frame: F,
    /// Its status bits.
    pub status: u8,
    /// First position of its span.
    pub start: i64,
    /// Last position. Julia treats one before `start - 1` as `start - 1`.
    pub stop: i64,
}

/// The nodes of a file, each before its children. Reading stops at the first error.
#[derive(Debug)]
pub struct Nodes<R> {
    source: Source<R>,
    magic: Option<[u8; 8]>,
    /// Depth of the next node.
    depth: usize,
    done: bool,
}

impl<R> Nodes<R> {
    /// Starts at the root's tag.
    pub(super) fn new(source: Source<R>, magic: Option<[u8; 8]>) -> Nodes<R> {
        Nodes { source, magic, depth: 0, done: false }
    }

    /// The first eight bytes of the file if they are wrong. Julia does not check them.
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
