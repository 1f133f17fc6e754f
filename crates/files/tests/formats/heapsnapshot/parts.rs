//! Part files, and what is assembled of them.

use super::structure::{Label, Snapshot, check, check_bytes};
use stackglass_files::heapsnapshot::{
    AssembleOptions, CONTINUED, PartsWriter, assemble, assemble_to, assemble_with, cleanup, grouped_blocks,
    read,
};
use stackglass_profile::heap_graph::{
    AllocatingFunction, AllocationStack, AllocationStacks, EdgeKind, HeapGraphSink, NodeIndex, NodeKind,
};
use std::fs;
use std::path::{Path, PathBuf};

/// Path of a part file.
pub fn part(prefix: &Path, ending: &str) -> PathBuf {
    PathBuf::from(format!("{}{ending}", prefix.display()))
}

/// A root, a group, and a list of blocks.
fn write(prefix: &Path, blocks: &[(NodeKind, &str, u64)]) {
    let mut parts = PartsWriter::create(prefix).unwrap();
    let (empty, group, field) = (parts.name(""), parts.name("(roots)"), parts.name(".field"));
    parts.node(NodeKind::Synthetic, empty, 0, 0).unwrap();
    parts.node(NodeKind::Synthetic, group, 1, 0).unwrap();
    parts.edge(NodeIndex(0), NodeIndex(1), EdgeKind::Element, 1).unwrap();
    for (index, (kind, name, size)) in (2..).zip(blocks) {
        let name = parts.name(name);
        parts.node(*kind, name, 0x5555_5555_0000 + 8 * u64::from(index), *size).unwrap();
        parts.edge(NodeIndex(1), NodeIndex(index), EdgeKind::Property, field.0).unwrap();
    }
    parts.finish().unwrap();
}

fn assembled(prefix: &Path) -> Snapshot {
    let out = part(prefix, ".heapsnapshot");
    let counts = assemble(prefix, &out).unwrap();
    let snapshot = check(&out);
    assert_eq!(counts.nodes, snapshot.nodes.len() as u64);
    assert_eq!(counts.edges, snapshot.edge_count as u64);
    assert_eq!(counts.self_size, snapshot.self_size);
    let mut again = Vec::new();
    assert_eq!(assemble_to(prefix, &mut again, AssembleOptions::default()).unwrap(), counts);
    assert_eq!(check_bytes(&again), snapshot);
    snapshot
}

#[test]
fn parts_become_a_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("a.b");
    write(
        &prefix,
        &[(NodeKind::Object, "App", 48), (NodeKind::Array, "[u16]", 6), (NodeKind::Object, "App", 48)],
    );
    let snapshot = assembled(&prefix);
    let names: Vec<_> =
        snapshot.nodes.iter().map(|node| (&*node.kind, &*node.name, node.self_size)).collect();
    assert_eq!(
        names,
        [
            ("synthetic", "", 0),
            ("synthetic", "(roots)", 0),
            ("object", "App", 48),
            ("array", "[u16]", 6),
            ("object", "App", 48)
        ]
    );
    assert_eq!(snapshot.nodes[0].edges, [("element".to_owned(), Label::Index(1), 1)]);
    let field = || Label::Name(".field".to_owned());
    let edges: Vec<_> = (2..5).map(|to| ("property".to_owned(), field(), to)).collect();
    assert_eq!(snapshot.nodes[1].edges, edges);
    cleanup(&prefix).unwrap();
    cleanup(&prefix).unwrap();
    let left: Vec<_> = folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["a.b.heapsnapshot"]);
}

