//! `.jlprof`: files that Julia wrote, or refused, are read, or refused; what we write is laid out
//! as what Julia writes.

use proptest::prelude::*;
use serde_json::Value;
use stackglass_files::jlprof::{
    Content, GraphNode, JlprofError, Samples, read, read_from, write, write_graph, write_graph_to,
    write_recording, write_to,
};
use stackglass_files::recording_of;
use stackglass_profile::{Data, Dictionary, Frame};
use std::fs;
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/flamegraphs/jlprof")
}

fn cases() -> Vec<Value> {
    let index = fs::read_to_string(folder().join("index.json")).unwrap();
    let index: Value = serde_json::from_str(&index).unwrap();
    index["cases"].as_array().unwrap().clone()
}

/// Integers that do not fit into 64 signed bits are decimal strings.
fn integer(value: &Value) -> i128 {
    value.as_i64().map_or_else(|| value.as_str().unwrap().parse().unwrap(), i128::from)
}

fn frame(func: &str, file: &str, line: i64, foreign: bool, inlined: bool) -> Frame {
    Frame { func: func.into(), file: file.into(), line, foreign, inlined, ..Frame::unknown(0) }
}

type Table = Vec<(u64, Vec<Frame>)>;

fn table_of(dictionary: &Dictionary) -> Table {
    let addresses = dictionary.addresses().into_iter();
    addresses.map(|address| (address, dictionary.get(address).unwrap().to_vec())).collect()
}

fn recorded_table(lidict: &Value) -> Table {
    let entry = |entry: &Value| {
        let frames = entry[1].as_array().unwrap().iter().map(|f| {
            let text = |i: usize| f[i].as_str().unwrap();
            frame(text(0), text(1), f[2].as_i64().unwrap(), f[3] == true, f[4] == true)
        });
        (integer(&entry[0]) as u64, frames.collect())
    };
    let mut table: Table = lidict.as_array().unwrap().iter().map(entry).collect();
    table.sort_by_key(|entry| entry.0);
    table
}

fn samples_of(bytes: &[u8]) -> Result<Samples, JlprofError> {
    read_from(bytes).and_then(Content::samples)
}

/// All nodes, or why the file is refused.
fn nodes_of(bytes: &[u8]) -> Result<Vec<GraphNode>, JlprofError> {
    match read_from(bytes)? {
        Content::Graph(nodes) => nodes.collect(),
        Content::Samples(_) => panic!("samples where a graph should be"),
    }
}

fn recorded_nodes(node: &Value, depth: usize, nodes: &mut Vec<GraphNode>) {
    let text = |key: &str| node[key].as_str().unwrap();
    let frame = frame(
        text("func"),
        text("file"),
        node["line"].as_i64().unwrap(),
        node["from_c"] == true,
        node["inlined"] == true,
    );
    let (start, stop) = (node["span"][0].as_i64().unwrap(), node["span"][1].as_i64().unwrap());
    nodes.push(GraphNode { depth, frame, status: node["status"].as_u64().unwrap() as u8, start, stop });
    node["children"].as_array().unwrap().iter().for_each(|child| recorded_nodes(child, depth + 1, nodes));
}

#[test]
fn recorded_graphs_are_accepted_and_refused_as_recorded() {
    let (mut accepted, mut refused, mut written) = (0, 0, 0);
    for case in cases() {
        let file = case["file"].as_str().unwrap();
        let bytes = fs::read(folder().join(file)).unwrap();
        if bytes.get(12) != Some(&2) {
            continue;
        }
        assert!(matches!(samples_of(&bytes), Err(JlprofError::IsGraph)), "{file}");
        assert!(matches!(read(folder().join(file)), Ok(Content::Graph(_))), "{file}");
        match nodes_of(&bytes) {
            Ok(mut nodes) => {
                assert_eq!(case["ok"], true, "{file} must be refused");
                let mut expected = Vec::new();
                recorded_nodes(&case["decoded"]["graph"], 0, &mut expected);
                nodes.iter_mut().for_each(|node| node.stop = node.stop.max(node.start - 1));
                assert_eq!(nodes, expected, "{file}");
                accepted += 1;
                if file.starts_with("graph-") || file == "hand-graph.jlprof" {
                    let mut ours = Vec::new();
                    write_graph_to(&mut ours, nodes).unwrap();
                    assert!(ours == bytes, "{file} is written in another way");
                    written += 1;
                }
            }
            Err(error) => {
                assert_eq!(case["ok"], false, "{file} must be accepted: {error}");
                assert!(error.to_string().contains("byte "), "{file}: {error}");
                refused += 1;
            }
        }
    }
    println!("{accepted} accepted, {refused} refused, {written} written");
    assert_eq!((accepted + refused, written), (34, 9));
}

