//! `record --allocs` of programs with an allocator of their own.

use crate::support::{Place, text};
use std::process::Command;

/// Builds the program of the tests of `symbols`; its smallest blocks lie 8 bytes apart.
fn build(place: &Place, flags: &[&str]) {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../symbols/tests/real/sources/own_allocator.c");
    let mut compiler = Command::new("gcc");
    compiler.current_dir(place.path()).args(["-g", "-O2", "-pthread", source, "-o", "own"]).args(flags);
    let output = compiler.output().expect("a compiler");
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// The number at a key of a row.
fn number(row: &str, key: &str) -> u64 {
    let (_, after) = row.split_once(&format!("\"{key}\":")).expect("the key");
    after
        .split(|end: char| !end.is_ascii_digit())
        .next()
        .and_then(|digits| digits.parse().ok())
        .expect("a number")
}

/// Records it. What it says that it allocated, count and bytes; the same as recorded; and what the command says.
fn recorded(place: &Place, arguments: &[&str], flags: &[&str]) -> ([u64; 2], [u64; 2], String) {
    let head = [&["record", "--allocs", "-o", "own.glass"], flags, &["--", "./own"]].concat();
    let output = place.run([&head[..], arguments].concat());
    let messages = text(&output.stderr);
    assert!(output.status.success(), "{messages}");
    let said: Vec<u64> =
        text(&output.stdout).split_whitespace().filter_map(|word| word.parse().ok()).take(2).collect();
    let json = place.run(["allocs", "own.glass", "--json", "--by", "function"]);
    let json = text(&json.stdout);
    let mut seen = [0; 2];
    for row in json.split("{\"function\":\"").skip(1) {
        if ["work", "small", "zeroed", "aligned", "grown"]
            .iter()
            .any(|name| row.starts_with(&format!("{name}\"")))
        {
            seen[0] += number(row, "count");
            seen[1] += number(row, "bytes");
        }
    }
    ([said[0], said[1]], seen, messages)
}

const SAYS: &str = "its blocks are not recorded";

#[test]
fn blocks_of_an_own_allocator_are_seen() {
    let place = Place::new();
    for flags in [&[][..], &["-DREPLACE"], &["-O0"], &["-fcf-protection=full"], &["-no-pie", "-fno-pie"]] {
        build(&place, flags);
        for arguments in [&["100"][..], &["500", "4"]] {
            let (said, seen, messages) = recorded(&place, arguments, &[]);
            assert_eq!(seen, said, "{flags:?} {arguments:?}\n{messages}");
            assert!(!messages.contains(SAYS), "{messages}");
        }
    }
}

#[test]
fn programs_that_keep_their_allocator_are_told() {
    let place = Place::new();
    build(&place, &["-DPLAIN"]);
    let (said, seen, messages) = recorded(&place, &["100"], &[]);
    assert_eq!(seen, said, "malloc of the C library is seen");
    assert!(
        !messages.contains("contains the allocator") && !messages.contains("defines malloc"),
        "{messages}"
    );

    // The program that begins is the shell's; the program gets no plan.
    build(&place, &[]);
    let output =
        place.run(["record", "--allocs", "-o", "child.glass", "--", "sh", "-c", "./own 2000000; true"]);
    let messages = text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    let line = "own contains the allocator mimalloc";
    assert!(output.status.success() && messages.contains(line) && messages.contains(SAYS), "{messages}");
}
