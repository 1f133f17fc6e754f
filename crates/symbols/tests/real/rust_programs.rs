//! A Rust program with known inlining, with all forms of debug information.

use crate::program::{Answer, Program, frames, frames_with_id, run};
use stackglass_profile::symbols::Missing;
use stackglass_symbols::Options;
use std::path::Path;
use std::process::Command;

const FULL: [&str; 3] = ["known::deep::Thing::inner", "known::deep::middle", "known::deep::Thing::outer"];
/// Line tables have the last part of inlined functions' names; the file gives the crate.
const LINES: [&str; 3] = ["known::inner", "known::middle", "known::deep::Thing::outer"];

/// Checks the chain at the address in the method, and the closure's name.
fn check_with(program: &Program, path: &Path, functions: [&str; 3], options: &Options) {
    let said = program.says("method");
    let (frames, missing, outcome) = frames(path, said.address, options);
    assert!(outcome.problems.is_empty(), "{:?}", outcome.problems);
    assert_eq!(missing, []);
    let found: Vec<_> = frames.iter().map(|frame| (&*frame.func, frame.line, frame.inlined)).collect();
    let expected: Vec<_> = functions
        .iter()
        .zip(&said.lines)
        .enumerate()
        .map(|(depth, (function, line))| (*function, *line, depth < 2))
        .collect();
    assert_eq!(found, expected);
    for frame in &frames {
        assert_eq!(Path::new(&*frame.file), program.source);
        assert!(!frame.foreign);
        assert_eq!((&*frame.krate, &*frame.module), ("known", path.file_name().unwrap().to_str().unwrap()));
    }
    let said = program.says("closure");
    let (frames, ..) = crate::program::frames(path, said.address, options);
    assert!(frames[0].func.ends_with("{closure}"), "{}", frames[0].func);
    assert_eq!(frames[0].line, said.lines[0]);
    assert_eq!(&*frames.last().unwrap().func, "known::main");
}

fn check(program: &Program, functions: [&str; 3]) {
    check_with(program, &program.path, functions, &Options::default());
}

#[test]
fn full_debug_information() {
    check(&Program::rust(&["-g"]), FULL);
}

#[test]
fn full_debug_information_with_v0_names() {
    check(&Program::rust(&["-g", "-Csymbol-mangling-version=v0"]), FULL);
}

#[test]
fn dwarf_5() {
    check(&Program::rust(&["-g", "-Cdwarf-version=5"]), FULL);
}

#[test]
fn limited_debug_information() {
    check(&Program::rust(&["-Cdebuginfo=1"]), FULL);
}

#[test]
fn line_tables_only() {
    check(&Program::rust(&["-Cdebuginfo=line-tables-only"]), LINES);
}

#[test]
#[ignore = "long: links a program with the standard library"]
fn link_time_optimisation() {
    check(&Program::rust(&["-g", "-Clto=fat"]), FULL);
}

#[test]
fn split_and_packed() {
    for version in ["-Cdwarf-version=4", "-Cdwarf-version=5"] {
        let program = Program::rust(&["-g", "-Csplit-debuginfo=packed", version]);
        assert!(program.path.with_extension("dwp").exists());
        check(&program, FULL);
    }
}

#[test]
fn split_and_unpacked() {
    for version in ["-Cdwarf-version=4", "-Cdwarf-version=5"] {
        check(&Program::rust(&["-g", "-Csplit-debuginfo=unpacked", "-Csave-temps=no", version]), FULL);
    }
}

#[test]
fn split_with_the_other_half_gone() {
    let program = Program::rust(&["-g", "-Csplit-debuginfo=packed"]);
    std::fs::remove_file(program.path.with_extension("dwp")).unwrap();
    let said = program.says("method");
    let (frames, missing, outcome) = frames(&program.path, said.address, &Options::default());
    // The program still has lines, and the symbol table has the outer function.
    assert_eq!(frames.len(), 1);
    assert_eq!((&*frames[0].func, frames[0].line), (FULL[2], said.lines[0]));
    assert_eq!(missing, [Missing::DebugInfo]);
    assert!(outcome.problems[0].to_string().contains(".dwo"), "{}", outcome.problems[0]);
}

#[test]
fn compressed_sections() {
    let program = Program::rust(&["-g"]);
    for method in ["zlib-gabi", "zlib-gnu", "zstd"] {
        program.tool("objcopy", &[&format!("--compress-debug-sections={method}"), "program", method]);
        check_with(&program, &program.path.with_file_name(method), FULL, &Options::default());
    }
}

