//! Executables with an allocator of their own, and those without.

use crate::program::{Program, run};
use stackglass_symbols::{LinkedAllocator, linked_allocator};
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
