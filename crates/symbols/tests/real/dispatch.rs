//! Which calls choose their callee at run time: by what compilers make of known sources, and against a full
//! disassembly of large programs.

use crate::program::{Program, run};
use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use object::{Object, ObjectSection, ObjectSymbol};
use stackglass_profile::recording::Module;
use stackglass_profile::{Location, Recording};
use stackglass_symbols::{Options, symbolize};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether each of the calls that end at these addresses is said to dispatch.
fn said(path: &Path, ends: &[u64]) -> Vec<bool> {
    let mut recording = Recording::default();
    let module = recording.intern_module(Module { path: path.to_str().unwrap().into(), build_id: [].into() });
    // As a caller is recorded: its return address minus one.
    let locations: Vec<_> = ends
        .iter()
        .map(|end| recording.stacks.intern_location(Location { module: Some(module), offset: end - 1 }))
        .collect();
    symbolize(&mut recording, &Options::default(), &mut |_| ());
    locations.into_iter().map(|location| recording.symbols.dispatches(location)).collect()
}

/// The code of a file at an address.
fn code<'data>(file: &object::File<'data>, start: u64, len: u64) -> &'data [u8] {
    let section = |section: object::Section<'data, '_>| section.data_range(start, len).ok()?;
    file.sections().filter(|s| s.kind() == object::SectionKind::Text).find_map(section).unwrap_or_default()
}

/// The call instructions in some code.
fn calls(code: &[u8], start: u64) -> impl Iterator<Item = Instruction> {
    let instructions = Decoder::with_ip(64, code, start, DecoderOptions::NONE).into_iter();
    instructions.filter(|i| i.mnemonic() == Mnemonic::Call).collect::<Vec<_>>().into_iter()
}

/// Whether the calls in a function of a C program dispatch.
fn in_function(bytes: &[u8], path: &Path, name: &str) -> Vec<bool> {
    let file = object::File::parse(bytes).unwrap();
    let symbol = file.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap();
    let code = code(&file, symbol.address(), symbol.size());
    let ends: Vec<u64> = calls(code, symbol.address()).map(|call| call.next_ip()).collect();
    assert!(!ends.is_empty(), "{name} calls nothing");
    said(path, &ends)
}

#[test]
fn calls_of_every_kind() {
    for flags in [
        &["-O2"][..],
        &["-O0"],
        &["-O2", "-fno-plt"],
        &["-O2", "-static"],
        &["-O2", "-mindirect-branch=thunk"],
        &["-O2", "-mindirect-branch=thunk-inline"],
    ] {
        let program = Program::build("calls.c", "gcc", flags);
        let bytes = std::fs::read(&program.path).unwrap();
        // It is the code that says it: names may be gone.
        program.tool("strip", &["program"]);
        for name in ["by_pointer", "by_table", "by_array"] {
            let calls = in_function(&bytes, &program.path, name);
            // A thunk in line brings a call of its own.
            assert_eq!(calls.iter().filter(|call| **call).count(), 1, "{name} with {flags:?}: {calls:?}");
        }
        for name in ["by_name", "by_linker", "main"] {
            let calls = in_function(&bytes, &program.path, name);
            assert!(calls.iter().all(|call| !call), "{name} with {flags:?}: {calls:?}");
        }
    }
}

/// Calls by a full disassembly, and those that are told otherwise.
struct Count {
    calls: usize,
    dispatches: usize,
    different: Vec<String>,
}

fn compare(path: &Path) -> Count {
    let bytes = std::fs::read(path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let section = file.section_by_name(".eh_frame").unwrap();
    let eh_frame = EhFrame::new(section.data().unwrap(), LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(section.address());
    let mut truth: Vec<(u64, bool)> = Vec::new();
    let mut entries = eh_frame.entries(&bases);
    while let Some(entry) = entries.next().unwrap() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(|section, bases, offset| section.cie_from_offset(bases, offset)).unwrap();
        let code = code(&file, fde.initial_address(), fde.len());
        truth.extend(calls(code, fde.initial_address()).map(|call| (call.next_ip(), dispatches(&call))));
    }
    truth.sort_unstable();
    truth.dedup();
    let mut different = Vec::new();
    // In parts, for the sake of memory.
    for part in truth.chunks(400_000) {
        let ends: Vec<u64> = part.iter().map(|(end, _)| *end).collect();
        let wrong = part.iter().zip(said(path, &ends)).filter(|((_, truly), said)| truly != said);
        different.extend(wrong.map(|((end, truly), _)| format!("{end:#x}: truly {truly}")));
    }
    let dispatches = truth.iter().filter(|(_, dispatches)| *dispatches).count();
    println!("{}: {} of {} calls wrong, {dispatches} dispatch", path.display(), different.len(), truth.len());
    Count { calls: truth.len(), dispatches, different }
}

fn dispatches(call: &Instruction) -> bool {
    match call.op0_kind() {
        OpKind::NearBranch64 => false,
        OpKind::Memory => call.memory_base() != Register::RIP,
        _ => true,
    }
}

#[track_caller]
fn agrees(path: &Path, least: usize) {
    let Count { calls, dispatches, different } = compare(path);
    assert!(calls >= least && dispatches * 200 > calls, "{calls} calls, {dispatches} dispatch");
    // A longer instruction may by chance end like a shorter one.
    assert!(different.len() * 10_000 <= calls, "{} of {calls} differ: {different:?}", different.len());
}

#[test]
fn this_program_agrees_with_a_disassembly() {
    agrees(&std::env::current_exe().unwrap(), 3000);
}

#[test]
#[ignore = "long: millions of calls"]
fn large_programs_agree_with_a_disassembly() {
    let lib = PathBuf::from(run(Command::new("rustc").args(["--print", "sysroot"])).trim()).join("lib");
    let cc1 = run(Command::new("gcc").arg("-print-prog-name=cc1plus"));
    let libraries = lib.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let is_large = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("librustc_driver-") || name.starts_with("libLLVM")
    };
    // One of the two names of LLVM is a script for linkers.
    let large = libraries.filter(is_large).chain([PathBuf::from(cc1.trim())]);
    let large: Vec<_> =
        large.filter(|path| path.metadata().is_ok_and(|about| about.len() > 20 << 20)).collect();
    assert!(large.len() >= 3, "{large:?}");
    large.iter().for_each(|path| agrees(path, 100_000));
}