#[test]
fn stripped_with_a_debug_link() {
    let program = Program::rust(&["-g"]);
    program.tool("objcopy", &["--only-keep-debug", "program", "program.debug"]);
    program.tool("objcopy", &["--strip-all", "--add-gnu-debuglink=program.debug", "program"]);
    check(&program, FULL);
    // Without a build id, the checksum decides.
    program.tool("objcopy", &["--remove-section=.note.gnu.build-id", "program"]);
    check(&program, FULL);
    std::fs::create_dir(program.path.with_file_name(".debug")).unwrap();
    let debug = program.path.with_file_name("program.debug");
    let moved = program.path.with_file_name(".debug").join("program.debug");
    std::fs::rename(&debug, &moved).unwrap();
    check(&program, FULL);
    let mut bytes = std::fs::read(&moved).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&moved, bytes).unwrap();
    let (frames, missing, _) = frames(&program.path, program.says("method").address, &Options::default());
    assert_eq!(missing, [Missing::Names]);
    assert!(frames.len() == 1 && frames[0].start_as_name().is_some(), "{frames:?}");
}

#[test]
fn stripped_with_the_debug_file_in_a_build_id_folder() {
    let program = Program::rust(&["-g", "-Clink-arg=-Wl,--build-id=0x0123456789abcdef"]);
    let folder = program.folder.path().join("store");
    std::fs::create_dir_all(folder.join(".build-id/01")).unwrap();
    program.tool("objcopy", &["--only-keep-debug", "program", "store/.build-id/01/23456789abcdef.debug"]);
    program.tool("strip", &["program"]);
    let options = Options { debug_folders: vec![folder], ..Options::default() };
    check_with(&program, &program.path, FULL, &options);

    // The folder also has the names of a program that was removed or rebuilt.
    let id = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef];
    let said = program.says("method");
    let other = Program::rust(&["-g", "-Clink-arg=-Wl,--build-id=0xffff"]);
    let gone = program.path.with_file_name("gone");
    for (path, reason) in [(&gone, Missing::File), (&other.path, Missing::Changed)] {
        let (frames, missing, outcome) = frames_with_id(path, &id, said.address, &options);
        assert_eq!(missing, [reason]);
        assert_eq!(outcome.problems.len(), 1);
        assert_eq!(frames.iter().map(|frame| &*frame.func).collect::<Vec<_>>(), FULL);
        assert_eq!(frames.iter().map(|frame| frame.line).collect::<Vec<_>>(), said.lines);
    }
    let (frames, missing, _) = frames_with_id(&other.path, &id, said.address, &Options::default());
    assert_eq!(missing, [Missing::Changed]);
    assert!(frames.len() == 1 && frames[0].is_unknown());
}

#[test]
fn symbols_only() {
    let program = Program::rust(&["-Cdebuginfo=0", "-Cstrip=debuginfo"]);
    let Answer { address, .. } = program.says("method");
    let (frames, missing, _) = frames(&program.path, address, &Options::default());
    assert_eq!(missing, [Missing::DebugInfo]);
    assert_eq!(frames.len(), 1);
    assert_eq!((&*frames[0].func, &*frames[0].file, frames[0].line), (FULL[2], "", -1));
    assert!(!frames[0].foreign && !frames[0].inlined);
    assert_eq!(&*frames[0].krate, "known");
}

#[test]
fn sources_are_shown_by_their_package() {
    let program = Program::rust(&["-g"]);
    let root = program.path.parent().unwrap();
    std::fs::write(root.join("Cargo.toml"), "[package]\nname = \"some-tool\"\n").unwrap();
    let mut recording = stackglass_profile::Recording::default();
    let module = recording.intern_module(stackglass_profile::Module {
        path: program.path.to_str().unwrap().into(),
        build_id: [].into(),
    });
    let offset = program.says("method").address;
    recording.stacks.intern_location(stackglass_profile::Location { module: Some(module), offset });
    stackglass_symbols::symbolize(&mut recording, &Options::default(), &mut |_| ());
    let short = recording.symbols.short_path(program.source.to_str().unwrap()).unwrap();
    assert_eq!((&*short.prefix, &*short.rest), ("@some-tool", "known.rs"));
}

/// A panic in the standard library, with its symbols.
#[test]
fn the_standard_library_has_its_own_prefixes() {
    let program = Program::rust(&["-g"]);
    let symbols = run(Command::new("nm").arg(&program.path));
    let start = symbols.lines().find_map(|line| {
        let (address, symbol) = (line.split(' ').next()?, line.split(' ').next_back()?);
        let named = stackglass_symbols::name_of_symbol(symbol);
        (&*named.func == "std::rt::lang_start_internal").then_some(address)
    });
    let address = u64::from_str_radix(start.unwrap(), 16).unwrap();
    let (frames, ..) = frames(&program.path, address, &Options::default());
    let last = frames.last().unwrap();
    assert_eq!((&*last.func, &*last.krate), ("std::rt::lang_start_internal", "std"));
    assert!(last.file.ends_with("library/std/src/rt.rs"), "{}", last.file);
    assert!(last.line > 0);
}