#[test]
fn sizes_of_4_gib_and_more_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("large");
    let sizes = [u64::from(u32::MAX) - 1, u64::from(u32::MAX), 1 << 32, (10 << 32) + 5, 7];
    let blocks = sizes.map(|size| (NodeKind::Array, "[u8]", size));
    write(&prefix, &blocks);
    let snapshot = assembled(&prefix);
    assert_eq!(snapshot.self_size, sizes.iter().sum::<u64>());
    for (row, size) in (2..).zip(sizes) {
        let node = &snapshot.nodes[row];
        let rests = node.edges.iter().map(|(kind, label, to)| {
            assert_eq!((&**kind, label), ("internal", &Label::Name(CONTINUED.to_owned())));
            let rest = &snapshot.nodes[*to];
            assert_eq!((&*rest.kind, &*rest.name), ("array", "[u8]"));
            rest.self_size
        });
        assert_eq!(node.self_size + rests.sum::<u64>(), size);
    }
    assert_eq!(snapshot.nodes.len(), 2 + 5 + 1 + 10);

    // Our own reader makes one node of each again.
    for file in [part(&prefix, ".heapsnapshot"), prefix] {
        let graph = read(&file).unwrap();
        assert!(graph.self_sizes.iter().eq([&[0, 0], &sizes[..]].concat()));
        assert_eq!(graph.len(), 7);
        let targets: Vec<u32> = graph.targets.iter().map(|target| target.0).collect();
        assert_eq!(targets, [1, 2, 3, 4, 5, 6]);
        assert_eq!(graph.first_edges, [0, 1, 6, 6, 6, 6, 6, 6]);
    }
}

#[test]
fn names_that_viewers_change_are_written_in_another_way() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("names");
    let names = ["Object", "<T as U>::V", "Objects", "a\"\\\n\u{1}é\u{fffd}", "<"];
    write(&prefix, &names.map(|name| (NodeKind::Object, name, 1)));
    let written: Vec<_> = assembled(&prefix).nodes.split_off(2).into_iter().map(|node| node.name).collect();
    let replaced = "a\"\\\n\u{1}é[invalid unicode character]";
    assert_eq!(written, [" Object", " <T as U>::V", "Objects", replaced, " <"]);
}

#[test]
fn a_dropped_writer_leaves_older_parts_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("old");
    write(&prefix, &[(NodeKind::Object, "App", 48)]);
    let before = assembled(&prefix);
    let mut parts = PartsWriter::create(&prefix).unwrap();
    let name = parts.name("other");
    parts.node(NodeKind::Object, name, 1, 1).unwrap();
    drop(parts);
    assert_eq!(assembled(&prefix), before);
    assert_eq!(folder.path().read_dir().unwrap().count(), 5);
}

#[test]
fn damaged_parts_are_refused_and_an_existing_snapshot_stays() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("bad");
    let blocks = [(NodeKind::Object, "App", 48); 3];
    write(&prefix, &blocks);
    let out = folder.path().join("out.heapsnapshot");
    fs::write(&out, "older").unwrap();
    // Each: a part, where it is changed, and how the message goes.
    let cut = usize::MAX;
    let cases: [(&str, usize, u64, &str); 13] = [
        (".nodes", cut, 0, "truncated, or belongs to another snapshot"),
        (".edges", cut, 0, "truncated, or belongs to another snapshot"),
        (".strings", cut, 0, "truncated strings file"),
        (".metadata.json", cut, 0, "the file ends too early"),
        (".nodes", 34 * 2, 15, "byte 68: node 2 has an unknown kind, 15"),
        (".nodes", 34 * 2 + 1, 5, "has name 5 of 4"),
        (".nodes", 34 * 2 + 17 + 6, 1, "more than 256 TiB"),
        (".nodes", 34 * 2 + 33, 1, "node 2 has a trace"),
        (".edges", 25, 7, "byte 25: edge 1 has an unknown kind, 7"),
        (".edges", 26, 9, "edge 1 has name 9 of 4"),
        (".edges", 25 + 9, 5, "edge 1 joins nodes 5 and 2 of 5"),
        (".edges", 25 + 17, 5, "edge 1 joins nodes 1 and 5 of 5"),
        (".edges", 25 + 17, 3, "1 nodes have no incoming edges: 2"),
    ];
    for (ending, at, value, message) in cases {
        let path = part(&prefix, ending);
        let good = fs::read(&path).unwrap();
        let mut bad = good.clone();
        match at {
            usize::MAX => bad.truncate(good.len() - 1),
            at => bad[at] = value as u8,
        }
        fs::write(&path, bad).unwrap();
        let error = assemble(&prefix, &out).unwrap_err().to_string();
        assert!(error.contains(message), "{ending} {at}: {error}");
        assert!(error.contains(path.to_str().unwrap()), "{error}");
        fs::write(&path, good).unwrap();
        assert_eq!(fs::read(&out).unwrap(), b"older");
    }
    fs::remove_file(part(&prefix, ".metadata.json")).unwrap();
    let error = assemble(&prefix, &out).unwrap_err().to_string();
    assert!(error.contains("the snapshot is incomplete, or the prefix is wrong"), "{error}");
    assert_eq!(folder.path().read_dir().unwrap().count(), 4, "no temporary file is left");
}

