//! Frames, boxes and graphs as text, in the format of FlameGraphs.jl and AbstractTrees.jl.

use crate::{Graph, Node, NodeId};
use stackglass_profile::{Frame, sanitize};
use std::fmt;

/// Default number of levels printed below the root, as in Julia.
pub const LEVELS: usize = 5;

/// A frame as filters see it: name, ` at FILE:LINE` and ` [inlined]`.
pub fn frame_text(frame: &Frame) -> String {
    let name = match &*frame.func {
        "" => format!("ip:{:#x}", frame.address),
        func => match func.find('#') {
            Some(at) if at > 0 => func[..at].to_owned(),
            _ => func.to_owned(),
        },
    };
    let place = match (&*frame.file, frame.line) {
        ("", _) => String::new(),
        (file, line) => {
            let line = if line < 0 { "?".to_owned() } else { line.to_string() };
            format!(" at {}:{line}", file.rsplit('/').next().unwrap_or(file))
        }
    };
    format!("{name}{place}{}", if frame.inlined { " [inlined]" } else { "" })
}

/// A box: `NodeData(FRAME, 0x00, 1:7)`.
pub fn node_text(graph: &Graph, node: &Node) -> String {
    format!("NodeData({}, {}, {})", sanitize(&frame_text(graph.frame(node))), node.status, node.span)
}

/// A graph as a tree of lines.
#[derive(Clone, Copy, Debug)]
pub struct TreeText<'a> {
    graph: &'a Graph,
    levels: usize,
}

impl<'a> TreeText<'a> {
    /// [`LEVELS`] levels below the root, as in Julia.
    pub fn new(graph: &'a Graph) -> TreeText<'a> {
        TreeText { graph, levels: LEVELS }
    }

    /// Sets the number of levels below the root.
    pub fn levels(self, levels: usize) -> TreeText<'a> {
        TreeText { levels, ..self }
    }
}

impl fmt::Display for TreeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = self.graph.nodes();
        writeln!(f, "{}", node_text(self.graph, &nodes[0]))?;
        let mut prefix = String::new();
        // By level: the length of the prefix of its children, and the end of its node.
        let mut open: Vec<(usize, NodeId)> = vec![(0, nodes[0].end)];
        let mut number: NodeId = 1;
        if self.levels == 0 && nodes.len() > 1 {
            return write!(f, "⋮\n\n");
        }
        while (number as usize) < nodes.len() {
            let node = &nodes[number as usize];
            open.truncate(node.depth as usize);
            let (length, parent_end) = open[open.len() - 1];
            prefix.truncate(length);
            let last = node.end >= parent_end;
            writeln!(f, "{prefix}{}{}", if last { "└─ " } else { "├─ " }, node_text(self.graph, node))?;
            prefix.push_str(if last { "   " } else { "│  " });
            open.push((prefix.len(), node.end));
            if node.depth as usize >= self.levels && node.end > number + 1 {
                write!(f, "{prefix}⋮\n{prefix}\n")?;
                number = node.end;
            } else {
                number += 1;
            }
        }
        Ok(())
    }
}
