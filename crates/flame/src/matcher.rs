//! Conditions of filters.

use crate::{Graph, Node, frame_text};
use regex::Regex;
use std::fmt;

type Test = Box<dyn Fn(&Graph, &Node) -> bool + Send + Sync>;

/// A condition on boxes. Texts and regular expressions refer to the printed frame, see [`frame_text`].
pub enum Matcher {
    /// The printed frame contains this text.
    Text(String),
    /// The printed frame matches this expression.
    Regex(Regex),
    /// A predicate on the box.
    Test(Test),
}

impl Matcher {
    /// A condition by a closure.
    pub fn test(test: impl Fn(&Graph, &Node) -> bool + Send + Sync + 'static) -> Matcher {
        Matcher::Test(Box::new(test))
    }

    /// By node of a graph: whether it matches.
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
