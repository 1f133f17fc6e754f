//! Cases of kind `jlprof`: files that Julia wrote, or refused.

use crate::flame::node;
use crate::same::same;
use serde_json::{Value, json};
use stackglass_files::jlprof::{Content, JlprofError, Samples, read, read_from};
use stackglass_flame::{FlamegraphResult, Graph, GraphBuilder, Span, Status};
use stackglass_profile::{Dictionary, Frame};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Offset of the form, and the form of flame graphs.
const FORM: (usize, u8) = (12, 2);

/// Samples or flame graphs.
pub(crate) fn kind(index: &Path, case: &Value) -> &'static str {
    let bytes = fs::read(file(index, case)).unwrap_or_default();
    if bytes.get(FORM.0) == Some(&FORM.1) { "jlprof-graph" } else { "jlprof-samples" }
}

fn file(index: &Path, case: &Value) -> PathBuf {
    index.with_file_name(case["file"].as_str().unwrap_or_default())
}

/// Checks what a file decodes to, and whether it may be opened by name.
pub(crate) fn judge(index: &Path, case: &Value) -> Result<(), String> {
    let path = file(index, case);
    let bytes = fs::read(&path).map_err(|error| format!("cannot read {}: {error}\n", path.display()))?;
    let verdict = |result: Result<(), String>| match result {
        Ok(()) => json!("accepted"),
        Err(error) => json!(format!("refused: {error}")),
    };
    // Only the fact of a refusal was recorded, not its message.
    let check = |what: &str, recorded: &Value, ours: Result<(), String>| match (recorded.as_bool(), &ours) {
        (Some(true), Ok(())) | (Some(false), Err(_)) => Ok(()),
        (Some(ok), _) => {
            let expected = format!("{what}: {}", if ok { "accepted" } else { "refused" });
            same(&json!(expected), &json!(format!("{what}: {}", verdict(ours).as_str().unwrap_or_default())))
        }
        (None, _) => Err(format!("the case does not say whether the file is accepted {what}\n")),
    };
    let decoded = read_from(&bytes[..]).and_then(Decoded::whole);
    check("by its content", &case["ok"], decoded.as_ref().map(drop).map_err(ToString::to_string))?;
    let by_name = read(&path).and_then(Decoded::whole);
    check("by its name", &case["by_name"]["ok"], by_name.map(drop).map_err(|error| error.to_string()))?;
    match decoded {
        Ok(Decoded::Samples(samples)) => judge_samples(case, &samples),
        Ok(Decoded::Graph(graph)) => judge_graph(case, graph),
        Err(_) => Ok(()),
    }
}

/// Reads a whole file.
enum Decoded {
    Samples(Samples),
    Graph(Graph),
}

impl Decoded {
    fn whole<R: Read>(content: Content<R>) -> Result<Decoded, JlprofError> {
        let nodes = match content {
            Content::Samples(samples) => return Ok(Decoded::Samples(samples)),
            Content::Graph(nodes) => nodes,
        };
        let mut builder = GraphBuilder::default();
        for node in nodes {
            let node = node?;
            let frame = builder.frame(&node.frame);
            builder.open_at(node.depth, frame, Status(node.status), Span::new(node.start, node.stop));
        }
        Ok(Decoded::Graph(builder.finish().unwrap_or_default()))
    }
}

fn judge_graph(case: &Value, graph: Graph) -> Result<(), String> {
    let expected = node::graph(&case["decoded"]["graph"]).ok_or("the case has no decoded graph\n")?;
    let outcome = |graph| node::Outcome::ours(FlamegraphResult { graph: Some(graph), warning: None });
    node::compare(&outcome(expected), &outcome(graph), false)
}

fn judge_samples(case: &Value, samples: &Samples) -> Result<(), String> {
    let expected = &case["decoded"];
    let (Some(words), Some(table)) = (expected["data"].as_array(), expected["lidict"].as_array()) else {
        return Err("the case has no decoded samples\n".to_owned());
    };
    same(
        &words.iter().map(text).collect(),
        &samples.data.words().iter().map(|word| json!(word.to_string())).collect(),
    )?;
    let mut table: Vec<Value> = table.iter().map(|entry| json!([text(&entry[0]), entry[1]])).collect();
    table.sort_by_key(|entry| entry[0].as_str().and_then(|word| word.parse::<i128>().ok()));
    same(&json!(table), &decoded(&samples.dictionary))
}

/// Converts all integers to decimal strings, as those beyond 64 signed bits are recorded.
fn text(number: &Value) -> Value {
    let text = number.as_str().map_or_else(|| number.to_string(), str::to_owned);
    // Addresses and words may be signed in the record.
    match text.parse::<i64>() {
        Ok(negative) if negative < 0 => json!((negative as u64).to_string()),
        _ => json!(text),
    }
}

fn decoded(dictionary: &Dictionary) -> Value {
    let frames = |address: u64| -> Value {
        let frame = |f: &Frame| json!([*f.func, *f.file, f.line, f.foreign, f.inlined]);
        dictionary.get(address).unwrap_or_default().iter().map(frame).collect()
    };
    dictionary.addresses().into_iter().map(|address| json!([address.to_string(), frames(address)])).collect()
}
