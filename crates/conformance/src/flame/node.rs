//! Recorded trees and their comparison.

use crate::same::same_text;
use serde_json::Value;
use stackglass_flame::{FlamegraphResult, Graph, GraphBuilder, Span, Status, Warning};
use stackglass_profile::Frame;

/// The result of a case: a graph, a warning or an error.
pub(crate) struct Outcome {
    pub graph: Option<Graph>,
    pub warning: Option<&'static str>,
    pub failed: bool,
}

impl Outcome {
    pub(crate) fn failure() -> Outcome {
        Outcome { graph: None, warning: None, failed: true }
    }

    pub(crate) fn ours(drawn: FlamegraphResult) -> Outcome {
        let warning = drawn.warning.map(|warning| match warning {
            Warning::Empty => "empty",
            _ => "filter-ignored",
        });
        Outcome { graph: drawn.graph, warning, failed: false }
    }

    pub(crate) fn recorded(case: &Value) -> Result<Outcome, String> {
        let warning = match case["warning"].as_str() {
            None => None,
            Some("empty") => Some("empty"),
            Some("filter-ignored") => Some("filter-ignored"),
            Some(other) => return Err(format!("unknown warning {other}\n")),
        };
        Ok(Outcome { graph: graph(&case["result"]), warning, failed: !case["error"].is_null() })
    }

    /// The result as text, one line for each box.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        if self.failed {
            text += "an error\n";
        }
        if let Some(warning) = self.warning {
            text += &format!("warning: {warning}\n");
        }
        for node in self.graph.iter().flat_map(Graph::nodes) {
            let graph = self.graph.as_ref().map(|graph| graph.frame(node));
            let frame = graph.map(frame_line).unwrap_or_default();
            text += &format!("{}{frame} {} {}\n", "  ".repeat(node.depth as usize), node.status, node.span);
        }
        text
    }
}

fn frame_line(frame: &Frame) -> String {
    let flag = |set, name| if set { name } else { "" };
    let Frame { func, file, line, foreign, inlined, .. } = frame;
    format!("{func:?} {file:?}:{line}{}{}", flag(*foreign, " foreign"), flag(*inlined, " inlined"))
}

/// Compares results; with `ties`, in any order of siblings.
pub(crate) fn compare(recorded: &Outcome, ours: &Outcome, ties: bool) -> Result<(), String> {
    if ties && let (Some(theirs), Some(graph)) = (&recorded.graph, &ours.graph) {
        let same = canonical(theirs) == canonical(graph) && recorded.warning == ours.warning;
        return match same {
            true => Ok(()),
            false => Err(format!("in any order of siblings:\n--- {}+++ {}", recorded.text(), ours.text())),
        };
    }
    same_text(&recorded.text(), &ours.text(), false)
}

/// A graph in a form in which the order of siblings and the starts of spans do not matter.
fn canonical(graph: &Graph) -> String {
    let nodes = graph.nodes();
    let mut texts: Vec<String> = vec![String::new(); nodes.len()];
    for number in (0..nodes.len()).rev() {
        let node = &nodes[number];
        let mut below: Vec<String> =
            graph.children(number as u32).map(|child| std::mem::take(&mut texts[child as usize])).collect();
        below.sort();
        let frame = frame_line(graph.frame(node));
        texts[number] = format!("({frame} {} {} {})", node.status, node.span.len(), below.concat());
    }
    texts.swap_remove(0)
}

/// `[func, file, line, from_c, inlined]`.
pub(crate) fn frame(stored: &Value) -> Frame {
    Frame {
        func: stored[0].as_str().unwrap_or_default().into(),
        file: stored[1].as_str().unwrap_or_default().into(),
        line: number(&stored[2]),
        foreign: stored[3].as_bool().unwrap_or_default(),
        inlined: stored[4].as_bool().unwrap_or_default(),
        ..Frame::unknown(0)
    }
}

/// A signed number, possibly as text.
pub(crate) fn number(stored: &Value) -> i64 {
    stored.as_i64().or_else(|| stored.as_str()?.parse().ok()).unwrap_or(i64::MIN)
}

/// A recorded tree; `None` if there is none.
pub(crate) fn graph(root: &Value) -> Option<Graph> {
    if root.is_null() {
        return None;
    }
    let mut builder = GraphBuilder::default();
    let mut steps = vec![Some(root)];
    while let Some(step) = steps.pop() {
        let Some(node) = step else {
            builder.close();
            continue;
        };
        let frame = Frame {
            func: node["func"].as_str().unwrap_or_default().into(),
            file: node["file"].as_str().unwrap_or_default().into(),
            line: number(&node["line"]),
            foreign: node["from_c"].as_bool().unwrap_or_default(),
            inlined: node["inlined"].as_bool().unwrap_or_default(),
            // The module of a node is a dotted path of names.
            krate: node["module"].as_str().unwrap_or_default().into(),
            ..Frame::unknown(0)
        };
        let status = Status(node["status"].as_u64().unwrap_or_default() as u8);
        let frame = builder.frame(&frame);
        builder.open(frame, status, Span::new(number(&node["span"][0]), number(&node["span"][1])));
        steps.push(None);
        steps.extend(node["children"].as_array().into_iter().flatten().rev().map(Some));
    }
    builder.finish()
}
