//! Cases of printed graphs and frames.

use super::node::{frame, graph};
use crate::same::{same, same_text};
use serde_json::{Value, json};
use stackglass_flame::{TreeText, frame_text, node_text};

pub(crate) fn judge(case: &Value) -> Result<(), String> {
    let Some(graph) = graph(&case["graph"]) else { return Err("the case has no graph\n".to_owned()) };
    let text = |key: &str| case[key].as_str().unwrap_or_default();
    same_text(text("depth_all"), &TreeText::new(&graph).levels(usize::MAX).to_string(), false)?;
    same_text(text("depth5"), &TreeText::new(&graph).to_string(), false)?;
    same_text(text("depth2"), &TreeText::new(&graph).levels(2).to_string(), false)?;
    same(&case["show"], &json!(format!("Node({})", node_text(&graph, graph.root()))))?;
    for pair in case["frames"].as_array().into_iter().flatten() {
        same(&pair[1], &json!(frame_text(&frame(&pair[0]))))?;
    }
    Ok(())
}
