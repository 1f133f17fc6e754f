//! A flame graph: nodes in pre-order, each with its frame, status bits and span of the cost axis.
//!
//! It is one flat list: the callees of a node follow it, up to [`Node::end`]. Walking it needs no recursion, so graphs may
//! be of any depth. A node takes 32 bytes.
//!
//! Source: `NodeData` of FlameGraphs.jl.

use crate::{Span, Status};
use foldhash::{HashMap, HashSet};
use stackglass_profile::{Frame, ShortPath};
use std::ops::Range;
use std::sync::Arc;

/// Index into [`Graph::nodes`]; 0 is the root.
pub type NodeId = u32;

/// Index into [`Graph::frames`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FrameId(pub u32);

/// A box of the picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Node {
    /// Its part of the cost axis.
    pub span: Span,
    /// Its frame.
    pub frame: FrameId,
    /// One more than the number of the last node in it or below it.
    pub end: NodeId,
    /// Level below the root, which has 0.
    pub depth: u32,
    /// Status bits of it and of what is hidden directly below it.
    pub status: Status,
}

/// A flame graph. It always has a root.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    nodes: Vec<Node>,
    frames: Vec<Frame>,
    short_paths: HashMap<Arc<str>, ShortPath>,
}

impl Graph {
    /// All nodes in pre-order. Never empty.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// All frames, unordered.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// The root.
    pub fn root(&self) -> &Node {
        &self.nodes[0]
    }

    /// The number of a node of this graph; `None` for a copy and for nodes of other graphs.
    pub fn number_of(&self, node: &Node) -> Option<NodeId> {
        let bytes = std::ptr::from_ref(node).addr().checked_sub(self.nodes.as_ptr().addr())?;
        let number = bytes / size_of::<Node>();
        let is_it = self.nodes.get(number).is_some_and(|other| std::ptr::eq(other, node));
        is_it.then_some(number as NodeId)
    }

    /// The frame of a node.
    pub fn frame(&self, node: &Node) -> &Frame {
        &self.frames[node.frame.0 as usize]
    }

    /// The short form of a source path, if it has one.
    pub fn short_path(&self, file: &str) -> Option<&ShortPath> {
        self.short_paths.get(file)
    }

    /// Number of levels, including the root.
    pub fn depth(&self) -> usize {
        self.nodes.iter().map(|node| node.depth as usize + 1).max().unwrap_or(0)
    }

    /// The callees of a node, in order.
    pub fn children(&self, of: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let end = self.nodes[of as usize].end;
        let mut next = of + 1;
        std::iter::from_fn(move || {
            let child = next;
            (child < end).then(|| {
                next = self.nodes[child as usize].end;
                child
            })
        })
    }

    /// A node and everything below it.
    pub fn branch(&self, of: NodeId) -> Range<NodeId> {
        of..self.nodes[of as usize].end
    }

    /// The parent of each node. The root is its own parent.
    pub fn parents(&self) -> Vec<NodeId> {
        let mut path: Vec<NodeId> = Vec::new();
        let parents = (0..).zip(&self.nodes).map(|(number, node)| {
            path.truncate(node.depth as usize);
            let parent = path.last().copied().unwrap_or(0);
            path.push(number);
            parent
        });
        parents.collect()
    }

    /// The graph of some of the nodes, with their spans. Callees of omitted nodes move to the nearest kept ancestor. The root
    /// is always kept.
    pub(crate) fn retain(&self, kept: impl Fn(NodeId) -> bool) -> Graph {
        let mut nodes: Vec<Node> = Vec::with_capacity(self.nodes.len());
        // Open nodes: their ends in the old numbering, and their new numbers.
        let mut open: Vec<(NodeId, usize)> = Vec::new();
        for (number, node) in (0..).zip(&self.nodes) {
            if number > 0 && !kept(number) {
                continue;
            }
            while let Some((_, new)) = open.pop_if(|(end, _)| *end <= number) {
                nodes[new].end = nodes.len() as NodeId;
            }
            open.push((node.end, nodes.len()));
            nodes.push(Node { depth: open.len() as u32 - 1, ..*node });
        }
        while let Some((_, new)) = open.pop() {
            nodes[new].end = nodes.len() as NodeId;
        }
        Graph { nodes, frames: self.frames.clone(), short_paths: self.short_paths.clone() }
    }

    /// The graph with these branches, in this order, below the root. `lift` is the number of levels that a branch moves up.
    pub(crate) fn with_branches(&self, order: &[NodeId], lift: impl Fn(NodeId) -> u32) -> Graph {
        let mut nodes = vec![self.nodes[0]];
        for branch in order {
            let (offset, lifted) = (nodes.len() as NodeId, lift(*branch));
            nodes.extend(self.branch(*branch).map(|number| {
                let node = self.nodes[number as usize];
                Node { end: node.end - branch + offset, depth: node.depth - lifted, ..node }
            }));
        }
        nodes[0].end = nodes.len() as NodeId;
        Graph { nodes, frames: self.frames.clone(), short_paths: self.short_paths.clone() }
    }