#[test]
fn leaves_of_one_type_under_one_owner_become_one_node() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("many");
    let mut parts = PartsWriter::create(&prefix).unwrap();
    let [empty, group, list, bytes, other] =
        ["", "(roots)", "Vec<Box<[u8]>>", "[u8]", "Other"].map(|name| parts.name(name));
    let mut node = |kind, name, size| {
        parts.unused(if size == 10 { 4 } else { 0 });
        parts.node(kind, name, 77, size).unwrap()
    };
    node(NodeKind::Synthetic, empty, 0);
    let roots = node(NodeKind::Synthetic, group, 0);
    let owner = node(NodeKind::Array, list, 80_000);
    let shared = node(NodeKind::Array, bytes, 7);
    let first = node(NodeKind::Array, bytes, 10);
    for _ in 1..5012 {
        node(NodeKind::Array, bytes, 10);
    }
    let alone = node(NodeKind::Object, other, 1);
    let large = node(NodeKind::Object, bytes, 3 << 30);
    node(NodeKind::Object, bytes, 3 << 30);
    let empty_root = node(NodeKind::Synthetic, group, 0);
    let twin = node(NodeKind::Synthetic, group, 0);
    let mut edge = |from, to, kind, label| parts.edge(from, to, kind, label).unwrap();
    edge(NodeIndex(0), roots, EdgeKind::Internal, group.0);
    edge(roots, owner, EdgeKind::Property, list.0);
    edge(roots, shared, EdgeKind::Property, list.0);
    edge(roots, NodeIndex(first.0 + 1), EdgeKind::Weak, list.0);
    edge(roots, empty_root, EdgeKind::Internal, group.0);
    edge(roots, twin, EdgeKind::Internal, group.0);
    edge(owner, shared, EdgeKind::Element, 0);
    edge(owner, alone, EdgeKind::Element, 1);
    for index in (0..5012).rev() {
        edge(owner, NodeIndex(first.0 + index), EdgeKind::Element, 10 + index);
    }
    edge(owner, large, EdgeKind::Element, 2);
    edge(owner, NodeIndex(large.0 + 1), EdgeKind::Element, 3);
    parts.finish().unwrap();
    let all = assembled(&prefix);
    let out = folder.path().join("small.heapsnapshot");
    let counts = assemble_with(&prefix, &out, AssembleOptions { group_small: true }).unwrap();
    let small = check(&out);
    assert_eq!(counts.nodes, small.nodes.len() as u64);
    assert_eq!((small.self_size, counts.self_size), (all.self_size, all.self_size));
    let shown: Vec<_> = small.nodes.iter().map(|node| (&*node.name, node.self_size)).collect();
    assert_eq!(
        shown,
        [
            ("(root; 5014 small blocks are shown as 2 nodes, such as \"2 × TYPE\")", 0),
            ("(roots)", 0),
            ("Vec<Box<[u8]>>", 80_000),
            ("[u8]", 7),
            ("5 012 × [u8]", 50_120),
            ("Other", 1),
            ("2 × [u8]", u32::MAX.into()),
            ("(roots)", 0),
            ("(roots)", 0),
            ("2 × [u8]", (6 << 30) - u64::from(u32::MAX)),
        ]
    );
    assert_eq!(read(&out).unwrap().unused[4], 5012 * 4);
    let labels: Vec<_> = small.nodes[2].edges.iter().map(|(kind, _, to)| (&**kind, *to)).collect();
    assert_eq!(labels, [("element", 3), ("element", 5), ("element", 4), ("element", 6)]);
    assert_eq!(small.nodes[6].edges.len(), 1);
    assert_eq!(small.nodes[1].edges[2], ("weak".to_owned(), Label::Name("Vec<Box<[u8]>>".to_owned()), 4));
    assert_eq!(grouped_blocks("5 012 × [u8]"), Some((5012, "[u8]")));
    for name in ["× a", " × a", "+5 × a", "5×a", "99999999999999999999 × a"] {
        assert_eq!(grouped_blocks(name), None, "{name}");
    }
}

