//! Damaged files: for all bytes, there is a result and no panic.

use crate::program::Program;
use proptest::prelude::*;
use stackglass_layouts::{Field, Layouts, Shape, TypeId};
use stackglass_profile::recording::Module;
use stackglass_profile::{Location, Recording};
use stackglass_symbols::Options;
use std::path::Path;
use std::sync::OnceLock;

/// Small programs with much debug information.
fn originals() -> &'static [Vec<u8>] {
    static BYTES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let builds = [
            ("known.c", "gcc", &["-O2", "-g", "-gdwarf-4"][..]),
            ("known.cpp", "g++", &["-O2", "-g", "-gdwarf-5"]),
            ("known.cpp", "g++", &["-O2", "-g", "-gz=zlib"]),
            ("known.c", "gcc", &["-O2", "-g", "-gsplit-dwarf"]),
            ("loops.c", "gcc", &["-O2", "-g", "-fno-plt"]),
            ("stripped.c", "gcc", &["-O2", "-s"]),
            ("stripped.c", "gcc", &["-O2", "-s", "-Wl,--no-eh-frame-hdr"]),
        ];
        builds
            .map(|(source, compiler, flags)| {
                std::fs::read(Program::build(source, compiler, flags).path).unwrap()
            })
            .into()
    })
}

/// Symbolizes addresses all over the file.
fn survive(bytes: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program");
    std::fs::write(&path, bytes).unwrap();
    let mut recording = Recording::default();
    let module = recording.intern_module(Module { path: path.to_str().unwrap().into(), build_id: [].into() });
    let mut locations = Vec::new();
    for offset in (0x1000..0x1400).step_by(3).chain([0, 1, u64::MAX, u64::MAX - 1, 1 << 63]) {
        let location = Location { module: Some(module), offset };
        locations.push(recording.stacks.intern_location(location));
    }
    let options = Options { threads: Some(1), ..Options::default() };
    let outcome = stackglass_symbols::symbolize(&mut recording, &options, &mut |_| ());
    assert_eq!(outcome.locations, locations.len());
    for location in locations {
        assert!(recording.symbols.frames_of(location).count() >= 1);
    }
    read_layouts(&path);
}

/// Reads the types of a file and follows all of them.
fn read_layouts(path: &Path) -> Layouts {
    let options = Options { threads: Some(1), ..Options::default() };
    let module = Module { path: path.to_str().unwrap().into(), build_id: [].into() };
    let layouts = Layouts::read(&[module], &options);
    for id in 0..layouts.len() as u32 {
        let layout = layouts.get(TypeId(id));
        let fields = |fields: &[Field]| fields.iter().map(|field| field.type_id).collect::<Vec<_>>();
        let targets = match &layout.shape {
            Shape::Plain | Shape::Pointer { target: None } => Vec::new(),
            Shape::Pointer { target: Some(target) } => vec![*target],
            Shape::Array { element, .. } => vec![*element],
            Shape::Struct(all) | Shape::Union(all) => fields(all),
            Shape::Enum { variants, .. } => variants.iter().flat_map(|one| fields(&one.fields)).collect(),
        };
        let arguments = layout.arguments.iter().map(|(_, id)| *id);
        targets.into_iter().chain(arguments).for_each(|id| assert!((id.0 as usize) < layouts.len()));
        assert!(layouts.by_name(&layout.name).is_some());
    }
    layouts
}

proptest! {
    #[test]
    fn bytes_changed_anywhere(
        which in 0..7usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..60),
    ) {
        let mut bytes = originals()[which].clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        survive(&bytes);
    }

    #[test]
    fn bytes_changed_in_what_is_read(
        which in 0..7usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..30),
    ) {
        let mut bytes = originals()[which].clone();
        let ranges = ranges_read(&bytes);
        for (at, byte) in changes {
            let mut at = at.index(ranges.iter().map(|range| range.len()).sum());
            for range in &ranges {
                if at < range.len() {
                    bytes[range.start + at] = byte;
                    break;
                }
                at -= range.len();
            }
        }
        survive(&bytes);
    }

    #[test]
    fn files_cut_short(which in 0..7usize, at in any::<prop::sample::Index>()) {
        let bytes = &originals()[which];
        survive(&bytes[..at.index(bytes.len())]);
    }

    #[test]
    fn not_a_program_at_all(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        survive(&bytes);
        survive(&[b"\x7fELF\x02\x01\x01", &bytes[..]].concat());
    }
}

