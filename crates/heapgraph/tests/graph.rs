//! Graphs of small memories whose pointers are known.

#[path = "support/words.rs"]
mod words;

use stackglass_heapgraph::blocks::{Blocks, SiteId};
use stackglass_heapgraph::graph::{Built, Input, Root, RootKind, Site, Totals, build};
use stackglass_layouts::{Layout, Layouts, Local, LocalPlace, Shape};
use stackglass_profile::heap_graph::{
    AllocatingFunction, AllocationStack, AllocationStacks, EDGE_KINDS, HeapGraph, HeapGraphBuilder,
    NodeIndex, NodeKind, UNREACHABLE,
};
use words::{image, mapping};

const BASE: u64 = 0x10_0000;

/// Block number `n` lies at `block(n)` and has 32 bytes.
fn block(number: u64) -> u64 {
    BASE + 0x1000 + number * 64
}

fn root(kind: RootKind, name: &str, range: std::ops::Range<u64>) -> Root {
    Root::new(kind, "owner", name, range)
}

fn graph(count: u64, words: &[(u64, u64)], roots: &[Root]) -> (HeapGraph, Totals) {
    graph_with(&Layouts::default(), count, words, roots)
}

fn graph_with(layouts: &Layouts, count: u64, words: &[(u64, u64)], roots: &[Root]) -> (HeapGraph, Totals) {
    let image = image(&[mapping(BASE..BASE + (1 << 20), true)], Vec::new(), words);
    let mut blocks = Blocks::default();
    (0..count).for_each(|number| blocks.push(block(number), 32, SiteId(0)));
    let mut stacks = AllocationStacks::default();
    let main = stacks.insert_function(AllocatingFunction { name: "main".into(), ..Default::default() });
    let allocated_by = stacks.insert(AllocationStack::ROOT, main);
    let sites = [Site { name: "B".into(), kind: NodeKind::Native, contains: None, allocated_by }];
    let input = Input {
        image: &image,
        blocks: &blocks,
        sites: &sites,
        stacks: &stacks,
        layouts,
        roots,
        biases: &[],
        with_texts: false,
        all_one: false,
    };
    let mut builder = HeapGraphBuilder::default();
    let Built { totals, unreached } = build(&input, &mut builder).unwrap();
    assert_eq!(unreached.len() as u64, totals.unreached_blocks);
    let graph = builder.finish();
    let first = graph.len() - count as usize;
    for node in 0..graph.len() {
        let site = graph.allocated_by(node).map(ToString::to_string);
        assert_eq!(site.as_deref(), (node >= first).then_some("main"), "blocks have stacks, roots have none");
    }
    (graph, totals)
}

/// All edges as `from -> to`, by name for roots and by number for blocks; those that hold nothing end with `?`.
fn edges(graph: &HeapGraph, blocks: u64) -> Vec<String> {
    let first = graph.len() as u32 - blocks as u32;
    let name = |node: NodeIndex| match node.0.checked_sub(first) {
        Some(number) => number.to_string(),
        None => graph.name(node).to_owned(),
    };
    let mut found = Vec::new();
    for node in 0..graph.len() as u32 {
        for edge in graph.edges(NodeIndex(node)).filter(|edge| edge.to.0 >= first) {
            let weak = if EDGE_KINDS[usize::from(edge.kind)] == "weak" { "?" } else { "" };
            found.push(format!("{} -> {}{weak}", name(NodeIndex(node)), name(edge.to)));
        }
    }
    found
}

#[test]
fn words_that_are_addresses_in_blocks_are_edges() {
    let words = [
        (BASE, block(0)),
        (BASE + 8, block(2) + 31),
        // Behind a block, and at no multiple of 8.
        (BASE + 16, block(1) + 32),
        (block(0) + 8, block(1)),
        (block(1) + 24, block(0)),
        // To itself.
        (block(2), block(2) + 8),
    ];
    let (graph, totals) = graph(3, &words, &[root(RootKind::Static, "X", BASE..BASE + 24)]);
    assert_eq!(edges(&graph, 3), ["X -> 0", "X -> 2", "0 -> 1", "1 -> 0"]);
    assert_eq!((totals.blocks, totals.bytes, totals.unreached_blocks), (3, 96, 0));
}

