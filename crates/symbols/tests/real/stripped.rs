//! Stripped programs: functions are distinguished by their starts, and no names are invented.

use crate::program::{Program, frames};
use stackglass_profile::recording::Module;
use stackglass_profile::symbols::{Language, Missing};
use stackglass_profile::{Location, Recording};
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

/// As Fedora's `find-debuginfo` does it: a file with only the symbols of functions that are not exported.
fn with_mini_debug_info(program: &Program, check: &str) -> std::path::PathBuf {
    program.tool(
        "objcopy",
        &["-S", "--remove-section=.comment", "--keep-symbol=alpha", "--keep-symbol=beta", "program", "mini"],
    );
    // Keeps the headers of sections, without the bytes.
    program.tool("objcopy", &["--only-keep-debug", "mini"]);
    program.tool("xz", &["--keep", "--force", check, "mini"]);
    program.tool("objcopy", &["--strip-all", "--add-section=.gnu_debugdata=mini.xz", "program", "lean"]);
    program.path.with_file_name("lean")
}

#[test]
fn functions_have_the_names_of_mini_debug_info() {
    let program = Program::build("stripped.c", "gcc", &["-O2", "-rdynamic"]);
    let [alpha, beta, gamma, main] = starts(&program, 0);
    for check in ["--check=crc32", "--check=crc64"] {
        let lean = with_mini_debug_info(&program, check);
        let name = |address| frames(&lean, address, &Options::default()).0[0].func.to_string();
        assert_eq!((name(alpha + 1), name(beta + 1)), ("alpha".into(), "beta".into()), "{check}");
        assert_eq!(name(gamma + 1), format!("lean+{gamma:#x}"), "it is in neither table");
        assert_eq!(name(main + 1), "main", "it is exported");
        assert_eq!(frames(&lean, alpha, &Options::default()).1, [Missing::DebugInfo], "lines");
    }
}

#[test]
fn damaged_mini_debug_info_loses_only_its_names() {
    let program = Program::build("stripped.c", "gcc", &["-O2"]);
    let [alpha, ..] = starts(&program, 0);
    let lean = with_mini_debug_info(&program, "--check=crc64");
    let packed = std::fs::read(program.path.with_file_name("mini.xz")).unwrap();
    let whole = std::fs::read(&lean).unwrap();
    let at = whole.windows(packed.len()).position(|part| part == packed).expect("the section");
    for position in (0..packed.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at + position] ^= 0x55;
        std::fs::write(&lean, bytes).unwrap();
        let (frames, ..) = frames(&lean, alpha + 1, &Options::default());
        let name = &*frames[0].func;
        assert!(name == "alpha" || name == format!("lean+{alpha:#x}"), "{name} with byte {position} damaged");
    }
}

#[test]
fn mini_debug_info_that_expands_without_end_is_not_read() {
    let program = Program::build("stripped.c", "gcc", &["-O2"]);
    let [alpha, ..] = starts(&program, 0);
    std::fs::write(program.path.with_file_name("zeros"), vec![0; 64 << 20]).unwrap();
    program.tool("xz", &["-9", "zeros"]);
    program.tool("objcopy", &["--strip-all", "--add-section=.gnu_debugdata=zeros.xz", "program", "lean"]);
    let lean = program.path.with_file_name("lean");
    let (frames, _, outcome) = frames(&lean, alpha + 1, &Options::default());
    assert_eq!(&*frames[0].func, format!("lean+{alpha:#x}"));
    let problem =
        outcome.problems.iter().map(ToString::to_string).find(|text| text.contains("gnu_debugdata"));
    assert!(problem.is_some_and(|text| text.contains("more than the")), "{:?}", outcome.problems);
}

#[test]
fn stripped_files_still_tell_their_language() {
    let language = |program: &Program| {
        let mut recording = Recording::default();
        let path = program.path.to_str().unwrap().into();
        let module = recording.intern_module(Module { path, build_id: [].into() });
        recording.stacks.intern_location(Location { module: Some(module), offset: 0x1100 });
        stackglass_symbols::symbolize(&mut recording, &Options::default(), &mut |_| ());
        recording.symbols.notes().iter().map(|note| (note.missing, note.language)).collect::<Vec<_>>()
    };
    let c = Program::build("stripped.c", "gcc", &["-O2", "-s"]);
    assert_eq!(language(&c), [(Missing::Names, Language::C)]);
    let rust = Program::rust(&["-Cstrip=symbols"]);
    assert_eq!(language(&rust), [(Missing::Names, Language::Rust)]);
    let unknown = Program::build("stripped.c", "gcc", &["-O2"]);
    unknown.tool("strip", &["--strip-all", "--remove-section=.comment", "program"]);
    assert_eq!(language(&unknown), [(Missing::Names, Language::Unknown)]);
    unknown.tool("objcopy", &["--add-section=.note.go.buildid=stripped.c", "program"]);
    assert_eq!(language(&unknown), [(Missing::Names, Language::Go)]);
}