/// Writes a ring of five nodes, the first `roots` of which are roots. `prepare` is called before each node.
fn write_ring(prefix: &Path, name: &str, roots: usize, mut prepare: impl FnMut(&mut PartsWriter, usize)) {
    let mut parts = PartsWriter::create(prefix).unwrap();
    let name = parts.name(name);
    for row in 0..5 {
        prepare(&mut parts, row);
        let kind = if row < roots { NodeKind::Synthetic } else { NodeKind::Array };
        parts.node(kind, name, row as u64 * 16, 64).unwrap();
        let next = NodeIndex((row as u32 + 1) % 5);
        parts.edge(NodeIndex(row as u32), next, EdgeKind::Property, name.0).unwrap();
    }
    parts.finish().unwrap();
}

#[test]
fn unused_bytes_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("unused");
    write_ring(&prefix, "[u8]", 1, |parts, row| parts.unused([0, 0, 24, 0, u64::MAX][row]));
    let out = folder.path().join("unused.heapsnapshot");
    // What the system says is in the message.
    let refused = assemble(&prefix, &out.join("no/folder")).unwrap_err().to_string();
    assert!(refused.contains("os error") || refused.contains("directory"), "{refused}");
    assemble(&prefix, &out).unwrap();
    for path in [&prefix, &out] {
        assert_eq!(read(path).unwrap().unused, [0, 0, 24, 0, u32::MAX], "{}", path.display());
    }
}

/// A tree of two branches: each node gets its own stack back from the parts and from the file.
#[test]
fn allocation_stacks_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("stacks");
    let mut stacks = AllocationStacks::default();
    let mut stack = |caller, name: &str, line| {
        let function = AllocatingFunction { name: name.into(), file: "src/app.rs".into(), line };
        let function = stacks.insert_function(function);
        stacks.insert(caller, function)
    };
    let main = stack(AllocationStack::ROOT, "main", 3);
    let grow = stack(main, "grow", 7);
    let again = stack(grow, "grow", 7);
    let fill = stack(main, "fill", 0);
    let of_nodes = [AllocationStack::UNKNOWN, fill, again, AllocationStack::UNKNOWN, grow];
    write_ring(&prefix, "", 2, |parts, row| {
        if row == 0 {
            parts.stacks(&stacks);
        }
        parts.allocated_by(of_nodes[row]);
    });
    let out = folder.path().join("stacks.heapsnapshot");
    assemble(&prefix, &out).unwrap();
    check(&out);
    for path in [&prefix, &out] {
        let graph = read(path).unwrap();
        let walk = |node: usize| {
            let stack = graph.allocated_by.get(node).copied().unwrap_or_default();
            graph.stacks.walk(stack).map(ToString::to_string).collect::<Vec<_>>().join(" < ")
        };
        let found: Vec<String> = (0..5).map(walk).collect();
        let (grow, main) = ("grow (app.rs:7)", "main (app.rs:3)");
        let expected = [
            String::new(),
            format!("fill < {main}"),
            format!("{grow} < {grow} < {main}"),
            String::new(),
            format!("{grow} < {main}"),
        ];
        assert_eq!(found, expected, "{}", path.display());
    }
    // As V8 has it: id, function, blocks, bytes, callees. The functions begin with that of the root.
    let file: serde_json::Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    let grow = serde_json::json!([3, 2, 1, 64, [4, 2, 1, 64, []], 5, 3, 1, 64, []]);
    assert_eq!(file["trace_tree"], serde_json::json!([1, 0, 0, 0, [2, 1, 0, 0, grow]]));
}
