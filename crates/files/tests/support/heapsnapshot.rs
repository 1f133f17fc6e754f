//! A strict check of a `.heapsnapshot`: all that its known readers demand, and more than any of them checks.
//!
//! It shares no code with the writer. It holds the whole file as a tree of values, so it is for small ones.

use serde_json::Value;
use std::collections::HashSet;
use std::path::Path;

/// A snapshot that passed all checks.
#[derive(Debug, PartialEq)]
pub struct Snapshot {
    pub nodes: Vec<Node>,
    /// Sum of the nodes' own sizes.
    pub self_size: u64,
    pub edge_count: usize,
}

#[derive(Debug, PartialEq)]
pub struct Node {
    pub kind: String,
    pub name: String,
    pub id: u64,
    pub self_size: u64,
    /// Kind, label and target.
    pub edges: Vec<(String, Label, usize)>,
}

#[derive(Debug, PartialEq)]
pub enum Label {
    Name(String),
    Index(u64),
}

/// Reads a snapshot.
///
/// # Panics
/// If it is not as readers demand.
pub fn check(path: &Path) -> Snapshot {
    check_bytes(&std::fs::read(path).unwrap())
}

/// As [`check`].
///
/// # Panics
/// If it is not as readers demand.
pub fn check_bytes(bytes: &[u8]) -> Snapshot {
    let text = std::str::from_utf8(bytes).expect("UTF-8");
    assert!(!text.contains('\u{fffd}'), "viewers refuse U+FFFD");
    let file: Value = serde_json::from_str(text).expect("JSON");
    let order = [
        "\"snapshot\":",
        "\"nodes\":[",
        "\"edges\":[",
        "\"trace_function_infos\":[",
        "\"trace_tree\":[",
        "\"samples\":[",
        "\"locations\":[",
        "\"strings\":[",
    ];
    let places: Vec<usize> = order.iter().map(|key| text.find(key).expect(key)).collect();
    assert!(places.is_sorted(), "the order of keys: {places:?}");
    let ours = ["unused", "groups", "regions", "addresses"].into_iter().filter(|key| file.get(key).is_some());
    assert_eq!(file.as_object().unwrap().len(), order.len() + ours.count());
    let (snapshot, meta) = (&file["snapshot"], &file["snapshot"]["meta"]);
    let functions = numbers(&file["trace_function_infos"]).len() / 6;
    assert_eq!(snapshot["trace_function_count"], functions);
    for empty in ["samples", "locations"] {
        assert_eq!(file[empty], serde_json::json!([]), "{empty}");
    }
    let fields: Vec<&str> = texts(&meta["node_fields"]);
    assert_eq!(fields, ["type", "name", "id", "self_size", "edge_count", "trace_node_id", "detachedness"]);
    assert_eq!(texts(&meta["edge_fields"]), ["type", "name_or_index", "to_node"]);
    let types = meta["node_types"].as_array().unwrap();
    assert_eq!(texts(&types[1..].into()), ["string", "number", "number", "number", "number", "number"]);
    let node_kinds = texts(&types[0]);
    let edge_kinds = texts(&meta["edge_types"][0]);
    for fields in ["trace_function_info_fields", "trace_node_fields", "sample_fields", "location_fields"] {
        assert!(!texts(&meta[fields]).is_empty(), "{fields}");
    }
    let strings = texts(&file["strings"]);
    let (nodes, edges) = (numbers(&file["nodes"]), numbers(&file["edges"]));
    let node_count = snapshot["node_count"].as_u64().unwrap() as usize;
    let edge_count = snapshot["edge_count"].as_u64().unwrap() as usize;
    assert_eq!(nodes.len(), 7 * node_count);
    assert_eq!(edges.len(), 3 * edge_count);
    let (mut ids, mut incoming, mut next) = (HashSet::new(), vec![false; node_count], 0);
    let mut found = Snapshot { nodes: Vec::new(), self_size: 0, edge_count };
    for node in nodes.chunks(7) {
        // The sixth number is that of an allocation stack.
        let [kind, name, id, self_size, count, _, detachedness] = node.try_into().unwrap();
        assert!(id % 2 == 1 && ids.insert(id), "id {id} is even or used twice");
        assert_eq!(detachedness, 0);
        let own = &edges[3 * next..3 * (next + count as usize)];
        next += count as usize;
        let edges = own.chunks(3).map(|edge| {
            let (kind, to) = (edge_kinds[edge[0] as usize], edge[2] as usize);
            assert!(to % 7 == 0 && to < nodes.len(), "an edge to {to}");
            incoming[to / 7] = true;
            let label = match kind {
                "element" | "hidden" => Label::Index(edge[1]),
                _ => Label::Name(strings[edge[1] as usize].to_owned()),
            };
            (kind.to_owned(), label, to / 7)
        });
        let edges = edges.collect();
        let (kind, name) = (node_kinds[kind as usize].to_owned(), strings[name as usize].to_owned());
        assert!(!name.starts_with('<') && name != "Object", "DevTools shows {name:?} by another name");
        found.self_size += self_size;
        found.nodes.push(Node { kind, name, id, self_size, edges });
    }
    assert_eq!(next, edge_count, "the sum of edge counts");
    let without: Vec<_> = (1..node_count).filter(|row| !incoming[*row]).collect();
    assert!(without.is_empty(), "no incoming edges: {without:?}");
    assert_eq!(found.nodes[0].kind, "synthetic", "the root");
    for (_, _, to) in &found.nodes[0].edges {
        assert_eq!(found.nodes[*to].kind, "synthetic", "children of the root");
    }
    found
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

/// Numbers of at most 32 bits. Larger ones wrap in readers.
fn numbers(value: &Value) -> Vec<u64> {
    let numbers = value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap());
    numbers.inspect(|number| assert!(*number <= u32::MAX.into(), "{number}")).collect()
}
