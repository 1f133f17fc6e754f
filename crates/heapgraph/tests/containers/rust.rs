//! Containers of Rust's standard library.

use super::process::{Graph, Printed, build, follow};
use std::collections::BTreeSet;

fn structures(level: &str) -> (Printed, Graph) {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().canonicalize().unwrap();
    let level = format!("-Copt-level={level}");
    let flags = ["--edition=2024", "--crate-name=structures", "-Cdebuginfo=2", &level];
    let program = build(&folder, "structures.rs", "rustc", &flags);
    let (printed, graph) = follow(&program, "structures::App");
    graph.compare(&printed);
    assert_eq!(graph.doubtful_owners, 0);
    (printed, graph)
}

#[test]
fn edges_of_a_debug_build_are_those_that_the_program_knows() {
    let (printed, graph) = structures("0");
    for (at, text) in &printed.texts {
        assert_eq!(graph.texts.get(at), Some(text));
    }
    let of_root = graph.edges.iter().filter(|edge| edge.from == printed.root);
    let names: BTreeSet<&str> = of_root.map(|edge| &*edge.name).collect();
    assert_eq!(names, NAMES.into_iter().collect());
    let usage = |name: &str| {
        let edge = graph.edges.iter().find(|edge| edge.from == printed.root && edge.name == name);
        graph.usage[&edge.unwrap().to]
    };
    assert_eq!(usage("truncated"), (10, 1000));
    assert_eq!(usage("deque"), (11, 16));
    assert_eq!(usage("iterator"), (30, 50));
    // 2000 entries need 4096 buckets.
    assert_eq!(usage("map"), (4096, 4096));
}

/// As users write the fields of `App`.
const NAMES: [&str; 50] = [
    "array[1]",
    "bits.pointer",
    "bounded.0",
    "bounded.1",
    "boxed_path",
    "boxed_slice",
    "boxed_text",
    "btree",
    "cell",
    "closure",
    "counted",
    "counted_text",
    "deque",
    "dropped",
    "dynamic",
    "error.Err",
    "fields",
    "grid[0][0]",
    "grid[0][1]",
    "grid[0][2]",
    "grid[1][0]",
    "grid[1][1]",
    "grid[1][2]",
    "heap",
    "iterator",
    "lazy",
    "linked.head",
    "linked.tail",
    "list",
    "lock",
    "map",
    "mutex",
    "names",
    "nested",
    "once",
    "path",
    "reference",
    "set",
    "shapes",
    "shared",
    "slice",
    "small",
    "straight",
    "text",
    "tiny",
    "tree",
    "truncated",
    "unbounded.0",
    "unbounded.1",
    "weak",
];

#[test]
fn edges_of_an_optimized_build_are_those_that_the_program_knows() {
    structures("2");
}

#[test]
#[ignore = "long: an optimized build"]
fn edges_of_a_fully_optimized_build_are_those_that_the_program_knows() {
    structures("3");
}
