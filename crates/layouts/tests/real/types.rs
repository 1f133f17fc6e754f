//! Layouts of types, compared with what programs tell of their own types and variables.

use crate::program::{Program, run};
use stackglass_layouts::{Layout, Layouts, Shape, Variable};
use stackglass_profile::recording::Module;
use stackglass_symbols::Options;
use std::process::Command;

fn read(program: &Program) -> Layouts {
    let module = Module { path: program.path.to_str().unwrap().into(), build_id: [].into() };
    Layouts::read(&[module], &Options::default())
}

fn layout<'a>(layouts: &'a Layouts, name: &str) -> &'a Layout {
    layouts.get(layouts.by_name(name).unwrap_or_else(|| panic!("{name} is unknown")))
}

/// Offset and layout of a field, by its path: `a.b`.
fn field<'a>(layouts: &'a Layouts, name: &str, path: &str) -> (u64, &'a Layout) {
    let (mut now, mut at) = (layout(layouts, name), 0);
    for part in path.split('.') {
        let (Shape::Struct(fields) | Shape::Union(fields)) = &now.shape else { panic!("{now:?}") };
        // Members of anonymous structs and unions are members of the type around.
        let inside = |layout: &Layout| match &layout.shape {
            Shape::Struct(fields) | Shape::Union(fields) => fields.iter().any(|field| &*field.name == part),
            _ => false,
        };
        let found = fields.iter().find(|field| &*field.name == part).or_else(|| {
            fields.iter().find(|field| field.name.is_empty() && inside(layouts.get(field.type_id)))
        });
        let found = found.unwrap_or_else(|| panic!("no {part} in {now:?}"));
        at += found.offset;
        now = layouts.get(found.type_id);
        if found.name.is_empty() {
            let (Shape::Struct(fields) | Shape::Union(fields)) = &now.shape else { panic!("{now:?}") };
            let found = fields.iter().find(|field| &*field.name == part).unwrap();
            at += found.offset;
            now = layouts.get(found.type_id);
        }
    }
    (at, now)
}

/// The variant of a value, as its bytes tell.
fn variant<'a>(layout: &'a Layout, value: &[u8]) -> &'a str {
    let Shape::Enum { tag, variants } = &layout.shape else { panic!("{layout:?}") };
    let bits = tag.map(|(offset, size)| {
        let mut bytes = [0; 16];
        bytes[..size as usize].copy_from_slice(&value[offset as usize..(offset + size) as usize]);
        u128::from_le_bytes(bytes)
    });
    let chosen = variants.iter().find(|variant| {
        let values = variant.values.as_ref();
        bits.zip(values).is_some_and(|(bits, values)| values.iter().any(|range| range.contains(&bits)))
    });
    &chosen.or_else(|| variants.iter().find(|variant| variant.values.is_none())).expect("a variant").name
}

fn variable<'a>(variables: &'a [Variable], name: &str, address: u64) -> &'a Variable {
    let found = variables.iter().find(|variable| variable.address == address);
    let found = found.unwrap_or_else(|| panic!("nothing at {address:#x} for {name}: {variables:#x?}"));
    assert_eq!(&*found.name, name);
    found
}

/// Checks each line of the program's output. Returns the number of lines of each kind.
fn check(program: &Program) {
    let layouts = read(program);
    let data = layouts.module(0);
    let output = run(&mut Command::new(&program.path));
    let mut lines = 0;
    for line in output.lines() {
        let words: Vec<&str> = line.split('|').collect();
        let number = |text: &str| text.parse::<u64>().unwrap();
        lines += 1;
        match words[..] {
            ["type", name, size] => assert_eq!(layout(&layouts, name).size, number(size), "{line}"),
            ["short", name, short] => assert_eq!(layout(&layouts, name).short_name(), short, "{line}"),
            ["field", name, path, offset, size] => {
                let (at, found) = field(&layouts, name, path);
                assert_eq!((at, found.size), (number(offset), number(size)), "{line} {found:?}");
            }
            ["target", name, path, target] => {
                let (_, found) = field(&layouts, name, path);
                let Shape::Pointer { target: Some(id) } = found.shape else { panic!("{line}: {found:?}") };
                assert_eq!(&*layouts.get(id).name, target, "{line}");
            }
            ["count", name, path, count] => {
                let (_, found) = field(&layouts, name, path);
                let Shape::Array { count: found, .. } = found.shape else { panic!("{line}: {found:?}") };
                assert_eq!(found, number(count), "{line}");
            }
            ["variant", name, expected, value] => {
                let bytes: Vec<u8> = (0..value.len() / 2)
                    .map(|at| u8::from_str_radix(&value[2 * at..][..2], 16).unwrap())
                    .collect();
                assert_eq!(variant(layout(&layouts, name), &bytes), expected, "{line}");
            }
            ["variant field", name, of, path, offset] => {
                let Shape::Enum { variants, .. } = &layout(&layouts, name).shape else { panic!("{line}") };
                let of = variants.iter().find(|variant| &*variant.name == of).expect(line);
                let field = of.fields.iter().find(|field| &*field.name == path).expect(line);
                assert_eq!(field.offset, number(offset), "{line}");
            }
            ["partial", name] => assert!(layout(&layouts, name).partial, "{line}"),
            ["static", name, address, a_type, size] => {
                let found = variable(&data.statics, name, number(address));
                assert_eq!(found.type_id.map_or("", |id| &layouts.get(id).name), a_type, "{line}");
                assert_eq!(found.size, number(size), "{line}");
            }
            ["thread local", name, below, a_type, size] => {
                let found = variable(&data.thread_locals, name, tls_size(program) - number(below));
                assert_eq!(found.type_id.map_or("", |id| &layouts.get(id).name), a_type, "{line}");
                assert_eq!(found.size, number(size), "{line}");
            }
            ["vtable", name, address, offset] => {
                let found = data.vtables.iter().find(|vtable| vtable.address == number(address)).expect(line);
                assert_eq!(
                    (&*layouts.get(found.type_id).name, found.offset),
                    (name, number(offset)),
                    "{line}"
                );
            }
            _ => panic!("{line}"),
        }
    }
    assert!(lines > 10, "{output}");
    for (at, list) in [&data.statics, &data.thread_locals].into_iter().enumerate() {
        assert!(list.is_sorted_by_key(|variable| variable.address), "{at}");
        let overlaps = list.windows(2).find(|pair| pair[0].address + pair[0].size > pair[1].address);
        assert!(overlaps.is_none() || at == 0, "{overlaps:?}");
    }
}