fn ranges_read(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    use object::{Object, ObjectSection};
    let file = object::File::parse(bytes).unwrap();
    file.sections()
        .filter(|section| {
            section.name().is_ok_and(|name| name.starts_with(".debug_") || name.starts_with(".eh_frame"))
        })
        .filter_map(|section| section.file_range())
        .map(|(start, size)| start as usize..(start + size) as usize)
        .collect()
}

#[test]
fn things_that_are_no_files() {
    for path in ["/dev/zero", "/", "/nonexistent", "/proc/self/mem", "", "[heap]", "relative"] {
        let mut recording = Recording::default();
        let module = recording.intern_module(Module { path: path.into(), build_id: [].into() });
        let location = recording.stacks.intern_location(Location { module: Some(module), offset: 4096 });
        let outcome = stackglass_symbols::symbolize(&mut recording, &Options::default(), &mut |_| ());
        assert_eq!(recording.symbols.frames_of(location).count(), 1, "{path}");
        assert_eq!(outcome.problems.len(), 1, "{path}");
        assert_eq!(recording.symbols.notes().len(), 1, "{path}");
    }
}

/// Builds a program with the debug information that is written out in `assembly`; `.debug_aranges`
/// gives its one unit the addresses from 0x1000 to 0x5000.
fn with_debug_information(abbreviations: &str, entries: &str) -> Program {
    let program = Program::build("known.c", "gcc", &["-O2"]);
    let assembly = format!(
        ".section .debug_abbrev\n.byte {abbreviations}, 0\n\
         .section .debug_aranges\n.long 44\n.short 2\n.long 0\n.byte 8,0\n.long 0\n.quad 0x1000,0x4000,0,0\n\
         .section .debug_info\n.long 2f-1f\n1: .short 4\n.long 0\n.byte 8\n{entries}\n2:\n"
    );
    let root = program.path.parent().unwrap();
    std::fs::write(root.join("written.s"), assembly).unwrap();
    program.tool("gcc", &["known.c", "written.s", "-o", "program"]);
    program
}

/// Entries nested a million deep take memory in proportion, and no stack.
#[test]
fn nesting_without_end() {
    let namespaces = "1,0x11,1,0,0, 2,0x39,1,0,0";
    let program = with_debug_information(namespaces, ".byte 1\n.rept 1000000\n.byte 2\n.endr");
    let (frames, ..) = crate::program::frames(&program.path, 0x1100, &Options::default());
    assert_eq!(frames.len(), 1);
    survive(&std::fs::read(&program.path).unwrap());
}

/// A small file cannot demand millions of frames.
#[test]
fn inlining_without_end() {
    let calls = "1,0x11,1,0,0, 2,0x2e,1,0x11,1,0x12,7,0,0, 3,0x1d,1,0x11,1,0x12,7,0,0";
    let entries = ".byte 1,2\n.quad 0x1000,0x4000\n.rept 100000\n.byte 3\n.quad 0x1000,0x4000\n.endr";
    let program = with_debug_information(calls, entries);
    let (frames, ..) = crate::program::frames(&program.path, 0x1100, &Options::default());
    assert_eq!(frames.len(), 501);
    assert!(frames.iter().rev().skip(1).all(|frame| frame.inlined));
}

/// A sorted index whose number of entries has eight bytes, all set.
#[test]
fn an_index_of_too_many_entries() {
    use object::{Object, ObjectSection};
    let mut bytes = originals()[5].clone();
    let (start, _) =
        object::File::parse(&*bytes).unwrap().section_by_name(".eh_frame_hdr").unwrap().file_range().unwrap();
    let start = start as usize;
    assert_eq!(bytes[start + 2], 0x03);
    bytes[start + 2] = 0x04;
    bytes[start + 8..start + 16].fill(0xff);
    survive(&bytes);
}

