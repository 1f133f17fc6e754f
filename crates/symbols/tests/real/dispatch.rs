//! Calls whose callee is chosen at run time: in compiled known sources, and compared with a full disassembly of large
//! programs.

use crate::disassembly::{self, Kind};
use crate::program::{Program, run};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};
use object::{Object, ObjectSection, ObjectSymbol};
use stackglass_profile::recording::Module;
use stackglass_profile::{Location, Recording};
use stackglass_symbols::{Options, symbolize};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether each of the calls that end at these addresses counts as dispatch.
fn said(path: &Path, ends: &[u64]) -> Vec<bool> {
    let mut recording = Recording::default();
    let module = recording.intern_module(Module { path: path.to_str().unwrap().into(), build_id: [].into() });
    // The lookup address of a caller: its return address minus one.
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
        // The code decides, since names may be stripped.
        program.tool("strip", &["program"]);
        for name in ["by_pointer", "by_table", "by_array"] {
            let calls = in_function(&bytes, &program.path, name);
            // An inlined thunk contains a call.
            assert_eq!(calls.iter().filter(|call| **call).count(), 1, "{name} with {flags:?}: {calls:?}");
        }
        for name in ["by_name", "by_linker", "main"] {
            let calls = in_function(&bytes, &program.path, name);
            assert!(calls.iter().all(|call| !call), "{name} with {flags:?}: {calls:?}");
        }
    }
}

/// The last call through a register in a function, by its return address.
fn register_call(bytes: &[u8], name: &str) -> u64 {
    let file = object::File::parse(bytes).unwrap();
    let symbol = file.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap();
    let code = code(&file, symbol.address(), symbol.size());
    let call = calls(code, symbol.address()).filter(|call| call.op0_kind() == OpKind::Register).last();
    call.unwrap_or_else(|| panic!("{name} has no call through a register")).next_ip()
}

/// Checks the calls through registers in `by_…` functions.
#[track_caller]
fn check_registers(bytes: &[u8], path: &Path, bound: &[&str], chosen: &[&str]) {
    for (names, dispatches) in [(bound, false), (chosen, true)] {
        for name in names {
            let call = register_call(bytes, name);
            assert_eq!(said(path, &[call]), [dispatches], "{name}");
            // All at once give the same result.
            assert_eq!(said(path, &[call, call + 1, call - 1])[0], dispatches, "{name}");
        }
    }
}

const BOUND: [&str; 2] = ["by_linker", "by_linker_twice"];
const CHOSEN: [&str; 8] = [
    "by_argument",
    "by_either",
    "by_later",
    "by_choice",
    "by_constants",
    "by_variables",
    "by_variable",
    "by_result",
];

#[test]
fn registers_that_hold_what_the_linker_knows() {
    for flags in [
        &["-O2"][..],
        &["-O2", "-fno-plt"],
        &["-O2", "-fno-plt", "-Wl,-z,now"],
        // The linker knows the functions and writes their addresses.
        &["-O2", "-static"],
        &["-O2", "-no-pie"],
        &["-O2", "-mcmodel=large", "-no-pie", "-fno-pic"],
        // Functions are found by their symbols.
        &["-O2", "-fno-asynchronous-unwind-tables"],
    ] {
        println!("{flags:?}");
        let program = Program::build("loops.c", "gcc", flags);
        check_registers(&std::fs::read(&program.path).unwrap(), &program.path, &BOUND, &CHOSEN);
    }
}

/// Without symbols and sections, the data for the loader suffices.
#[test]
fn registers_in_files_without_sections() {
    let program = Program::build("loops.c", "gcc", &["-O2", "-fno-plt"]);
    let bytes = std::fs::read(&program.path).unwrap();
    program.tool("strip", &["program"]);
    check_registers(&bytes, &program.path, &BOUND, &CHOSEN);
    let mut stripped = std::fs::read(&program.path).unwrap();
    // e_shoff; e_shnum and e_shstrndx.
    stripped[40..48].fill(0);
    stripped[60..64].fill(0);
    std::fs::write(&program.path, stripped).unwrap();
    check_registers(&bytes, &program.path, &BOUND, &CHOSEN);
}

/// Drop glue calls the allocator, in a loop, through a register.
#[test]
fn registers_in_a_rust_program() {
    for level in ["-Copt-level=2", "-Copt-level=3"] {
        let program = Program::build("drops.rs", "rustc", &["--edition=2024", level]);
        let bytes = std::fs::read(&program.path).unwrap();
        program.tool("strip", &["program"]);
        check_registers(&bytes, &program.path, &["drops"], &["by_vtable", "by_pointer"]);
    }
}

/// The search for the load of a register is bounded.
#[test]
fn registers_in_code_without_end() {
    let program = Program::build("calls.c", "gcc", &["-O2"]);
    let assembly = ".globl many\n.type many, @function\nmany: .cfi_startproc\n\
                    mov free@GOTPCREL(%rip), %rbx\n.rept 200000\ntest %eax, %eax\ncall *%rbx\n.endr\n\
                    ret\n.cfi_endproc\n.size many, .-many\n";
    std::fs::write(program.source.with_file_name("written.s"), assembly).unwrap();
    program.tool("gcc", &["-no-pie", "calls.c", "written.s", "-o", "program"]);
    let bytes = std::fs::read(&program.path).unwrap();
    let calls = in_function(&bytes, &program.path, "many");
    assert_eq!((calls.len(), calls.first(), calls.last()), (200_000, Some(&false), Some(&true)));
}

/// Compares all calls of a program with a full disassembly.
#[track_caller]
fn agrees(path: &Path, least: usize) {
    let bytes = std::fs::read(path).unwrap();
    let truth = disassembly::calls(&bytes);
    let mut different: Vec<disassembly::Call> = Vec::new();
    // In parts, to bound memory.
    for part in truth.chunks(400_000) {
        let ends: Vec<u64> = part.iter().map(|call| call.end).collect();
        let wrong = part.iter().zip(said(path, &ends)).filter(|(call, said)| call.dispatches() != *said);
        different.extend(wrong.map(|(call, _)| call));
    }
    let count = |kind| truth.iter().filter(|call| call.kind == kind).count();
    let [memory, register, bound] = [Kind::Memory, Kind::Register, Kind::BoundRegister].map(count);
    println!(
        "{}: {} of {} calls wrong; by memory {memory}, by register {register}, by register bound once {bound}",
        path.display(),
        different.len(),
        truth.len()
    );
    assert!(truth.len() >= least && (memory + register) * 200 > truth.len(), "too few");
    // A longer instruction may end like a shorter one by chance.
    assert!(different.len() * 10_000 <= truth.len(), "{} differ: {different:x?}", different.len());
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
    // One of the two LLVM files is a linker script.
    let large = libraries.filter(is_large).chain([PathBuf::from(cc1.trim())]);
    let large: Vec<_> =
        large.filter(|path| path.metadata().is_ok_and(|meta| meta.len() > 20 << 20)).collect();
    assert!(large.len() >= 3, "{large:?}");
    large.iter().for_each(|path| agrees(path, 100_000));
}