/// Size of the program's thread-local storage below the thread pointer.
fn tls_size(program: &Program) -> u64 {
    use object::read::elf::ProgramHeader;
    let bytes = std::fs::read(&program.path).unwrap();
    let file = object::read::elf::ElfFile64::<object::LittleEndian>::parse(&*bytes).unwrap();
    let tls = file
        .elf_program_headers()
        .iter()
        .find(|header| header.p_type(object::LittleEndian) == object::elf::PT_TLS);
    let tls = tls.unwrap();
    tls.p_memsz(object::LittleEndian).next_multiple_of(tls.p_align(object::LittleEndian))
}

fn rust(flags: &[&str]) -> Program {
    let all = [
        &["--edition=2024", "-Cdebuginfo=2", "-Zunstable-options", "-Awarnings", "--crate-name=known"],
        flags,
    ];
    Program::build_with("layouts.rs", "rustc", &all.concat(), &[("RUSTC_BOOTSTRAP", "1")])
}

#[test]
fn rust_types_are_laid_out_as_the_program_tells() {
    check(&rust(&["-Copt-level=2", "-Zdwarf-version=5"]));
}

#[test]
#[ignore = "long: builds two more programs, one with the standard library"]
fn rust_types_of_other_builds_are_laid_out_as_the_program_tells() {
    check(&rust(&["-Copt-level=0"]));
    check(&rust(&["-Copt-level=2", "-Clto=fat", "-Ccodegen-units=1"]));
}

#[test]
fn rust_types_are_found_in_split_files() {
    check(&rust(&["-Csplit-debuginfo=unpacked", "-Zdwarf-version=5"]));
    check(&rust(&["-Csplit-debuginfo=packed"]));
}

#[test]
fn c_types_are_laid_out_as_the_program_tells() {
    for flags in [
        &["-g", "-O0"][..],
        &["-g", "-O2", "-gdwarf-4"],
        &["-g", "-fdebug-types-section"],
        &["-g", "-fdebug-types-section", "-gdwarf-4"],
        &["-g", "-gz=zlib"],
        &["-g", "-gsplit-dwarf"],
        &["-g", "-gsplit-dwarf", "-gdwarf-4"],
    ] {
        check(&Program::build("layouts.c", "gcc", flags));
    }
}

fn cpp(flags: &[&str]) -> Program {
    Program::build("layouts.cpp", "g++", flags)
}

#[test]
fn cpp_types_are_laid_out_as_the_program_tells() {
    check(&cpp(&["-g", "-gsplit-dwarf", "-fdebug-types-section"]));
    // Variables complete entries that complete others.
    check(&cpp(&["-g", "-O1", "-flto", "-fno-ipa-cp"]));
}

/// The forms of DWARF are those of the programs in C.
#[test]
#[ignore = "long: builds four more programs"]
fn cpp_types_of_other_builds_are_laid_out_as_the_program_tells() {
    for flags in [
        &["-g", "-O0"][..],
        &["-g", "-O2", "-gdwarf-4"],
        &["-g", "-fdebug-types-section"],
        &["-g", "-fdebug-types-section", "-gdwarf-4"],
    ] {
        check(&cpp(flags));
    }
}

#[test]
fn types_are_found_in_packages_and_separate_files() {
    let flags = ["-g", "-gdwarf-4", "-gsplit-dwarf", "-fdebug-types-section"];
    let program = Program::build("layouts.cpp", "g++", &flags);
    program.tool("dwp", &["-e", "program"]);
    for entry in std::fs::read_dir(program.path.parent().unwrap()).unwrap().flatten() {
        if entry.path().extension().is_some_and(|end| end == "dwo") {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    check(&program);
    let program = Program::build("layouts.c", "gcc", &["-g", "-Wl,--build-id"]);
    program.tool("objcopy", &["--only-keep-debug", "program", "program.debug"]);
    program.tool("strip", &["program"]);
    program.tool("objcopy", &["--add-gnu-debuglink=program.debug", "program"]);
    check(&program);
}