/// An unwind table with a million entries that all cover the same addresses is read in one pass.
#[test]
fn an_unwind_table_that_covers_everything() {
    let program = Program::build("stripped.c", "gcc", &["-O2"]);
    // Entries with one shared part; each covers almost all addresses.
    let assembly = ".section .eh_frame,\"a\",@progbits\n1: .long 3f-2f\n2: .long 0\n.byte 1,0,1,0x78,16\n.balign 8\n3:\n\
                    .rept 300000\n4: .long 24\n5: .long .-1b\n.quad 0,0x7fffffffffffffff\n.long 0\n.endr\n\
                    .section .note.GNU-stack\n";
    std::fs::write(program.path.with_file_name("table.s"), assembly).unwrap();
    let flags = ["-O2", "-s", "-Wl,--no-eh-frame-hdr,--no-ld-generated-unwind-info", "stripped.c", "table.s"];
    program.tool("gcc", &[&flags[..], &["-o", "program"]].concat());
    let begin = std::time::Instant::now();
    survive(&std::fs::read(&program.path).unwrap());
    assert!(begin.elapsed() < std::time::Duration::from_secs(20), "{:?}", begin.elapsed());
}

/// Types that consist of each other without end, and names that are longer than all else, end somewhere.
#[test]
fn types_without_end() {
    // 2: pointer, 3: struct, 4: member, 5: const, 6: array, 7: subrange, 8: variant part, 9: variant.
    let abbreviations = "1,0x11,1,0,0, 2,0xf,0,0x49,0x13,0,0, 3,0x13,1,3,0xe,0xb,0xb,0,0, 4,0xd,0,3,0xe,0x49,0x13,0x38,0xb,0,0, \
                         5,0x26,0,0x49,0x13,0,0, 6,1,1,0x49,0x13,0,0, 7,0x21,0,0x2f,6,0,0, 8,0x33,1,0,0, 9,0x19,1,0,0";
    let name = "a<".repeat(6000);
    let entries = format!(
        ".byte 1\n\
         10: .byte 2\n.long 10b-1b+4\n\
         20: .byte 5\n.long 21f-1b+4\n21: .byte 5\n.long 20b-1b+4\n\
         .rept 20000\n30: .byte 2\n.long .-1b-2\n.endr\n\
         .rept 3000\n40: .byte 3\n.long long-.debug_str\n.byte 8\n\
         .byte 4\n.long long-.debug_str\n.long 10b-1b+4\n.byte 0\n\
         .byte 4\n.long long-.debug_str\n.long 20b-1b+4\n.byte 8\n\
         .byte 4\n.long long-.debug_str\n.long 30b-1b+4\n.byte 8\n.byte 0\n.endr\n\
         50: .byte 6\n.long 40b-1b+4\n.byte 7\n.long -1\n.byte 0\n\
         .rept 200\n60: .byte 6\n.long .-1b-5\n.byte 7\n.long 0x7ffffffe\n.byte 0\n.endr\n\
         70: .byte 3\n.long long-.debug_str\n.byte 8\n.byte 8\n\
         .rept 3000\n.byte 9\n.byte 4\n.long long-.debug_str\n.long 40b-1b+4\n.byte 0\n.byte 0\n.endr\n.byte 0\n.byte 0\n\
         .byte 0\n.section .debug_str,\"MS\",@progbits,1\nlong: .string \"{name}\"\n.section .debug_info\n"
    );
    let program = with_debug_information(abbreviations, &entries);
    let begin = std::time::Instant::now();
    let layouts = read_layouts(&program.path);
    assert!(begin.elapsed() < std::time::Duration::from_secs(20), "{:?}", begin.elapsed());
    assert!(layouts.len() > 3, "{}", layouts.len());
    let names: usize = (0..layouts.len() as u32).map(|id| layouts.get(TypeId(id)).name.len()).sum();
    assert!(names < 16 << 20, "{names}");
}
