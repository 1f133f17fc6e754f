//! Types of allocations in a program that tells the type of each of its blocks.

use crate::program::{Program, run};
use stackglass_layouts::{BlockType, Layouts, allocated_blocks};
use stackglass_profile::allocations::{AllocationCounts, AllocationGroup, AllocationKind, SizeClass};
use stackglass_profile::recording::Module;
use stackglass_profile::symbols::is_known_type;
use stackglass_profile::{Location, LocationId, ProcessIndex, Recording, StackId, ThreadNumber};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// A block as the program tells it.
struct Block {
    /// Types that it may have.
    expected: Vec<String>,
    /// Bytes of an element, a value or an entry of the first type.
    element: u64,
    bytes: u64,
    stack: StackId,
}

/// Runs the program and records its allocations.
fn recorded(program: &Path) -> (Recording, Vec<Block>) {
    let mut recording = Recording::default();
    let module = Module { path: program.to_str().unwrap().into(), build_id: [].into() };
    let module = recording.intern_module(module);
    let mut blocks = Vec::new();
    for line in run(&mut Command::new(program)).lines() {
        let fields: Vec<&str> = line.split('|').collect();
        let [expected, element, bytes, stack] = fields[..] else { panic!("{line}") };
        let offset = |text| u64::from_str_radix(text, 16).unwrap() - 1;
        // Addresses outside of the program are in the C library.
        let own = stack.split(',').map(offset).filter(|offset| *offset < 1 << 32);
        let locations: Vec<LocationId> = own
            .map(|offset| recording.stacks.intern_location(Location { module: Some(module), offset }))
            .collect();
        let block = Block {
            expected: expected.split(" or ").map(str::to_owned).collect(),
            element: element.parse().unwrap(),
            bytes: bytes.parse().unwrap(),
            stack: recording.stacks.intern(&locations),
        };
        recording.allocations.groups.push(AllocationGroup {
            stack: block.stack,
            thread: ThreadNumber::default(),
            process: ProcessIndex::default(),
            task: 0,
            kind: AllocationKind::Block,
            size_class: SizeClass::from_size(block.bytes),
            counts: AllocationCounts { count: 1, bytes: block.bytes, ..AllocationCounts::default() },
        });
        blocks.push(block);
    }
    (recording, blocks)
}

fn build(flags: &[&str]) -> Program {
    let mut all = vec!["--edition=2024", "-Cforce-frame-pointers=yes", "-Zunstable-options", "-Awarnings"];
    all.extend(flags);
    Program::build_with("allocs.rs", "rustc", &all, &[("RUSTC_BOOTSTRAP", "1")])
}

/// The share of blocks with a type. Panics at a wrong type.
fn typed_share(program: &Path, flags: &[&str]) -> f64 {
    let (mut recording, blocks) = recorded(program);
    stackglass_symbols::symbolize(&mut recording, &Default::default(), &mut |_| ());
    let (mut typed, mut typable) = (0, 0);
    let mut wrong = BTreeMap::new();
    let mut unknown: BTreeMap<String, u64> = BTreeMap::new();
    for block in &blocks {
        let found = recording.symbols.allocated_type(block.stack).map(|name| &**name);
        let expected: Vec<&str> = block.expected.iter().map(|name| &**name).collect();
        let bare = found.filter(|name| is_known_type(name));
        let stack = || {
            let locations = recording.stacks.walk(block.stack);
            let names = locations.flat_map(|location| {
                let frames = recording.symbols.frames_of(location);
                let text = |frame: &stackglass_profile::Frame| {
                    let mark = if frame.inlined { "" } else { "*" };
                    format!("{mark}{}", frame.spec.as_deref().unwrap_or(&frame.func))
                };
                frames.map(text).collect::<Vec<_>>()
            });
            names.take(24).collect::<Vec<_>>().join("\n      ")
        };
        match bare {
            // Everything is unknown by right, or may be.
            None if expected.contains(&"?") => {}
            None => {
                typable += 1;
                *unknown.entry(format!("{expected:?}\n      {}", stack())).or_default() += 1;
            }
            Some(name) => {
                typable += 1;
                typed += 1;
                if !expected.contains(&"*") && !expected.contains(&name) {
                    wrong.insert(format!("{name} instead of {expected:?}\n      {}", stack()), 1);
                }
                if name == expected[0] && !size_agrees(name, block) {
                    wrong.insert(format!("{} bytes for {name} of {}", block.bytes, block.element), 1);
                }
            }
        }
    }
    if std::env::var_os("SHOW").is_some() {
        unknown.iter().for_each(|(what, count)| println!("  {count} x {what}"));
        println!("{flags:?}: {typed} of {typable}");
    }
    assert!(blocks.len() > 50, "{}", blocks.len());
    assert!(wrong.is_empty(), "{flags:?}:\n{}", wrong.into_keys().collect::<Vec<_>>().join("\n"));
    typed as f64 / typable as f64
}

