//! Containers of libstdc++.

use super::process::{build, follow};
use std::collections::BTreeSet;

fn structures(level: &str) -> BTreeSet<String> {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().canonicalize().unwrap();
    let program = build(&folder, "structures.cpp", "g++", &["-std=c++17", "-g", level]);
    let (printed, graph) = follow(&program, "App");
    graph.compare(&printed);
    // The last node of a list points to its header.
    assert_eq!(graph.doubtful_owners, 1);
    for (at, text) in &printed.texts {
        assert_eq!(graph.texts.get(at), Some(text));
    }
    graph.edges.into_iter().filter(|edge| edge.from == printed.root).map(|edge| edge.name).collect()
}

#[test]
fn edges_of_a_cpp_program_are_those_that_it_knows() {
    let names = structures("-O0");
    for name in [
        "deque.chunks[0]",
        "fixed[1]",
        "list",
        "map",
        "second_base",
        "shared",
        "shared.control",
        "some",
        "table",
        "text",
        "vector",
    ] {
        assert!(names.contains(name), "{name}: {names:#?}");
    }
    for absent in ["short_text", "empty", "none", "no_map", "no_list", "number"] {
        assert!(!names.iter().any(|name| name.starts_with(absent)), "{absent}: {names:#?}");
    }
}

#[test]
#[ignore = "long: an optimized build"]
fn edges_of_an_optimized_cpp_program_are_those_that_it_knows() {
    structures("-O2");
}
