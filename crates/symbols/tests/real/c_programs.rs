//! C and C++ programs with known inlining, in several forms of debug information.

use crate::program::{Program, frames};
use stackglass_symbols::Options;
use std::path::Path;

fn check(program: &Program, path: &Path, functions: [&str; 3]) {
    let said = program.says("method");
    let (frames, missing, outcome) = frames(path, said.address, &Options::default());
    assert!(outcome.problems.is_empty(), "{:?}", outcome.problems);
    assert_eq!(missing, []);
    let found: Vec<_> = frames.iter().map(|frame| (&*frame.func, frame.line, frame.inlined)).collect();
    let chain = functions.iter().zip(&said.lines).enumerate();
    let expected: Vec<_> = chain.map(|(depth, (function, line))| (*function, *line, depth < 2)).collect();
    assert_eq!(found, expected);
    for frame in &frames {
        assert_eq!(Path::new(&*frame.file), program.source);
        assert!(frame.foreign);
        assert_eq!(&*frame.krate, "");
    }
}

const C: [&str; 3] = ["inner", "middle", "outer"];
const CPP: [&str; 3] = ["deep::Thing::inner", "deep::(anonymous namespace)::middle", "deep::Thing::outer"];

#[test]
fn c_by_version_and_compression() {
    for flags in [
        ["-g", "-gdwarf-2"],
        ["-g", "-gdwarf-4"],
        ["-g", "-gdwarf-5"],
        ["-g1", "-gdwarf-5"],
        ["-g", "-gz=zlib"],
        ["-g", "-gdwarf64"],
        ["-g", "-flto"],
    ] {
        let program = Program::build("known.c", "gcc", &["-O2", flags[0], flags[1]]);
        check(&program, &program.path, C);
    }
}

#[test]
fn cpp_by_version() {
    for flags in [["-g", "-gdwarf-4"], ["-g", "-gdwarf-5"], ["-g3", "-O1"], ["-g", "-fdebug-types-section"]] {
        let program = Program::build("known.cpp", "g++", &["-O2", flags[0], flags[1]]);
        check(&program, &program.path, CPP);
    }
}

#[test]
fn split_files_beside_the_objects() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let program = Program::build("known.c", "gcc", &["-O2", "-g", "-gsplit-dwarf", version]);
        check(&program, &program.path, C);
        let program = Program::build("known.cpp", "g++", &["-O2", "-g", "-gsplit-dwarf", version]);
        check(&program, &program.path, CPP);
    }
}

#[test]
fn symbols_only() {
    let program = Program::build("known.cpp", "g++", &["-O2"]);
    let (found, ..) = frames(&program.path, program.says("method").address, &Options::default());
    assert_eq!(found.len(), 1);
    assert_eq!(&*found[0].func, CPP[2]);
    assert!(found[0].spec.as_ref().unwrap().contains("Thing<char>"));
    assert!(found[0].foreign);
}

#[test]
fn exported_names_only() {
    let program = Program::build("known.c", "gcc", &["-O2", "-rdynamic", "-s"]);
    let (found, missing, _) = frames(&program.path, program.says("method").address, &Options::default());
    assert_eq!(missing, [stackglass_profile::symbols::Missing::Names]);
    assert_eq!((&*found[0].func, found[0].foreign), ("outer", true));
}

#[test]
#[ignore = "long: needs the dwz tool"]
fn debug_information_shared_between_programs() {
    let program = Program::build("known.cpp", "g++", &["-O2", "-g"]);
    let root = program.path.parent().unwrap();
    std::fs::copy(&program.path, root.join("twin")).unwrap();
    program.tool("dwz", &["-m", "shared.debug", "program", "twin"]);
    assert!(root.join("shared.debug").exists());
    check(&program, &program.path, CPP);
}

#[test]
fn the_vdso_has_names() {
    let mut recording = stackglass_profile::Recording::default();
    let module = stackglass_profile::Module { path: "[vdso]".into(), build_id: [].into() };
    let module = recording.intern_module(module);
    let locations: Vec<_> = (0..0x2000u64)
        .step_by(8)
        .map(|offset| {
            recording.stacks.intern_location(stackglass_profile::Location { module: Some(module), offset })
        })
        .collect();
    stackglass_symbols::symbolize(&mut recording, &Options::default(), &mut |_| ());
    let named = |name: &str| {
        locations
            .iter()
            .any(|location| recording.symbols.frames_of(*location).any(|frame| &*frame.func == name))
    };
    assert!(named("clock_gettime") || named("__vdso_clock_gettime"));
    assert_eq!(recording.symbols.notes(), []);
}
