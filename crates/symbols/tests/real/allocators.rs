//! Executables with an allocator of their own, and those without.

use crate::program::{Program, run};
use stackglass_symbols::{LinkedAllocator, MovableFunction, linked_allocator, movable_functions};
use std::path::Path;
use std::process::Command;

fn c(flags: &[&str]) -> Program {
    Program::build("own_allocator.c", "gcc", &[&["-O2", "-pthread"], flags].concat())
}

fn rust(flags: &[&str]) -> Program {
    Program::build("own_allocator.rs", "rustc", &[&["--edition=2024", "-Copt-level=2"], flags].concat())
}

fn mimalloc(symbol: &str) -> Option<LinkedAllocator> {
    Some(LinkedAllocator {
        name: Some("mimalloc"),
        symbol: symbol.into(),
        replaces_malloc: false,
        is_rust: false,
    })
}

#[test]
fn allocators_are_found_by_their_symbols() {
    let program = c(&[]);
    let found = linked_allocator(&program.path).expect("an allocator");
    assert_eq!(Some(found.clone()), mimalloc(&found.symbol));
    run(Command::new(&program.path).arg("10"));
    program.tool("strip", &["program"]);
    assert_eq!(linked_allocator(&program.path), None, "nothing is known without symbols");
    let exported = linked_allocator(&c(&["-DREPLACE"]).path).expect("an allocator");
    assert!(exported.replaces_malloc, "{exported:?}");
    assert_eq!(exported.name, Some("mimalloc"));
}

#[test]
fn rust_programs_without_malloc_are_found() {
    let program = rust(&["--cfg", "bump"]);
    let found = linked_allocator(&program.path);
    let expected =
        LinkedAllocator { name: None, symbol: "__rust_alloc".into(), replaces_malloc: false, is_rust: true };
    assert_eq!(found, Some(expected));
}

#[test]
fn ordinary_programs_have_none() {
    assert_eq!(linked_allocator(&c(&["-DPLAIN"]).path), None);
    assert_eq!(linked_allocator(&rust(&[]).path), None);
    assert_eq!(linked_allocator(&rust(&["--cfg", "system"]).path), None, "a wrapper of malloc");
    let own = std::env::current_exe().unwrap();
    assert_eq!(linked_allocator(&own), None);
    for program in ["/bin/sh", "/usr/bin/python3", "/usr/bin/env", "/usr/bin/git", "/usr/bin/perl"] {
        assert_eq!(linked_allocator(Path::new(program)), None, "{program}");
    }
    assert_eq!(linked_allocator(Path::new("/no/such/program")), None);
    assert_eq!(linked_allocator(Path::new(file!())), None);
}

/// Runs the moved instructions' checks on real functions: their bytes, decoded, are the same instructions with the same targets.
#[test]
fn moved_instructions_lead_to_the_same_places() {
    for flags in [&["-O0"][..], &["-O1"], &["-O2"], &["-O3"], &["-O2", "-fcf-protection"], &["-Os"]] {
        let program = c(flags);
        let functions = match movable_functions(&program.path, &|name| name.starts_with("mi_")) {
            Ok(functions) => functions,
            Err(name) => panic!("{flags:?}: {name}"),
        };
        assert_eq!(functions.len(), 5, "{functions:?}");
        for MovableFunction { name, start } in functions {
            assert!(start.original.len() >= 5, "{name}");
            for distance in &start.distances {
                assert!(
                    distance.at as usize + 4 <= start.moved.len()
                        && distance.end as usize <= start.moved.len()
                );
            }
            let back = start.distances.last().filter(|last| last.end as usize == start.moved.len());
            let end = start.address + start.original.len() as u64;
            assert_eq!(back.map(|back| back.target), Some(end), "{name}: a jump back");
        }
    }
}

#[test]
fn functions_that_cannot_be_moved_are_named() {
    let program = Program::build("immovable.c", "gcc", &["-O1", "-fno-inline"]);
    for name in ["loops_to_its_second_instruction", "calls_first", "is_too_short", "has_a_table"] {
        let found = movable_functions(&program.path, &|other| other == name);
        assert_eq!(found, Err(name.to_owned()));
    }
    let found = movable_functions(&program.path, &|name| name == "jumps_far").expect("movable");
    assert_eq!(found[0].start.original[0], 0x74, "a short conditional jump");
    assert_eq!(found[0].start.moved[..2], [0x0f, 0x84], "becomes a long one");
}