    /// By node: samples that ended in it, the part of its span that its children leave free.
    pub fn own(&self) -> Vec<u64> {
        let mut own: Vec<u64> = self.nodes.iter().map(|node| node.span.len()).collect();
        let mut path: Vec<NodeId> = Vec::new();
        for (number, node) in (0..).zip(&self.nodes) {
            path.truncate(node.depth as usize);
            if let Some(parent) = path.last() {
                let own = &mut own[*parent as usize];
                *own = own.saturating_sub(node.span.len());
            }
            path.push(number);
        }
        own
    }
}

/// Builds a graph node by node in pre-order.
///
/// ```
/// use stackglass_flame::{GraphBuilder, Span, Status};
/// use stackglass_profile::Frame;
///
/// let mut builder = GraphBuilder::default();
/// let unknown = builder.frame(&Frame::unknown(0));
/// builder.open(unknown, Status::NONE, Span::new(1, 10));
/// builder.open(unknown, Status::DISPATCH, Span::new(1, 4));
/// builder.close();
/// builder.open(unknown, Status::NONE, Span::new(5, 8));
/// let graph = builder.finish().unwrap();
/// assert_eq!((graph.nodes().len(), graph.depth()), (3, 2));
/// assert_eq!(graph.children(0).collect::<Vec<_>>(), [1, 2]);
/// assert_eq!(graph.own(), [2, 4, 4]);
/// ```
#[derive(Debug, Default)]
pub struct GraphBuilder {
    graph: Graph,
    numbers: HashMap<FrameKey, FrameId>,
    path: Vec<NodeId>,
}

/// All of a frame that a picture may show.
#[derive(PartialEq, Eq, Hash, Debug)]
struct FrameKey(Frame, Option<Arc<str>>, Arc<str>, Arc<str>);

impl GraphBuilder {
    /// A builder with the frames of another graph, under the same numbers.
    pub(crate) fn with_frames_of(graph: &Graph) -> GraphBuilder {
        let (frames, short_paths) = (graph.frames.clone(), graph.short_paths.clone());
        GraphBuilder { graph: Graph { nodes: Vec::new(), frames, short_paths }, ..GraphBuilder::default() }
    }

    /// Returns the number of a frame. Equal frames share a number.
    pub fn frame(&mut self, frame: &Frame) -> FrameId {
        let key = FrameKey(frame.clone(), frame.spec.clone(), frame.module.clone(), frame.krate.clone());
        let next = FrameId(self.graph.frames.len() as u32);
        *self.numbers.entry(key).or_insert_with(|| {
            self.graph.frames.push(frame.clone());
            next
        })
    }

    /// Sets the short form of a source path.
    pub fn short_path(&mut self, file: Arc<str>, short: ShortPath) {
        self.graph.short_paths.insert(file, short);
    }

    /// Reserves memory for this many nodes.
    pub(crate) fn reserve(&mut self, nodes: usize) {
        self.graph.nodes.reserve(nodes);
    }

    /// The source files of all frames so far.
    pub(crate) fn files(&self) -> impl Iterator<Item = Arc<str>> {
        let files: HashSet<Arc<str>> = self.graph.frames.iter().map(|f| f.file.clone()).collect();
        files.into_iter()
    }

    /// Adds status bits to the open node.
    pub(crate) fn mark(&mut self, status: Status) {
        if let Some(node) = self.path.last() {
            self.graph.nodes[*node as usize].status |= status;
        }
    }

    /// Begins a node below the open one, or below the root if none is open.
    pub fn open(&mut self, frame: FrameId, status: Status, span: Span) -> NodeId {
        let number = self.graph.nodes.len() as NodeId;
        if self.path.is_empty() && number > 0 {
            self.path.push(0);
        }
        let depth = self.path.len() as u32;
        self.graph.nodes.push(Node { span, frame, end: number + 1, depth, status });
        self.path.push(number);
        number
    }

    /// Begins a node at a depth, 0 for the root. Open nodes at this depth and deeper end first.
    pub fn open_at(&mut self, depth: usize, frame: FrameId, status: Status, span: Span) -> NodeId {
        while self.path.len() > depth.max(1) {
            self.close();
        }
        self.open(frame, status, span)
    }

    /// Ends the open node.
    pub fn close(&mut self) {
        if let Some(node) = self.path.pop() {
            self.graph.nodes[node as usize].end = self.graph.nodes.len() as NodeId;
        }
    }

    /// Number of open nodes.
    pub fn depth(&self) -> usize {
        self.path.len()
    }

    /// Ends all open nodes and returns the graph; `None` if it has no root.
    pub fn finish(mut self) -> Option<Graph> {
        while !self.path.is_empty() {
            self.close();
        }
        let Graph { nodes, .. } = &mut self.graph;
        let all = nodes.len() as NodeId;
        nodes.first_mut()?.end = all;
        Some(self.graph)
    }
}
