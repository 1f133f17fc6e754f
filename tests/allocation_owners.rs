//! Whose memory it is: the lines that allocate through a program's own allocator, and what still holds blocks at the end.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use whole_programs::{Language, Outcome, Record, host, host_with, stackglass};

fn json(words: &[&str], file: &Path) -> Value {
    let done = Command::new(stackglass()).args(words).arg("--json").arg(file).output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{words:?}: {error}: {text}"))
}

fn recorded(flags: &[&str]) -> Outcome {
    let mut record = Record::new(host("own_allocator", Language::Rust)).flag("--allocs").flag("--no-time");
    for flag in flags {
        record = record.flag(*flag);
    }
    let outcome = record.run();
    outcome.program_did("30\n", 0);
    outcome
}

/// Bytes by the name of the site's function, of sites in the program's source.
fn bytes_by_line(outcome: &Outcome) -> Vec<(String, u64)> {
    let rows = json(&["allocs", "--by", "site"], &outcome.file);
    let rows = rows["rows"].as_array().expect("there are rows");
    let own = rows.iter().filter_map(|row| {
        let (_, line) = row["site"].as_str()?.split_once("own_allocator.rs:")?;
        Some((line.to_owned(), row["bytes"].as_u64()?))
    });
    own.collect()
}

/// The line of the source that contains a text.
fn line_of(text: &str) -> String {
    let source = include_str!("hosts/own_allocator.rs");
    let line = source.lines().position(|line| line.contains(text)).expect("the source has such a line");
    (line + 1).to_string()
}

#[test]
fn bytes_belong_to_the_callers_of_a_programs_own_allocator() {
    let outcome = recorded(&[]);
    let lines = bytes_by_line(&outcome);
    // `block` may be inlined into its callers, but is in their source line then as well.
    let made = line_of("vec![1u8; size]");
    let all: u64 = lines.iter().filter(|(line, _)| *line == made).map(|(_, bytes)| bytes).sum();
    assert_eq!(all, 100 * 1000 + 50 * 2000 + 30 * 3000, "{lines:?}");
    for allocator in [line_of("static ALLOCATOR"), line_of("#[global_allocator]"), line_of("System.alloc")] {
        assert!(lines.iter().all(|(line, _)| *line != allocator), "line {allocator} of {lines:?}");
    }
}

/// Names on stacks prove nothing: what is lost under `LocalKey::with` and `OnceLock::get_or_init` is lost.
#[test]
fn only_what_something_holds_at_the_end_is_no_leak() {
    let outcome = recorded(&["--heap-at=exit"]);
    let rows = json(&["allocs", "--metric", "leaked-bytes"], &outcome.file);
    let shown = json(&["heap", "show"], &outcome.file);
    let unreached = shown["unreachable"]["self_size"].as_u64().expect("the snapshot has leaks");
    assert_eq!(unreached, 100 * 1000 + 50 * 2000);
    assert_eq!(rows["total"]["leaked_bytes"].as_u64(), Some(unreached), "{rows}");
    assert_eq!(rows["total"]["leaked_count"].as_u64(), Some(150), "{rows}");
}

/// Line, bytes and type of each site of a host, as its comments say.
fn said_by_source(source: &str) -> Vec<(String, u64, String)> {
    let lines = source.lines().enumerate();
    let sites = lines.filter_map(|(number, line)| {
        let (bytes, a_type) =
            line.split_once("// site: ")?.1.split_once(' ').unwrap_or((line.rsplit(' ').next()?, ""));
        Some(((number + 1).to_string(), bytes.parse().ok()?, a_type.to_owned()))
    });
    sites.collect()
}

/// Compares the sites of a program, and the bytes of each type, with the comments in its source.
fn sites_and_types_are_those_of(name: &str, language: Language, source: &str) {
    let said = said_by_source(source);
    for level in ["-O0", "-O2"] {
        // A function that ends with the call of another is not on the stack.
        let program = host_with(name, language, &[level, "-fno-optimize-sibling-calls"]);
        let outcome = Record::new(program).flag("--allocs").flag("--no-time").flag("--heap-at=exit").run();
        outcome.program_did("", 0);
        let rows = json(&["allocs", "--by", "site"], &outcome.file);
        let mut sites: Vec<(String, u64)> = Vec::new();
        let (mut others, file) = (0, format!("{name}.c"));
        for row in rows["rows"].as_array().expect("there are rows") {
            let site = row["site"].as_str().unwrap_or_default();
            let bytes = row["bytes"].as_u64().unwrap_or_default();
            // The standard library of C++ has memory for exceptions.
            if site.starts_with("libstdc++") {
                others += bytes;
                continue;
            }
            let line = site.split_once(&file).and_then(|(_, rest)| rest.split_once(':'));
            sites.push((line.map_or(site, |(_, line)| line).to_owned(), bytes));
        }
        let mut wanted: Vec<(String, u64)> =
            said.iter().map(|(line, bytes, _)| (line.clone(), *bytes)).collect();
        sites.sort();
        wanted.sort();
        assert_eq!(sites, wanted, "{level}");
        let rows = json(&["allocs", "--by", "type"], &outcome.file);
        let mut types: Vec<(String, u64)> = Vec::new();
        let mut alive: Vec<String> = Vec::new();
        for row in rows["rows"].as_array().expect("there are rows") {
            let name = row["type"].as_str().unwrap_or_default().to_owned();
            if row["live_count"] != 0 && name != "(unknown)" {
                alive.push(name.clone());
            }
            types.push((name, row["bytes"].as_u64().unwrap_or_default()));
        }
        let mut wanted: BTreeMap<String, u64> = BTreeMap::from([("(unknown)".to_owned(), others)]);
        for (_, bytes, a_type) in &said {
            let a_type = if a_type.is_empty() { "(unknown)" } else { a_type };
            *wanted.entry(a_type.to_owned()).or_default() += bytes;
        }
        // A snapshot of what is alive has the same names.
        let shown = json(&["heap", "show"], &outcome.file);
        let in_heap: Vec<&str> = [&shown["types"], &shown["unreachable"]["types"]]
            .into_iter()
            .flat_map(|rows| rows.as_array().expect("there are rows"))
            .filter_map(|row| row["type"].as_str())
            .collect();
        alive.retain(|name| !in_heap.contains(&name.as_str()));
        assert_eq!(alive, Vec::<String>::new(), "{level}: {shown}");
        types.sort();
        assert_eq!(types, wanted.into_iter().collect::<Vec<_>>(), "{level}");
    }
}

/// A function that passes a size on to an allocator and returns the block is no site, whatever its name. One that makes an object
/// is. The pointers that receive blocks have their types.
#[test]
fn sites_and_types_of_a_program_in_c_are_those_of_its_source() {
    sites_and_types_are_those_of("wrappers", Language::C, include_str!("hosts/wrappers.c"));
}

/// What `new` and smart pointers make has the type of the pointer that receives it, or of the vtable that is stored in it.
#[test]
fn sites_and_types_of_a_program_in_cpp_are_those_of_its_source() {
    sites_and_types_are_those_of("made", Language::Cpp, include_str!("hosts/made.cpp"));
}