#[test]
fn stacks_hold_what_nothing_else_holds() {
    let words = [
        (BASE, block(0)),
        (block(0), block(1)),
        // The outer frame owns 2, which leads to 3; the inner one has both, and a block of the static variable.
        (BASE + 0x100, block(2)),
        (block(2), block(3)),
        (BASE + 0x80, block(3)),
        (BASE + 0x88, block(2)),
        (BASE + 0x90, block(1)),
    ];
    let roots = [
        root(RootKind::Static, "X", BASE..BASE + 8),
        root(RootKind::Stack, "outer", BASE + 0x100..BASE + 0x120),
        root(RootKind::Stack, "inner", BASE + 0x80..BASE + 0x100),
        Root {
            registers: vec![("rbx", block(4) + 4), ("rax", block(0))],
            ..root(RootKind::Register, "r", 0..0)
        },
    ];
    let (graph, _) = graph(5, &words, &roots);
    let expected = [
        "X -> 0",
        "outer -> 2",
        "inner -> 3?",
        "inner -> 2?",
        "inner -> 1?",
        "r -> 4",
        "r -> 0?",
        "0 -> 1",
        "2 -> 3",
    ];
    assert_eq!(edges(&graph, 5), expected);
}

/// A word of an inner frame is found before the word of an outer one from which its target is reached.
#[test]
fn the_order_of_frames_does_not_hide_owners() {
    let words = [(BASE, block(0)), (BASE + 8, block(1)), (block(1), block(0))];
    let roots = [root(RootKind::Stack, "frame", BASE..BASE + 16)];
    let (graph, _) = graph(2, &words, &roots);
    assert_eq!(edges(&graph, 2), ["frame -> 0?", "frame -> 1", "1 -> 0"]);
}

#[test]
fn owners_of_unreached_blocks_come_first() {
    let words = [
        // 0 is what a cycle of 1 and 2 holds; 3 is alone; 4 is reached.
        (block(1), block(2)),
        (block(2), block(1)),
        (block(2) + 8, block(0)),
        (BASE, block(4)),
    ];
    let (graph, totals) = graph(5, &words, &[root(RootKind::ThreadLocal, "T", BASE..BASE + 8)]);
    let unreachable = format!("{UNREACHABLE} -> ");
    let all = edges(&graph, 5);
    let owners: Vec<&str> = all.iter().filter_map(|edge| edge.strip_prefix(&unreachable)).collect();
    assert_eq!(owners, ["1", "3"]);
    assert_eq!(totals.unreached_blocks, 4);
}

/// A later start reaches an earlier one through a block that the earlier one has reached.
#[test]
fn owners_are_as_few_as_possible() {
    let words = [(block(0), block(1)), (block(1), block(0)), (block(2), block(1))];
    let (graph, _) = graph(3, &words, &[]);
    let unreachable = format!("{UNREACHABLE} -> ");
    let all = edges(&graph, 3);
    let owners: Vec<&str> = all.iter().filter_map(|edge| edge.strip_prefix(&unreachable)).collect();
    assert_eq!(owners, ["2"]);
}

/// A local variable names the edge. It holds nothing that is held otherwise, as after a move.
#[test]
fn local_variables_name_their_edges() {
    let mut layouts = Layouts::default();
    let pointer = layouts.push(Layout {
        name: "void*".into(),
        short_name: "void*".into(),
        size: 8,
        shape: Shape::Pointer { target: None },
        arguments: Vec::new(),
        partial: false,
    });
    let local = |name: &str, place| Local { name: name.into(), type_id: pointer, place };
    let words = [(BASE, block(0)), (BASE + 0x100, block(1)), (BASE + 0x108, block(0)), (block(1), block(2))];
    let frame = Root {
        locals: vec![
            local("head", LocalPlace::Memory(BASE + 0x100)),
            local("moved", LocalPlace::Memory(BASE + 0x108)),
            local("next", LocalPlace::Bytes(Box::new(block(2).to_le_bytes()))),
        ],
        ..root(RootKind::Stack, "main", BASE + 0x100..BASE + 0x120)
    };
    let roots = [root(RootKind::Static, "X", BASE..BASE + 8), frame];
    let (graph, totals) = graph_with(&layouts, 3, &words, &roots);
    assert_eq!(edges(&graph, 3), ["X -> 0", "main -> 1", "main -> 0?", "main -> 2?", "1 -> 2"]);
    assert_eq!(totals.unreached_blocks, 0);
    let main = (0..graph.len() as u32).map(NodeIndex).find(|node| graph.name(*node) == "main").unwrap();
    let names: Vec<&str> =
        graph.edges(main).map(|edge| &*graph.strings[edge.name_or_index as usize]).collect();
    assert_eq!(names, ["head", "moved", "next"]);
}