/// The share of blocks whose contents are known. Panics if their size is not that of the layout.
fn share_with_contents(program: &Path) -> f64 {
    let (mut recording, blocks) = recorded(program);
    let module = Module { path: program.to_str().unwrap().into(), build_id: [].into() };
    let layouts = Layouts::read(&[module], &Default::default());
    let (_, contents) = allocated_blocks(&mut recording, &layouts, &Default::default());
    let (mut known, mut typable) = (0, 0);
    for block in blocks.iter().filter(|block| block.expected.iter().all(|name| name != "?" && name != "*")) {
        typable += 1;
        let Some(found) = contents.get(&block.stack) else {
            if std::env::var_os("SHOW").is_some() {
                println!("unknown: {:?}", block.expected);
            }
            continue;
        };
        known += 1;
        let bytes = block.bytes;
        let size = |id| layouts.get(id).size;
        let agrees = match *found {
            BlockType::Bytes => true,
            BlockType::One(id) => size(id) == bytes,
            BlockType::Elements(id) => bytes.is_multiple_of(size(id).max(1)),
            BlockType::CountedElements(id) | BlockType::SharedElements(id) => {
                (bytes - 16) / size(id).max(1) >= 1
            }
            // As many control bytes as buckets and a group more, behind the aligned buckets.
            BlockType::Table(id) => (2..20)
                .map(|power| 1u64 << power)
                .any(|buckets| (buckets * size(id)).next_multiple_of(16) + buckets + 16 == bytes),
        };
        let named = match *found {
            BlockType::Elements(id) if block.expected[0].starts_with('[') => {
                block.expected.contains(&format!("[{}]", layouts.get(id).short_name()))
            }
            _ => true,
        };
        assert!(agrees && named, "{found:?} for {:?}: {bytes} bytes", block.expected);
    }
    known as f64 / f64::from(typable)
}

/// Contents of blocks, and names of their types: with all debug information, and by symbols alone.
fn contents_have_the_layout(level: &str, dwarf: &str) {
    let flags = [level, V0, "-Cdebuginfo=2", dwarf];
    let program = build(&flags);
    let share = share_with_contents(&program.path);
    assert!(share >= 0.98, "{level} {dwarf}: {share}");
    check_built(&program, &flags, NEW);
}

#[test]
fn contents_of_blocks_have_the_layout() {
    contents_have_the_layout("-Copt-level=3", "-Zdwarf-version=4");
}

#[test]
#[ignore = "long: builds three more programs"]
fn contents_of_other_builds_have_the_layout() {
    contents_have_the_layout("-Copt-level=0", "-Zdwarf-version=4");
    contents_have_the_layout("-Copt-level=0", "-Zdwarf-version=5");
    contents_have_the_layout("-Copt-level=3", "-Zdwarf-version=5");
}

/// Whether a block of this type can have this size. This fails when the standard library allocates something else.
fn size_agrees(name: &str, block: &Block) -> bool {
    let Block { element, bytes, .. } = *block;
    if name.ends_with("[]") || name.starts_with('[') && !name.contains("; ") {
        bytes % element == 0
    } else if name.starts_with("Rc<[") || name.starts_with("Arc<[") {
        bytes >= 16 + element
    } else if name.starts_with("Rc<") || name.starts_with("Arc<") || name.starts_with("shared_ptr<") {
        bytes == (16 + element).next_multiple_of(8) || bytes == (16 + element).next_multiple_of(16)
    } else if [" table", " leaf", " internal", " node"].iter().any(|end| name.ends_with(end)) {
        bytes > element
    } else {
        bytes == element
    }
}

const LEVELS: [&str; 4] = ["-Copt-level=0", "-Copt-level=1", "-Copt-level=s", "-Copt-level=3"];
const LEGACY: &str = "-Csymbol-mangling-version=legacy";
const V0: &str = "-Csymbol-mangling-version=v0";

/// Checks a build with debug information, and its symbols alone.
fn check(flags: &[&str], with_symbols: f64) {
    check_built(&build(flags), flags, with_symbols);
}

fn check_built(program: &Program, flags: &[&str], with_symbols: f64) {
    let share = typed_share(&program.path, flags);
    assert!(share >= 0.999, "{flags:?}: {share}");
    program.tool("strip", &["--strip-debug", "program"]);
    let share = typed_share(&program.path, &[flags, &["symbols alone"]].concat());
    assert!(share >= with_symbols, "{flags:?} stripped: {share}");
}

/// New symbols have types; old ones have those of bytes alone.
const NEW: f64 = 0.45;
const OLD: f64 = 0.1;

/// New symbols, at other levels, are those of the programs whose contents are read.
#[test]
fn blocks_have_types_with_old_symbols() {
    check(&["-Copt-level=3", LEGACY, "-Cdebuginfo=1"], OLD);
}

#[test]
#[ignore = "long: builds 17 programs"]
fn blocks_have_types_in_all_builds() {
    for level in LEVELS {
        for debuginfo in ["-Cdebuginfo=1", "-Cdebuginfo=2"] {
            check(&[level, LEGACY, debuginfo], OLD);
            check(&[level, V0, debuginfo], NEW);
        }
    }
    // In one unit, most functions with the same code are folded.
    check(&["-Copt-level=3", "-Ccodegen-units=1", "-Clto=fat", LEGACY, "-Cdebuginfo=1"], 0.0);
}

#[test]
fn types_are_never_wrong_with_line_tables() {
    let flags = ["-Copt-level=3", LEGACY, "-Cdebuginfo=line-tables-only"];
    let program = build(&flags);
    typed_share(&program.path, &flags);
    program.tool("strip", &["--strip-all", "program"]);
    typed_share(&program.path, &["stripped"]);
}

#[test]
fn containers_of_cpp_have_types_and_contents_the_layout() {
    let program = cpp_containers_have_types(&["-g", "-O2", "-fno-omit-frame-pointer"]);
    let share = share_with_contents(&program.path);
    assert!(share >= 0.98, "{share}");
}

#[test]
#[ignore = "long: builds two more programs"]
fn containers_of_cpp_have_types_in_other_builds() {
    cpp_containers_have_types(&["-g", "-O0"]);
    cpp_containers_have_types(&["-O0"]);
}

fn cpp_containers_have_types(flags: &[&str]) -> Program {
    let program = Program::build("allocs.cpp", "g++", flags);
    let share = typed_share(&program.path, flags);
    assert!(share >= 0.99, "{flags:?}: {share}");
    program
}
