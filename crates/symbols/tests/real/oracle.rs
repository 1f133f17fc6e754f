//! Comparison with the `addr2line` crate, on all function starts and random addresses of real binaries: this test program,
//! and the C library if its debug file is installed.

use object::{Object, ObjectSection, ObjectSymbol};
use stackglass_profile::recording::Module;
use stackglass_profile::{Location, Recording};
use stackglass_symbols::Options;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[test]
fn this_program() {
    let program = std::env::current_exe().unwrap();
    let compared = compare(&program, &program, 4000);
    assert!(compared > 10_000, "only {compared} frames were compared");
}

#[test]
fn the_c_library() {
    let library = Path::new("/lib/x86_64-linux-gnu/libc.so.6");
    // Without a debug file, both have symbols only.
    let debug = debug_file(library).unwrap_or(library.to_owned());
    compare(library, &debug, 4000);
}

pub fn debug_file(library: &Path) -> Option<PathBuf> {
    let bytes = std::fs::read(library).ok()?;
    let id = object::File::parse(&*bytes).ok()?.build_id().ok()??.to_vec();
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = PathBuf::from(format!("/usr/lib/debug/.build-id/{}/{}.debug", &hex[..2], &hex[2..]));
    path.exists().then_some(path)
}

/// Function starts and random addresses in the code.
pub fn addresses(program: &Path, debug: &Path, random: u64) -> BTreeSet<u64> {
    let (bytes, debug) = (std::fs::read(program).unwrap(), std::fs::read(debug).unwrap());
    let file = object::File::parse(&*bytes).unwrap();
    let mut addresses = BTreeSet::new();
    for symbol in object::File::parse(&*debug).unwrap().symbols() {
        if symbol.kind() == object::SymbolKind::Text && symbol.is_definition() {
            addresses.insert(symbol.address());
        }
    }
    let text = file.section_by_name(".text").unwrap();
    let mut state = 1u64;
    for _ in 0..random {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        addresses.insert(text.address() + (state >> 16) % text.size());
    }
    addresses
}

/// Compares all frames and returns their number.
fn compare(program: &Path, debug: &Path, random: u64) -> usize {
    let oracle = addr2line::Loader::new(debug).unwrap();
    let mut recording = Recording::default();
    let module = Module { path: program.to_str().unwrap().into(), build_id: [].into() };
    let module = recording.intern_module(module);
    let addresses = addresses(program, debug, random);
    for offset in &addresses {
        recording.stacks.intern_location(Location { module: Some(module), offset: *offset });
    }
    // Not the installed sources: the recorded paths are compared.
    let options = Options { library_sources: Some(PathBuf::from("/nowhere")), ..Options::default() };
    let outcome = stackglass_symbols::symbolize(&mut recording, &options, &mut |_| ());
    assert!(outcome.problems.is_empty(), "{:?}", outcome.problems);
    let mut compared = 0;
    for (location, offset) in addresses.iter().enumerate() {
        let ours: Vec<_> =
            recording.symbols.frames_of(stackglass_profile::LocationId(location as u32)).collect();
        let mut theirs = Vec::new();
        let mut frames = oracle.find_frames(*offset).unwrap();
        while let Some(frame) = frames.next().unwrap() {
            theirs.push(frame);
        }
        if theirs.is_empty() {
            // The oracle does not use symbol tables here.
            assert_eq!(ours.len(), 1, "{offset:#x}");
            assert_eq!(ours[0].line, -1, "{offset:#x}");
            continue;
        }
        assert_eq!(ours.len(), theirs.len(), "{offset:#x}: {ours:?}");
        for (ours, theirs) in ours.iter().zip(theirs) {
            let place = theirs.location.as_ref();
            let line = place.and_then(|place| place.line).map_or(-1, i64::from);
            assert_eq!(ours.line, line, "{offset:#x}: {ours:?}");
            let file = place.and_then(|place| place.file).unwrap_or_default();
            let file = file.trim_start_matches("./");
            if !file.contains("/..") {
                let normal: PathBuf = Path::new(file).components().collect();
                assert_eq!(Path::new(&*ours.file), normal, "{offset:#x}");
            }
            if let Some(function) = theirs.function {
                let name = function.raw_name().unwrap();
                let named = stackglass_symbols::name_of_symbol(&name);
                if named.spec.is_some() {
                    assert_eq!(ours.func, named.func, "{offset:#x}");
                }
                compared += 1;
            }
        }
    }
    compared
}
