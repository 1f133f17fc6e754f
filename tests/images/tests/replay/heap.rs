//! Types, reachability and leaks in programs that say of each block what it contains and whether something holds it.

use super::graph::{Graph, Node};
use super::programs::{CPP, Program, RUST};
use std::collections::{BTreeMap, BTreeSet};
use stored_images::Opened;

/// What a program says of a block.
struct Said<'a> {
    address: u64,
    is_held: bool,
    /// Its type; `*` if there is no single right answer.
    contains: &'a str,
}

fn said(text: &str) -> Vec<Said<'_>> {
    let parse = |line| {
        let mut words = str::strip_prefix(line, "block ")?.splitn(3, ' ');
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        Some(Said { address, is_held: words.next()? == "held", contains: words.next()? })
    };
    text.lines().map(|line| parse(line).unwrap_or_else(|| panic!("{line}"))).collect()
}

/// Compares all that a program says with what is found, and returns the graph. `untyped`: what blocks contain whose type nothing in
/// the program tells any more.
fn check(program: &Program, count: usize, leaked: usize, untyped: &[&str]) -> Graph {
    let opened = Opened::read(program.image);
    let graph = Graph::read(&opened.image()).expect("the heap is read");
    let blocks = graph.blocks();
    let reached = graph.reached();
    let all = said(&opened.said);
    assert_eq!(all.len(), count);
    let (mut wrong, mut missing) = (Vec::new(), Vec::new());
    for Said { address, is_held, contains } in &all {
        let Some((index, Node { name, .. })) = blocks.get(address) else {
            wrong.push(format!("{address:x}: there is no such block"));
            continue;
        };
        if *contains != "*" && name.starts_with("(unknown)") {
            missing.push(*contains);
        } else if *contains != "*" && name != contains {
            wrong.push(format!("{address:x}: {name} is {contains}"));
        }
        if reached[index.0 as usize] != *is_held {
            wrong.push(format!("{address:x}: {name} is held: {is_held}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(missing, untyped);
    // Nothing else is leaked.
    let lost: BTreeSet<u64> = all.iter().filter(|said| !said.is_held).map(|said| said.address).collect();
    let unreached = blocks.iter().filter(|(_, (index, _))| !reached[index.0 as usize]);
    assert_eq!(unreached.map(|(address, _)| *address).collect::<BTreeSet<_>>(), lost);
    assert_eq!((lost.len(), graph.totals.unreached_blocks), (leaked, leaked as u64));
    graph
}

/// The number of blocks by type.
fn counts(graph: &Graph) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    graph.blocks().values().for_each(|(_, node)| *counts.entry(&*node.name).or_default() += 1);
    counts
}

/// The program makes so many blocks of each of these types, and no others. Leaked lists have no type: nothing tells what they are.
fn check_counts(graph: &Graph, expected: &[(&str, usize)]) {
    let counts = counts(graph);
    for (name, count) in expected {
        assert_eq!(counts.get(name), Some(count), "{name}: {counts:#?}");
    }
}

#[test]
fn a_heap_of_cpp() {
    // The optimizer keeps no variable for the local vector: its texts are held, but untyped.
    let graph = check(&CPP, 92, 24, &["char[]"; 3]);
    // Vtables tell the types of the two circles that are leaked.
    check_counts(&graph, &[("Circle", 10), ("Polygon", 4), ("Both", 4), ("Leaf", 6), ("double[]", 4)]);
}

#[test]
fn a_heap_of_rust() {
    // In Rust, the pointer has the vtable: two lost circles have none. The local vector is no variable, as in C++.
    let graph = check(&RUST, 83, 24, &["Circle", "Circle", "[Leaf]"]);
    check_counts(&graph, &[("Circle", 4), ("Polygon", 8), ("Leaf", 24), ("[f64]", 8)]);
}
