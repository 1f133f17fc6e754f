//! `.jlprof`: a file that is read can be written, and is equal when read again; with samples, also as a recording.

use super::memory::bounded;
use stackglass_files::jlprof::{Content, GraphNode, Nodes, Samples, read_from, write_graph_to, write_to};
use stackglass_files::recording_of;

/// The bytes are the file.
pub fn check(bytes: &[u8]) {
    let allowed = 64 * bytes.len() + (64 << 10);
    match bounded(allowed, || read_from(bytes)) {
        Ok(Content::Samples(samples)) => check_samples(bytes, &samples),
        Ok(Content::Graph(nodes)) => check_graph(allowed, nodes),
        Err(_) => {}
    }
}

/// Nodes are passed one by one, so memory depends on their contents, not on their number.
fn check_graph(allowed: usize, nodes: Nodes<&[u8]>) {
    let mut deepest = 0;
    let mut each = |node: &GraphNode| {
        assert!(node.depth <= deepest, "at most one deeper than any before");
        deepest = deepest.max(node.depth + 1);
    };
    let nodes = bounded(allowed, || {
        let nodes: Vec<GraphNode> = nodes.map_while(Result::ok).inspect(&mut each).collect();
        nodes
    });
    if nodes.is_empty() {
        return;
    }
    let mut written = Vec::new();
    write_graph_to(&mut written, nodes.iter().cloned()).expect("memory takes what it is given");
    let Ok(Content::Graph(again)) = read_from(&written[..]) else { panic!("what was written is read") };
    let again: Vec<GraphNode> = again.map(|node| node.expect("all of it is right")).collect();
    assert_eq!(again, nodes);
}

fn check_samples(bytes: &[u8], samples: &Samples) {
    let words = samples.data.words();
    let mut written = Vec::new();
    write_to(&mut written, words.len() as u64, words.iter().copied(), &samples.dictionary)
        .expect("memory takes what it is given");
    let again = read_from(&written[..]).and_then(Content::samples).expect("what was written is read");
    assert_eq!(again.data.words(), words);
    assert_eq!(again.dictionary.addresses(), samples.dictionary.addresses());
    let allowed = 256 * bytes.len() + (1 << 20);
    let _ = bounded(allowed, || recording_of(&samples.data, &samples.dictionary));
}