#[test]
fn recorded_files_are_accepted_and_refused_as_recorded() {
    let (mut accepted, mut refused, mut graphs) = (0, 0, 0);
    for case in cases() {
        let file = case["file"].as_str().unwrap();
        let bytes = fs::read(folder().join(file)).unwrap();
        if bytes.get(12) == Some(&2) {
            graphs += 1;
            continue;
        }
        let result = samples_of(&bytes);
        let by_name = read(folder().join(file)).and_then(Content::samples);
        assert_eq!(by_name.is_ok(), case["by_name"]["ok"] == true, "{file} by its name: {by_name:?}");
        match result {
            Ok(samples) => {
                assert_eq!(case["ok"], true, "{file} must be refused");
                let data: Vec<u64> =
                    case["decoded"]["data"].as_array().unwrap().iter().map(|n| integer(n) as u64).collect();
                assert_eq!(samples.data.words(), data, "{file}");
                assert_eq!(
                    table_of(&samples.dictionary),
                    recorded_table(&case["decoded"]["lidict"]),
                    "{file}"
                );
                assert_eq!(samples.magic.is_some(), file.starts_with("magic-"), "{file}");
                accepted += 1;
            }
            Err(error) => {
                assert_eq!(case["ok"], false, "{file} must be accepted: {error}");
                assert!(error.to_string().contains("byte "), "{file}: {error}");
                if let JlprofError::Cut { at, .. } = error {
                    assert_eq!(at, bytes.len() as u64, "{file}");
                }
                refused += 1;
            }
        }
    }
    assert_eq!((accepted, refused, graphs), (19, 35, 34));
}

#[test]
fn refusals_say_what_is_wrong_and_where() {
    let say = |file: &str| {
        let bytes = fs::read(folder().join(file)).unwrap();
        let content = read_from(&bytes[..]);
        let whole = content.and_then(|content| match content {
            Content::Samples(_) => Ok(()),
            Content::Graph(mut nodes) => nodes.try_for_each(|node| node.map(drop)),
        });
        whole.unwrap_err().to_string()
    };
    assert_eq!(
        say("count-negative.jlprof"),
        "byte 13 declares -1 words, which is impossible: the file is damaged"
    );
    assert_eq!(
        say("name-negative.jlprof"),
        "byte 57 declares -1 bytes of a name, which is impossible: the file is damaged"
    );
    assert_eq!(say("name-nul.jlprof"), "the name at byte 61 contains a zero byte");
    assert_eq!(
        say("endian-zero.jlprof"),
        "byte 8 should tell the byte order (0x01020304), but is 0x00000000"
    );
    assert_eq!(
        say("format-3.jlprof"),
        "form 3 at byte 12: not known; samples have form 1, flame graphs form 2"
    );
    assert_eq!(say("cut-graph-no-root.jlprof"), "ends at byte 13, in the middle of the root");
    assert_eq!(say("root-tag-7f.jlprof"), "byte 13 should begin the root (0xff), but is 0x7f");
    let tag = "byte 185 should begin a node (0xff) or end one (0x00), but is 0x33";
    assert_eq!(say("trailing-graph.jlprof"), tag);
    assert_eq!(say("cut-samples-file-part.jlprof"), "ends at byte 72, in the middle of the name of a file");
    let by_name = read(folder().join("magic-png.jlprof")).unwrap_err();
    assert_eq!(by_name.to_string(), "its first bytes are those of a PNG picture");
}

