//! Converts allocation records and options to a graph.

use super::graphs::options;
use super::node::{Outcome, frame};
use crate::Mode;
use serde_json::Value;
use stackglass_flame::flamegraph::Quirks;
use stackglass_flame::{AllocationGraph, AllocationRecord};
use stackglass_profile::Frame;

pub(crate) fn run(file: &Value, case: &Value, mode: Mode) -> Outcome {
    let frames: Vec<Frame> = file["frames"].as_array().into_iter().flatten().map(frame).collect();
    let records = file["allocs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let stacks: Vec<Vec<Frame>> = records
        .iter()
        .map(|record| {
            let stack = record["stack"].as_array().into_iter().flatten();
            stack.filter_map(|index| frames.get(index.as_u64()? as usize).cloned()).collect()
        })
        .collect();
    let records = records.iter().zip(&stacks).map(|(record, stack)| AllocationRecord {
        stack,
        size: record["size"].as_u64().unwrap_or_default(),
        type_name: record["type"].as_str().unwrap_or_default(),
    });
    let stored = &case["options"];
    let Ok(weight) = stored["mode"].as_str().unwrap_or("bytes").parse() else { return Outcome::failure() };
    let mut options = options(stored);
    if mode == Mode::Recorded {
        options = options.quirks(Quirks::ALL);
    }
    Outcome::ours(AllocationGraph::new(options, weight).graph(records))
}
