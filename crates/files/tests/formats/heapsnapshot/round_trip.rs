//! Any graph reads the same after every way through files.

use super::parts::part;
use super::structure::{Label, Snapshot, check};
use proptest::prelude::*;
use stackglass_files::heapsnapshot::{
    AssembleOptions, PartsWriter, ReadOptions, assemble, assemble_with, grouped_blocks, read, read_with,
};
use stackglass_profile::heap_graph::{
    EdgeKind, HeapGraph, HeapGraphBuilder, HeapGraphSink, NodeIndex, NodeKind,
};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A block: kind, name, size, the node that holds it, and by what.
#[derive(Clone, Debug)]
struct Block {
    kind: NodeKind,
    name: String,
    size: u64,
    owner: prop::sample::Index,
    more: Vec<(prop::sample::Index, EdgeKind, u32)>,
}

fn blocks() -> impl Strategy<Value = Vec<Block>> {
    let node = prop::sample::select(vec![
        NodeKind::Hidden,
        NodeKind::Array,
        NodeKind::String,
        NodeKind::Object,
        NodeKind::Native,
        NodeKind::Synthetic,
    ]);
    let name =
        prop_oneof!["[a-c]", "<?[ -~éß\u{1}\n]{0,6}", Just("Object".to_owned()), Just(" <".to_owned())];
    let size = prop_oneof![0..100_u64, any::<u32>().prop_map(u64::from)];
    let more = prop::collection::vec((any::<prop::sample::Index>(), edge(), any::<u32>()), 0..4);
    let block = (node, name, size, any::<prop::sample::Index>(), more);
    prop::collection::vec(
        block.prop_map(|(kind, name, size, owner, more)| Block { kind, name, size, owner, more }),
        0..40,
    )
}

fn edge() -> impl Strategy<Value = EdgeKind> {
    prop::sample::select(vec![EdgeKind::Element, EdgeKind::Property, EdgeKind::Internal, EdgeKind::Weak])
}

/// Two of three blocks are close to each other, the others anywhere, also at addresses that no id can hold.
fn address(row: u32) -> u64 {
    match row % 3 {
        0 => u64::from(row) * 0x3_4567_89ab,
        _ => 0x5581_2345_0000 + 16 * u64::from(row),
    }
}

/// A root, a group of roots, and the blocks, each held by one before it.
fn build<S: HeapGraphSink>(sink: &mut S, blocks: &[Block])
where
    S::Error: std::fmt::Debug,
{
    let (root, group) = (sink.name(""), sink.name("(roots)"));
    sink.node(NodeKind::Synthetic, root, 0, 0).unwrap();
    sink.node(NodeKind::Synthetic, group, 1, 0).unwrap();
    let mut edges = vec![(0, 1, EdgeKind::Internal, group.0)];
    for (at, block) in (2..).zip(blocks) {
        let name = sink.name(&block.name);
        sink.node(block.kind, name, address(at), block.size).unwrap();
        edges.push((1 + block.owner.index(at as usize - 1) as u32, at, EdgeKind::Property, name.0));
        for (to, kind, label) in &block.more {
            let to = 1 + to.index(blocks.len() + 1) as u32;
            let label = if *kind == EdgeKind::Element { *label } else { name.0 };
            edges.push((at, to, *kind, label));
        }
    }
    edges.sort_by_key(|edge| edge.0);
    for (from, to, kind, label) in edges {
        sink.edge(NodeIndex(from), NodeIndex(to), kind, label).unwrap();
    }
}

/// All columns of a graph.
fn columns(graph: &HeapGraph) -> impl PartialEq + std::fmt::Debug + use<> {
    let graph = graph.clone();
    (
        (graph.node_kinds, graph.edge_kinds, graph.kinds, graph.names, graph.self_sizes),
        (graph.first_edges, graph.kinds_of_edges, graph.names_of_edges, graph.targets, graph.strings),
    )
}

/// Gives every record of a part file a kind of four bytes.
fn widen(path: &Path, width: usize) {
    let narrow = fs::read(path).unwrap();
    let wide = narrow.chunks(width).flat_map(|record| [&[record[0], 0, 0, 0][..], &record[1..]].concat());
    fs::write(path, wide.collect::<Vec<u8>>()).unwrap();
}

/// Count and size of the nodes by name and kind, without the root; `groups` are taken apart.
fn by_type(snapshot: &Snapshot, groups: bool) -> BTreeMap<(String, String), (u64, u64)> {
    let mut types = BTreeMap::new();
    for node in &snapshot.nodes[1..] {
        let (count, name) = grouped_blocks(&node.name).filter(|_| groups).unwrap_or((1, &node.name));
        let sum: &mut (u64, u64) =
            types.entry((name.trim_start().to_owned(), node.kind.clone())).or_default();
        *sum = (sum.0 + count, sum.1 + node.self_size);
    }
    types
}