/// A file as a machine of either byte order writes it, made without the crate's own writer.
fn laid_out(words: &[u64], table: &Table, big: bool) -> Vec<u8> {
    let mut out = b"JLPROF\x01\0".to_vec();
    let mut put = |bytes: &[u8]| match big {
        false => out.extend(bytes),
        true => out.extend(bytes.iter().rev()),
    };
    put(&0x0102_0304_u32.to_le_bytes());
    put(&[1]);
    put(&(words.len() as i64).to_le_bytes());
    words.iter().for_each(|word| put(&word.to_le_bytes()));
    put(&(table.len() as i64).to_le_bytes());
    for (address, frames) in table {
        put(&address.to_le_bytes());
        put(&(frames.len() as i32).to_le_bytes());
        for frame in frames {
            for name in [&frame.func, &frame.file] {
                put(&(name.len() as i32).to_le_bytes());
                name.bytes().for_each(|byte| put(&[byte]));
            }
            put(&frame.line.to_le_bytes());
            put(&[frame.foreign.into()]);
            put(&[frame.inlined.into()]);
        }
    }
    out
}

#[test]
fn what_julia_wrote_is_written_again_byte_by_byte() {
    let mut compared = 0;
    for case in cases() {
        let file = case["file"].as_str().unwrap();
        if !file.starts_with("samples-") {
            continue;
        }
        let recorded = fs::read(folder().join(file)).unwrap();
        let samples = samples_of(&recorded).unwrap();
        let mut ours = Vec::new();
        let words = samples.data.words();
        write_to(&mut ours, words.len() as u64, words.iter().copied(), &samples.dictionary).unwrap();
        // Julia's table is in the order of its hash tables, ours ascends: in the recorded order it
        // must be the recorded file.
        let head = 8 + 4 + 1 + 8 + 8 * words.len() + 8;
        assert_eq!(ours[..head], recorded[..head], "{file}");
        let entries = |bytes: &[u8]| {
            let mut entries = Vec::new();
            let mut at = head;
            let long = |at: usize| i64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
            let int = |at: usize| i32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
            for _ in 0..long(head - 8) {
                let start = at;
                let frames = int(at + 8);
                at += 12;
                for _ in 0..frames {
                    at += 4 + int(at);
                    at += 4 + int(at) + 10;
                }
                entries.push(bytes[start..at].to_vec());
            }
            assert_eq!(at, bytes.len(), "{file}");
            entries.sort();
            entries
        };
        assert_eq!(entries(&ours), entries(&recorded), "{file}");
        compared += 1;
    }
    assert_eq!(compared, 7);
}

#[test]
fn a_recording_of_a_recorded_file_says_the_same() {
    let samples = read(folder().join("samples-recorded.jlprof")).and_then(Content::samples).unwrap();
    let recording = recording_of(&samples.data, &samples.dictionary).unwrap();
    let path = tempfile::tempdir().unwrap().keep().join("again.jlprof");
    write_recording(&path, &recording).unwrap();
    let again = read(&path).and_then(Content::samples).unwrap();
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    let blocks = |data: &Data| -> Vec<(Vec<u64>, u64, u64, u64)> {
        data.blocks().map(|b| (b.addresses.to_vec(), b.thread, b.task, b.state)).collect()
    };
    assert!(blocks(&samples.data).len() > 10);
    assert_eq!(blocks(&again.data), blocks(&samples.data));
    for (address, frames) in table_of(&samples.dictionary) {
        // An address without frames shows the unknown one.
        let frames = if frames.is_empty() { vec![Frame::unknown(0)] } else { frames };
        assert_eq!(again.dictionary.get(address).unwrap(), frames);
    }
}

#[test]
fn a_buffer_without_metadata_is_one_thread() {
    let recording = |words: &[u64]| recording_of(&Data::new(words.to_vec()), &Dictionary::new()).unwrap();
    let two = recording(&[5, 6, 0, 7, 0]);
    assert_eq!((two.samples.len(), two.threads.len()), (2, 1));
    assert_eq!(two.stacks.walk(two.samples[0].stack).count(), 2);
    // No sample ends in these.
    assert!(recording(&[5]).samples.is_empty());
    assert!(recording(&[]).samples.is_empty());
}

