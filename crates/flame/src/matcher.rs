//! Which boxes a filter means.

use crate::{Graph, Node, frame_text};
use regex::Regex;
use std::fmt;

/// A condition on boxes. Texts and expressions look at the frame as it is printed, [`frame_text`].
pub enum Matcher {
    /// The printed frame contains this.
    Text(String),
    /// The printed frame has a match of this in it.
    Regex(Regex),
    /// Whatever this says.
    Test(Box<Test>),
}

/// A condition of the reader's own.
type Test = dyn Fn(&Graph, &Node) -> bool + Send + Sync;

impl Matcher {
    /// By a closure.
    pub fn test(test: impl Fn(&Graph, &Node) -> bool + Send + Sync + 'static) -> Matcher {
        Matcher::Test(Box::new(test))
    }

    /// Whether each node of a graph matches.
    pub(crate) fn all(&self, graph: &Graph) -> Vec<bool> {
        let by_text = |text: &dyn Fn(&str) -> bool| {
            let frames: Vec<bool> = graph.frames().iter().map(|frame| text(&frame_text(frame))).collect();
            graph.nodes().iter().map(|node| frames[node.frame.0 as usize]).collect()
        };
        match self {
            Matcher::Text(text) => by_text(&|printed| printed.contains(&**text)),
            Matcher::Regex(regex) => by_text(&|printed| regex.is_match(printed)),
            Matcher::Test(test) => graph.nodes().iter().map(|node| test(graph, node)).collect(),
        }
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Matcher::Text(text) => write!(f, "Text({text:?})"),
            Matcher::Regex(regex) => write!(f, "Regex({regex})"),
            Matcher::Test(_) => f.write_str("Test(…)"),
        }
    }
}
