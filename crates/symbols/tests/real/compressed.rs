//! Compressed debug information is decompressed only as far as the wanted addresses need. The result is that of the same
//! file without compression, for each set of addresses.

use crate::oracle::{addresses, debug_file};
use crate::program::{Program, run};
use stackglass_profile::recording::Module;
use stackglass_profile::{Frame, Location, LocationId, Recording};
use stackglass_symbols::Options;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn the_c_library() {
    let library = Path::new("/lib/x86_64-linux-gnu/libc.so.6");
    compare(&debug_file(library).unwrap_or(library.to_owned()), 40);
}

#[test]
#[ignore = "long: expands the debug information of a large program for each set of addresses"]
fn this_program() {
    compare(&std::env::current_exe().unwrap(), 8);
}

/// A program in C or C++ in many units.
fn in_units(source: &str, compiler: &str) -> Program {
    let flags = ["-O2", "-g", "-flto", "-fno-ipa-cp", "-ffunction-sections", "-flto-partition=max"];
    Program::build(source, compiler, &flags)
}

/// Their functions have names in other units, some of which are behind the units with code.
#[test]
fn references_between_units() {
    compare(&in_units("known.cpp", "g++").path, 100);
}

#[test]
#[ignore = "long: links three more programs, one with the standard library"]
fn references_between_units_of_other_programs() {
    for source in ["known.c", "layouts.c"] {
        compare(&in_units(source, "gcc").path, 100);
    }
    let flags = ["-g", "-Clto=fat", "-Ccodegen-units=8"];
    compare(&Program::rust(&flags).path, 100);
}

/// Damage behind the needed part does no harm; before its end, it is reported.
#[test]
fn damage() {
    let program = Program::rust(&["-g"]);
    let [plain, compressed] = copies(&program.path, program.folder.path());
    let address = program.says("method").address;
    let whole = frames(&plain, &[address]).0;
    let bytes = std::fs::read(&compressed).unwrap();
    let (start, size) = {
        use object::{Object, ObjectSection};
        let file = object::File::parse(&*bytes).unwrap();
        file.section_by_name(".debug_info").unwrap().file_range().unwrap()
    };
    let mut with_names = 0;
    for eighth in 0..8 {
        let mut bytes = bytes.clone();
        let at = (start + size * eighth / 8) as usize + 40;
        bytes[at..at + 64].fill(0xff);
        std::fs::write(&compressed, bytes).unwrap();
        let (found, problems) = frames(&compressed, &[address]);
        if problems.is_empty() && found == whole {
            with_names += 1;
        } else {
            assert!(!problems.is_empty(), "{eighth}");
        }
    }
    assert!((1..8).contains(&with_names), "{with_names}");
}

/// Compares many small sets of addresses.
fn compare(file: &Path, sets: usize) {
    let folder = tempfile::tempdir().unwrap();
    let copies = copies(file, folder.path());
    let all: Vec<u64> = addresses(file, file, 500).into_iter().collect();
    let (expected, problems) = frames(&copies[0], &all);
    assert!(problems.is_empty(), "{problems:?}");
    // Some at the start and in the middle, some alone, some with one from elsewhere.
    for set in 0..sets {
        let at = set * all.len() / sets;
        let mut indices = vec![at];
        if set % 3 == 1 {
            indices.push((at + 1) % all.len());
        }
        if set % 3 == 2 {
            indices.push(at * 7919 % all.len());
        }
        let wanted: Vec<u64> = indices.iter().map(|index| all[*index]).collect();
        let (found, problems) = frames(&copies[1], &wanted);
        assert!(problems.is_empty(), "{wanted:x?}: {problems:?}");
        for (index, found) in indices.iter().zip(found) {
            assert_eq!(found, expected[*index], "{wanted:x?}");
        }
    }
}

/// Copies of a file without compression and with zlib, of the same name.
fn copies(file: &Path, folder: &Path) -> [PathBuf; 2] {
    [("plain", "--decompress-debug-sections"), ("zlib", "--compress-debug-sections=zlib-gabi")].map(
        |(name, flag)| {
            std::fs::create_dir(folder.join(name)).unwrap();
            let copy = folder.join(name).join("copy");
            run(Command::new("objcopy").arg(flag).arg(file).arg(&copy));
            copy
        },
    )
}

/// The frames of each address.
fn frames(path: &Path, addresses: &[u64]) -> (Vec<Vec<Frame>>, Vec<String>) {
    let mut recording = Recording::default();
    let module = recording.intern_module(Module { path: path.to_str().unwrap().into(), build_id: [].into() });
    let intern =
        |offset: &u64| recording.stacks.intern_location(Location { module: Some(module), offset: *offset });
    let locations: Vec<LocationId> = addresses.iter().map(intern).collect();
    let options = Options { library_sources: Some(PathBuf::from("/nowhere")), ..Options::default() };
    let outcome = stackglass_symbols::symbolize(&mut recording, &options, &mut |_| ());
    let frames = |location: &LocationId| recording.symbols.frames_of(*location).cloned().collect();
    let problems = outcome.problems.iter().map(ToString::to_string).collect();
    (locations.iter().map(frames).collect(), problems)
}