#[test]
fn words_that_are_not_as_many_as_announced_leave_no_file() {
    let error = write_to(&mut Vec::new(), 3, [1, 2], &Dictionary::new()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.jlprof");
    let full = stackglass_files::write_atomically(&path, |out| {
        write_to(out, 1, [1], &Dictionary::new())?;
        Err(std::io::ErrorKind::StorageFull.into())
    });
    assert!(full.is_err());
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

fn any_frame() -> impl Strategy<Value = Frame> {
    let name = "[^\0]{0,6}";
    (name, name, any::<i64>(), any::<bool>(), any::<bool>())
        .prop_map(|(func, file, line, foreign, inlined)| frame(&func, &file, line, foreign, inlined))
}

/// Nodes of any shape: how much deeper or less deep each is than the one before.
fn any_nodes() -> impl Strategy<Value = Vec<GraphNode>> {
    let node = (any_frame(), any::<u8>(), any::<i64>(), any::<i64>(), 0..4usize);
    prop::collection::vec(node, 1..12).prop_map(|nodes| {
        let mut deepest = 0;
        let place = |(frame, status, start, stop, up): (Frame, u8, i64, i64, usize)| {
            let depth = if deepest == 0 { 0 } else { deepest - up.min(deepest - 1) };
            deepest = depth + 1;
            GraphNode { depth, frame, status, start, stop }
        };
        nodes.into_iter().map(place).collect()
    })
}

/// A graph's file as a machine of either byte order writes it, and where it may be cut; made without the crate's own
/// writer, as Julia makes it: a node, its children, its end.
fn graph_laid_out(nodes: &[GraphNode], big: bool) -> (Vec<u8>, Vec<usize>) {
    struct Out {
        bytes: Vec<u8>,
        tags: Vec<usize>,
        big: bool,
    }
    impl Out {
        fn put(&mut self, bytes: &[u8]) {
            match self.big {
                false => self.bytes.extend(bytes),
                true => self.bytes.extend(bytes.iter().rev()),
            }
        }

        fn tag(&mut self, tag: u8) {
            self.tags.push(self.bytes.len());
            self.bytes.push(tag);
        }

        /// Puts the first of the nodes and what is in it, and gives back the others.
        fn branch<'n>(&mut self, nodes: &'n [GraphNode]) -> &'n [GraphNode] {
            let (node, mut rest) = nodes.split_first().unwrap();
            self.tag(0xff);
            for name in [&node.frame.func, &node.frame.file] {
                self.put(&(name.len() as i32).to_le_bytes());
                self.bytes.extend(name.bytes());
            }
            self.put(&node.frame.line.to_le_bytes());
            self.put(&[node.frame.foreign.into()]);
            self.put(&[node.frame.inlined.into()]);
            self.put(&[node.status]);
            self.put(&node.start.to_le_bytes());
            self.put(&node.stop.to_le_bytes());
            while rest.first().is_some_and(|next| next.depth > node.depth) {
                rest = self.branch(rest);
            }
            self.tag(0);
            rest
        }
    }
    let mut out = Out { bytes: b"JLPROF\x01\0".to_vec(), tags: Vec::new(), big };
    out.put(&0x0102_0304_u32.to_le_bytes());
    out.put(&[2]);
    assert!(out.branch(nodes).is_empty());
    out.tags.push(out.bytes.len());
    (out.bytes, out.tags)
}