/// Count and size of the nodes of a graph by name, without the root.
fn blocks_by_name(graph: &HeapGraph) -> BTreeMap<String, (u64, u64)> {
    let mut types = BTreeMap::new();
    for node in 1..graph.len() {
        let sum: &mut (u64, u64) = types.entry(graph.name(NodeIndex(node as u32)).to_owned()).or_default();
        *sum = (sum.0 + graph.block_count(node), sum.1 + graph.self_sizes.get(node));
    }
    types
}

proptest! {
    #[test]
    fn groups_keep_counts_and_sizes_of_types(blocks in blocks()) {
        let folder = tempfile::tempdir().unwrap();
        let prefix = folder.path().join("x");
        let blocks: Vec<Block> =
            blocks.into_iter().map(|block| Block { size: block.size % 1000, ..block }).collect();
        let mut parts = PartsWriter::create(&prefix).unwrap();
        build(&mut parts, &blocks);
        parts.finish().unwrap();
        let out = part(&prefix, ".heapsnapshot");
        assemble(&prefix, &out).unwrap();
        let all = check(&out);
        let counts = assemble_with(&prefix, &out, AssembleOptions { group_small: true }).unwrap();
        let small = check(&out);
        prop_assert_eq!(by_type(&small, true), by_type(&all, false));
        prop_assert!(small.nodes.len() <= all.nodes.len());
        prop_assert_eq!(counts.edges, small.edge_count as u64);
        let grouped = read(&out).unwrap();
        assemble(&prefix, &out).unwrap();
        prop_assert_eq!(blocks_by_name(&grouped), blocks_by_name(&read(&out).unwrap()));
    }
}

proptest! {
    #[test]
    fn a_graph_reads_the_same(blocks in blocks(), seed: u64, wide: bool) {
        let folder = tempfile::tempdir().unwrap();
        let prefix = folder.path().join("x");
        let mut builder = HeapGraphBuilder::default();
        build(&mut builder, &blocks);
        let graph = builder.finish();
        let mut parts = PartsWriter::create(&prefix).unwrap();
        build(&mut parts, &blocks);
        prop_assert_eq!(parts.node_count() as usize, graph.len());
        parts.finish().unwrap();
        if wide {
            widen(&part(&prefix, ".nodes"), 34);
            widen(&part(&prefix, ".edges"), 25);
        }
        prop_assert_eq!(columns(&read(&prefix).unwrap()), columns(&graph));
        prop_assert_eq!(columns(&read(&part(&prefix, ".nodes")).unwrap()), columns(&graph));
        let out = part(&prefix, ".heapsnapshot");
        assemble(&prefix, &out).unwrap();
        let mut shown = check(&out);
        let with_addresses = read_with(&out, ReadOptions { addresses: true }).unwrap();
        prop_assert_eq!(columns(&with_addresses), columns(&graph));
        let is_block = |row: &u32| *row >= 2 && graph.kinds[*row as usize] != NodeKind::Synthetic as u16;
        let addresses = |row: u32| if is_block(&row) { address(row) } else { 0 };
        let addresses: Vec<u64> = (0..graph.len() as u32).map(addresses).collect();
        prop_assert!(with_addresses.addresses == addresses || addresses.iter().all(|address| *address == 0));
        prop_assert_eq!(&read_with(&prefix, ReadOptions { addresses: true }).unwrap().addresses, &addresses);
        prop_assert!(read(&out).unwrap().addresses.is_empty());

        // Edges of different nodes in any order give the same file.
        let path = part(&prefix, ".edges");
        let bytes = fs::read(&path).unwrap();
        let mut edges: Vec<&[u8]> = bytes.chunks(if wide { 28 } else { 25 }).collect();
        let hash = |edge: &&[u8]| seed.wrapping_mul(1 + 2 * u64::from(edge[edge.len() - 16])) >> 32;
        edges.sort_by_key(hash);
        fs::write(&path, edges.concat()).unwrap();
        prop_assert_eq!(columns(&read(&prefix).unwrap()), columns(&graph));
        let before = fs::read(&out).unwrap();
        assemble(&prefix, &out).unwrap();
        prop_assert!(before == fs::read(&out).unwrap());

        // What an independent reader sees.
        prop_assert_eq!(shown.nodes.len(), graph.len());
        for (row, node) in shown.nodes.drain(..).enumerate() {
            let at = NodeIndex(row as u32);
            let name = match graph.name(at) {
                name if name.trim_ascii_start().starts_with('<') || name == "Object" => format!(" {name}"),
                name => name.to_owned(),
            };
            prop_assert_eq!(node.name, name);
            prop_assert_eq!(node.self_size, graph.self_sizes.get(row));
            let edges: Vec<_> = graph.edges(at).collect();
            prop_assert_eq!(node.edges.len(), edges.len());
            for ((kind, label, to), edge) in node.edges.into_iter().zip(edges) {
                prop_assert_eq!(&kind, &graph.edge_kinds[usize::from(edge.kind)]);
                prop_assert_eq!(to, edge.to.0 as usize);
                match label {
                    Label::Index(index) => prop_assert_eq!(index, u64::from(edge.name_or_index)),
                    Label::Name(_) => prop_assert!(kind != "element"),
                }
            }
        }
    }
}
