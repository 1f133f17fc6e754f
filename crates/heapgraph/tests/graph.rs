//! Graphs of small memories whose pointers are known.

#[path = "support/words.rs"]
mod words;

use stackglass_heapgraph::blocks::{Blocks, SiteId};
use stackglass_heapgraph::graph::{Built, Input, Root, RootKind, Site, Totals, build};
use stackglass_heapgraph::references::BlockType;
use stackglass_layouts::{Field, Layout, Layouts, Local, LocalPlace, Shape, TypeId};
use stackglass_profile::heap_graph::{
    AllocatingFunction, AllocationStack, AllocationStacks, EDGE_KINDS, HeapGraph, HeapGraphBuilder,
    NodeIndex, NodeKind, UNREACHABLE,
};
use std::sync::Arc;
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
    let unknown = vec![(32, None); count as usize];
    graph_of(layouts, &unknown, words, roots)
}

/// The graph of blocks with these sizes and contents.
fn graph_of(
    layouts: &Layouts,
    contents: &[(u64, Option<BlockType>)],
    words: &[(u64, u64)],
    roots: &[Root],
) -> (HeapGraph, Totals) {
    let count = contents.len();
    let image = image(&[mapping(BASE..BASE + (1 << 20), true)], Vec::new(), words);
    let mut blocks = Blocks::default();
    for (number, (size, _)) in contents.iter().enumerate() {
        blocks.push(block(number as u64), *size, SiteId(number as u32));
    }
    let mut stacks = AllocationStacks::default();
    let main = stacks.insert_function(AllocatingFunction { name: "main".into(), ..Default::default() });
    let allocated_by = stacks.insert(AllocationStack::ROOT, main);
    let site = |contains| Site { name: "B".into(), kind: NodeKind::Native, contains, allocated_by };
    let mut sites: Vec<Site> = contents.iter().map(|(_, contains)| site(*contains)).collect();
    sites.extend(sites.is_empty().then(|| site(None)));
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
    let first = graph.len() - count;
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

fn push(layouts: &mut Layouts, name: &str, size: u64, shape: Shape) -> TypeId {
    let (name, arguments): (Arc<str>, _) = (name.into(), Vec::new());
    layouts.push(Layout { name, size, shape, arguments, partial: false })
}

fn structure(layouts: &mut Layouts, name: &str, size: u64, fields: &[(&str, u64, TypeId)]) -> TypeId {
    let field = |&(name, offset, type_id): &(&str, u64, TypeId)| Field { name: name.into(), offset, type_id };
    push(layouts, name, size, Shape::Struct(fields.iter().map(field).collect()))
}

#[test]
fn words_that_are_addresses_in_blocks_are_edges() {
    let words = [
        (BASE, block(0)),
        (BASE + 8, block(2) + 31),
        // The end of a block: this may be the end of an array, or the head of the next block.
        (BASE + 16, block(1) + 32),
        (block(0) + 8, block(1)),
        (block(1) + 24, block(0)),
        // To itself.
        (block(2), block(2) + 8),
    ];
    let (graph, totals) = graph(3, &words, &[root(RootKind::Static, "X", BASE..BASE + 24)]);
    assert_eq!(edges(&graph, 3), ["X -> 0", "X -> 2", "X -> 1?", "0 -> 1", "1 -> 0"]);
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
    let pointer = push(&mut layouts, "void*", 8, Shape::Pointer { target: None });
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

/// A `Waker` has the address of a value behind its counts, where the block of one without a size ends.
#[test]
fn the_value_of_an_arc_may_have_no_size() {
    let mut layouts = Layouts::default();
    let word = push(&mut layouts, "usize", 8, Shape::Plain);
    let unit = structure(&mut layouts, "app::Nothing", 0, &[]);
    let inner = [("strong", 0, word), ("weak", 8, word)];
    let fields = |value| [inner[0], inner[1], ("data", 16, value)];
    let nothing = structure(&mut layouts, "alloc::sync::ArcInner<app::Nothing>", 16, &fields(unit));
    let something = structure(&mut layouts, "alloc::sync::ArcInner<usize>", 24, &fields(word));
    let pointer = push(&mut layouts, "*const ()", 8, Shape::Pointer { target: None });
    let one = |id| Some(BlockType::One(id));
    let contents =
        [(16, one(nothing)), (16, one(word)), (24, one(something)), (16, one(nothing)), (32, None)];
    let words = [
        // The ends of blocks 0 to 2: only block 0 has a value there; block 1 is in doubt. Then a value in block 2.
        (BASE, block(0) + 16),
        (BASE + 8, block(1) + 16),
        (BASE + 16, block(2) + 24),
        (BASE + 24, block(2) + 16),
        (BASE + 32, block(4)),
        (block(4) + 8, block(3) + 16),
    ];
    let pointers = push(&mut layouts, "[*const (); 4]", 32, Shape::Array { element: pointer, count: 4 });
    let wakers = Root { type_id: Some(pointers), ..root(RootKind::Static, "W", BASE..BASE + 32) };
    let roots = [wakers, root(RootKind::Static, "U", BASE + 32..BASE + 40)];
    let (graph, totals) = graph_of(&layouts, &contents, &words, &roots);
    let unreachable = format!("{UNREACHABLE} -> 1");
    let expected = ["W -> 1?", &unreachable, "W -> 0", "W -> 2", "U -> 4", "4 -> 3"];
    let mut found = edges(&graph, 5);
    found.sort_by_key(|edge| expected.iter().position(|expected| expected == edge));
    assert_eq!(found, expected);
    assert_eq!(totals.unreached_blocks, 1);
}

/// 0 is of unknown layout, and has a word with the address of everything else. The others are boxes: 1 is held by a static
/// variable, 2 by 3, which nothing holds, and nothing is known of the owner of 4.
/// The entries of a table lie behind the array without a bound that its struct ends in.
#[test]
fn what_lies_behind_a_value_holds_its_blocks() {
    let mut layouts = Layouts::default();
    let number = push(&mut layouts, "size_t", 8, Shape::Plain);
    let table = structure(&mut layouts, "table", 16, &[("count", 0, number), ("used", 8, number)]);
    let contents =
        [(64, Some(BlockType::One(table))), (24, Some(BlockType::One(table))), (32, None), (32, None)];
    let words = [
        (BASE, block(0)),
        (BASE + 8, block(1)),
        (block(0) + 48, block(2)),
        // No more than the allocator adds.
        (block(1) + 16, block(3)),
    ];
    let (graph, totals) =
        graph_of(&layouts, &contents, &words, &[root(RootKind::ThreadLocal, "T", BASE..BASE + 16)]);
    let unreachable = format!("{UNREACHABLE} -> 3");
    let mut found = edges(&graph, 4);
    found.retain(|edge| *edge != unreachable);
    assert_eq!(found, ["T -> 0", "T -> 1", "0 -> 2"]);
    assert_eq!(totals.unreached_blocks, 1);
}

/// An array of C++ may begin with the number of its elements. An owner leads behind it.
#[test]
fn an_owner_of_a_counted_array_holds_its_block() {
    let mut layouts = Layouts::default();
    let word = push(&mut layouts, "long", 8, Shape::Plain);
    let element = structure(&mut layouts, "app::Element", 16, &[("value", 0, word), ("next", 8, word)]);
    let name = "alloc::boxed::Box<app::Element, alloc::alloc::Global>";
    let owner = push(&mut layouts, name, 8, Shape::Pointer { target: Some(element) });
    let words = [
        (BASE, block(0) + 8),
        (block(0), 3),
        // Five elements do not fit, and one leaves too much.
        (BASE + 8, block(1) + 8),
        (block(1), 5),
        (BASE + 16, block(2) + 8),
        (block(2), 1),
    ];
    let roots = [0, 8, 16]
        .map(|at| Root { type_id: Some(owner), ..root(RootKind::Static, "X", BASE + at..BASE + at + 8) });
    let (graph, totals) = graph_of(&layouts, &[(56, None), (56, None), (56, None)], &words, &roots);
    let mut found = edges(&graph, 3);
    found.retain(|edge| edge.starts_with('X'));
    assert_eq!(found, ["X -> 0", "X -> 1?", "X -> 2?"]);
    assert_eq!(totals.unreached_blocks, 2);
}

#[test]
fn a_word_of_an_unknown_block_holds_nothing_that_has_its_owners() {
    let mut layouts = Layouts::default();
    let word = push(&mut layouts, "usize", 8, Shape::Plain);
    let target = structure(&mut layouts, "app::Leaf", 8, &[("value", 0, word)]);
    let name = "alloc::boxed::Box<app::Leaf, alloc::alloc::Global>";
    let boxed = push(&mut layouts, name, 8, Shape::Pointer { target: Some(target) });
    let holder = structure(&mut layouts, "app::Holder", 16, &[("leaf", 0, boxed), ("id", 8, word)]);
    let one = |id| Some(BlockType::One(id));
    let contents = [(32, None), (8, one(target)), (8, one(target)), (16, one(holder)), (8, one(target))];
    let words = [
        (BASE, block(1)),
        (BASE + 8, block(0)),
        (block(0), block(1)),
        (block(0) + 8, block(2)),
        (block(0) + 16, block(4)),
        (block(3), block(2)),
    ];
    let roots = [
        Root { type_id: Some(boxed), ..root(RootKind::Static, "X", BASE..BASE + 8) },
        root(RootKind::Static, "U", BASE + 8..BASE + 16),
    ];
    let (graph, totals) = graph_of(&layouts, &contents, &words, &roots);
    let unreachable = format!("{UNREACHABLE} -> 3");
    let mut found = edges(&graph, 5);
    found.retain(|edge| *edge != unreachable);
    assert_eq!(found, ["X -> 1", "U -> 0", "0 -> 1?", "0 -> 2?", "0 -> 4", "3 -> 2"]);
    assert_eq!(totals.unreached_blocks, 2);
}

/// Two variables account for two of three owners of an `Rc`: the third may be in the block of unknown layout.
#[test]
fn a_word_of_an_unknown_block_may_be_the_owner_that_a_count_tells_of() {
    let mut layouts = Layouts::default();
    let word = push(&mut layouts, "usize", 8, Shape::Plain);
    let fields = [("strong", 0, word), ("weak", 8, word), ("value", 16, word)];
    let inner = structure(&mut layouts, "alloc::rc::RcInner<usize>", 24, &fields);
    let pointer = push(&mut layouts, "*mut RcInner<usize>", 8, Shape::Pointer { target: Some(inner) });
    let shared =
        structure(&mut layouts, "alloc::rc::Rc<usize, alloc::alloc::Global>", 8, &[("ptr", 0, pointer)]);
    let both = push(&mut layouts, "[Rc<usize>; 2]", 16, Shape::Array { element: shared, count: 2 });
    for (strong, is_weak) in [(1, true), (2, true), (3, false)] {
        let contents = [(32, None), (24, Some(BlockType::One(inner)))];
        let words = [
            (BASE, block(1)),
            (BASE + 8, block(1)),
            (BASE + 16, block(0)),
            (block(0), block(1)),
            (block(1), strong),
            (block(1) + 8, 1),
        ];
        let roots = [
            Root { type_id: Some(both), ..root(RootKind::Static, "X", BASE..BASE + 16) },
            root(RootKind::Static, "U", BASE + 16..BASE + 24),
        ];
        let (graph, _) = graph_of(&layouts, &contents, &words, &roots);
        let of_unknown = edges(&graph, 2).into_iter().find(|edge| edge.starts_with("0 ->"));
        let expected = if is_weak { "0 -> 1?" } else { "0 -> 1" };
        assert_eq!(of_unknown.as_deref(), Some(expected), "{strong}");
    }
}