#[test]
fn a_million_nodes_deep_and_back() {
    const DEEP: usize = 1_000_000;
    let frames = [frame("a", "a.rs", 1, false, false), frame("b", "b.c", -1, true, true)];
    let node = |depth: usize| GraphNode {
        depth,
        frame: frames[depth % 2].clone(),
        status: depth as u8,
        start: 1,
        stop: (DEEP - depth) as i64,
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep.jlprof");
    write_graph(&path, (0..DEEP).map(node)).unwrap();
    let Content::Graph(nodes) = read(&path).unwrap() else { panic!("a graph") };
    let mut count = 0;
    for (depth, read) in nodes.enumerate() {
        assert_eq!(read.unwrap(), node(depth));
        count += 1;
    }
    assert_eq!(count, DEEP);
    // Broad as well: all of them in the root.
    let mut bytes = Vec::new();
    write_graph_to(&mut bytes, (0..DEEP).map(|n| GraphNode { depth: n.min(1), ..node(n) })).unwrap();
    assert!(nodes_of(&bytes).unwrap().iter().enumerate().all(|(n, node)| node.depth == n.min(1)));
}

#[test]
fn nodes_that_are_no_tree_leave_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = |depth| GraphNode { depth, frame: Frame::unknown(0), status: 0, start: 1, stop: 1 };
    for depths in [&[][..], &[1], &[0, 0], &[0, 1, 3], &[0, 1, 0]] {
        let error = write_graph(folder.path().join("x.jlprof"), depths.iter().map(|d| at(*d))).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{depths:?}");
    }
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

fn any_table() -> impl Strategy<Value = Table> {
    prop::collection::btree_map(any::<u64>(), prop::collection::vec(any_frame(), 0..4), 0..6)
        .prop_map(|table| table.into_iter().collect())
}

proptest! {
    #[test]
    fn graphs_that_are_written_are_read(nodes in any_nodes()) {
        let mut written = Vec::new();
        write_graph_to(&mut written, nodes.clone()).unwrap();
        prop_assert_eq!(&written, &graph_laid_out(&nodes, false).0);
        for big in [false, true] {
            let (bytes, tags) = graph_laid_out(&nodes, big);
            prop_assert_eq!(nodes_of(&bytes).unwrap(), nodes.clone());
            // Surplus ends change nothing; a node behind them is one more in the root.
            let mut more = bytes.clone();
            more.extend([0, 0]);
            prop_assert_eq!(nodes_of(&more).unwrap(), nodes.clone());
            let stray = GraphNode { depth: 0, ..nodes[0].clone() };
            more.extend(&graph_laid_out(std::slice::from_ref(&stray), big).0[13..]);
            let mut expected = nodes.clone();
            expected.push(GraphNode { depth: 1, ..stray });
            prop_assert_eq!(nodes_of(&more).unwrap(), expected);
            // Cut where a tag should be: what is before counts, if it has a root. Elsewhere: refused at the cut.
            for cut in 0..bytes.len() {
                match (nodes_of(&bytes[..cut]), tags.contains(&cut) && cut > 13) {
                    (Ok(read), true) => prop_assert_eq!(&read[..], &nodes[..read.len()]),
                    (Err(JlprofError::Cut { at, .. }), false) => prop_assert_eq!(at, cut as u64),
                    (other, _) => prop_assert!(false, "cut at {}: {:?}", cut, other),
                }
            }
        }
    }

    #[test]
    fn what_is_written_is_read(words: Vec<u64>, table in any_table()) {
        let mut dictionary = Dictionary::new();
        for (address, frames) in &table {
            dictionary.set(*address, frames.clone());
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jlprof");
        write(&path, &Data::new(words.clone()), &dictionary).unwrap();
        let bytes = fs::read(&path).unwrap();
        prop_assert_eq!(&bytes, &laid_out(&words, &table, false));
        // Read whole, and by a machine of the other byte order.
        for bytes in [bytes, laid_out(&words, &table, true)] {
            let back = samples_of(&bytes).unwrap();
            prop_assert_eq!(back.data.words(), &words[..]);
            prop_assert_eq!(table_of(&back.dictionary), table.clone());
            // Cut anywhere: refused at the cut.
            for cut in 0..bytes.len() {
                match samples_of(&bytes[..cut]) {
                    Err(JlprofError::Cut { at, .. }) => prop_assert_eq!(at, cut as u64),
                    other => prop_assert!(false, "cut at {}: {:?}", cut, other.map(|s| s.data)),
                }
            }
        }
    }
}
