//! Stripped programs: functions are distinguished by their starts, and no names are invented.

use crate::program::{Program, frames};
use stackglass_profile::symbols::Missing;
use stackglass_symbols::Options;

/// The starts of `alpha`, `beta`, `gamma` and `main` in the file, from the program's output. Programs that are not
/// position-independent start at another address.
fn starts(program: &Program, base: u64) -> [u64; 4] {
    // It tells the start itself; `says` takes one off.
    ["alpha", "beta", "gamma", "main"].map(|name| program.says(name).address + 1 + base)
}

fn name(program: &Program, address: u64) -> String {
    frames(&program.path, address, &Options::default()).0[0].func.to_string()
}

#[test]
fn functions_go_by_their_starts() {
    for (flags, base) in [
        (&["-O2", "-s"][..], 0),
        (&["-O0", "-s"], 0),
        (&["-O2", "-s", "-no-pie"], 0x400000),
        (&["-O2", "-s", "-static"], 0x400000),
        (&["-O2", "-s", "-static-pie"], 0),
        (&["-O2", "-s", "-Wl,--no-eh-frame-hdr"], 0),
    ] {
        let program = Program::build("stripped.c", "gcc", flags);
        let functions = starts(&program, base);
        for (index, start) in functions.iter().take(3).enumerate() {
            for address in [*start, start + 1, start + 4] {
                assert_eq!(name(&program, address), format!("program+{start:#x}"), "{flags:?} {index}");
            }
        }
        let [.., main] = functions;
        assert_eq!(
            (name(&program, main), name(&program, main + 5)),
            ("main".into(), "main".into()),
            "{flags:?}"
        );
    }
}

#[test]
fn a_stripped_program_begins_at_start() {
    use object::Object;
    let program = Program::build("stripped.c", "gcc", &["-O2", "-s"]);
    let bytes = std::fs::read(&program.path).unwrap();
    let entry = object::File::parse(&*bytes).unwrap().entry();
    let (frames, missing, outcome) = frames(&program.path, entry + 9, &Options::default());
    assert_eq!((&*frames[0].func, frames.len()), ("_start", 1));
    assert_eq!(missing, [Missing::Names]);
    assert_eq!(outcome.named, 1, "it has a name, though no symbol");
}

#[test]
fn a_start_is_no_name() {
    let program = Program::build("stripped.c", "gcc", &["-O2", "-s"]);
    let [alpha, ..] = starts(&program, 0);
    let (frames, missing, outcome) = frames(&program.path, alpha, &Options::default());
    assert_eq!(frames[0].start_as_name(), Some(alpha));
    assert!(!frames[0].is_unknown() && frames[0].foreign && frames[0].file.is_empty());
    assert_eq!((outcome.named, missing), (0, vec![Missing::Names]));
}

#[test]
fn without_unwind_tables_functions_are_not_distinguished() {
    let flags = ["-O2", "-s", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-exceptions"];
    let program = Program::build("stripped.c", "gcc", &flags);
    for start in starts(&program, 0) {
        let (frames, ..) = frames(&program.path, start + 2, &Options::default());
        assert!(frames.len() == 1 && frames[0].is_unknown(), "{frames:?}");
        assert_eq!(&*frames[0].module, "program");
    }
}

#[test]
fn symbols_go_before_starts() {
    let program = Program::build("stripped.c", "gcc", &["-O2"]);
    let [alpha, ..] = starts(&program, 0);
    assert_eq!(name(&program, alpha + 1), "alpha");
    program.tool("objcopy", &["--only-keep-debug", "program", "program.debug"]);
    program.tool("objcopy", &["--strip-all", "--add-gnu-debuglink=program.debug", "program", "lean"]);
    let lean = program.path.with_file_name("lean");
    let (frames, ..) = frames(&lean, alpha + 1, &Options::default());
    assert_eq!(&*frames[0].func, "alpha");
}

/// Labels have no size: in a stripped file, another function may start behind one.
#[test]
fn an_exported_label_ends_where_the_next_function_starts() {
    let program = Program::build("stripped.c", "gcc", &["-O2"]);
    let assembly = ".text\n.globl label\nlabel: .cfi_startproc\nnop\nnop\nret\n.cfi_endproc\n\
                    .cfi_startproc\nnop\nnop\nret\n.cfi_endproc\n.section .note.GNU-stack\n";
    std::fs::write(program.path.with_file_name("label.s"), assembly).unwrap();
    program.tool("gcc", &["-O2", "-s", "-rdynamic", "stripped.c", "label.s", "-o", "program"]);
    let label = label_of(&program);
    assert_eq!(name(&program, label + 1), "label");
    assert_eq!(name(&program, label + 4), format!("program+{:#x}", label + 3));
}

fn label_of(program: &Program) -> u64 {
    use object::{Object, ObjectSymbol};
    let bytes = std::fs::read(&program.path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    file.dynamic_symbols().find(|symbol| symbol.name() == Ok("label")).unwrap().address()
}
