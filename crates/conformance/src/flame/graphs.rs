//! Converts samples and options to a graph.

use super::node::{Outcome, frame, number};
use crate::Mode;
use serde_json::Value;
use stackglass_flame::flamegraph::Quirks;
use stackglass_flame::{Flamegraph, Matcher, Status};
use stackglass_profile::{Data, Dictionary, Frame};
use stackglass_report::Pick;

pub(crate) fn run(profile: &Value, case: &Value, mode: Mode) -> Outcome {
    let word = |value: &Value| value.as_u64().unwrap_or_else(|| number(value) as u64);
    let data = Data::new(profile["data"].as_array().into_iter().flatten().map(word).collect());
    let frames: Vec<Frame> = profile["frames"].as_array().into_iter().flatten().map(frame).collect();
    let mut dictionary = Dictionary::new();
    for entry in profile["lidict"].as_array().into_iter().flatten() {
        let chain = entry[1].as_array().into_iter().flatten();
        let chain = chain.filter_map(|index| frames.get(index.as_u64()? as usize).cloned());
        dictionary.set(word(&entry[0]), chain);
    }
    let stored = &case["options"];
    let mut options = options(stored)
        .combine(stored["combine"] == true)
        .recur(stored["recur"].as_str().and_then(|word| word.parse().ok()).unwrap_or_default())
        .tasks(pick(&stored["tasks"]).unwrap_or_default())
        .threads(match (pick(&stored["threads"]), mode) {
            (Some(pick), _) => pick,
            // The reference means the threads of the reading process.
            (None, Mode::Recorded) => Pick::Range(1..=case["nthreads"].as_u64().unwrap_or(u64::MAX)),
            (None, Mode::Ours) => Pick::All,
        });
    if mode == Mode::Recorded {
        options = options.quirks(Quirks::ALL);
    }
    options.graph((&data, &dictionary)).map_or_else(|_| Outcome::failure(), Outcome::ours)
}

/// The options common to graphs of time and of allocations.
pub(crate) fn options(stored: &Value) -> Flamegraph {
    let mut options =
        Flamegraph::new().c(stored["C"] == true).norepl(stored["norepl"].as_bool().unwrap_or(true));
    for pair in stored["pruned"].as_array().into_iter().flatten() {
        let name = |index: usize| pair[index].as_str().unwrap_or_default();
        options = options.prune(name(0), name(1));
    }
    match matcher(&stored["filter"]) {
        Some(matcher) => options.filter(matcher),
        None => options,
    }
}

fn matcher(stored: &Value) -> Option<Matcher> {
    let value = stored["value"].clone();
    Some(match stored["type"].as_str()? {
        "string" => Matcher::Text(value.as_str()?.to_owned()),
        "regex" => {
            let mut regex = regex::RegexBuilder::new(value.as_str()?);
            regex.case_insensitive(stored["ignore_case"] == true);
            Matcher::Regex(regex.build().ok()?)
        }
        _ => Matcher::test(move |graph, node| {
            let frame = graph.frame(node);
            value.as_object().into_iter().flatten().all(|(key, wanted)| match &**key {
                "func" => wanted == &*frame.func,
                "file" => wanted == &*frame.file,
                "line" => number(wanted) == frame.line,
                "from_c" => *wanted == frame.foreign,
                "inlined" => *wanted == frame.inlined,
                "min_width" => wanted.as_u64().is_some_and(|least| node.span.len() >= least),
                "status_any" => wanted.as_u64().is_some_and(|bits| node.status.any(Status(bits as u8))),
                _ => false,
            })
        }),
    })
}

fn pick(stored: &Value) -> Option<Pick> {
    match stored {
        Value::Null => None,
        Value::Array(list) => Some(Pick::List(list.iter().map(|id| number(id) as u64).collect())),
        one => Some(Pick::One(number(one) as u64)),
    }
}
