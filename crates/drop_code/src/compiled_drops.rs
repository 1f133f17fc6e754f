//! Whole functions, as the compiler makes them to drop futures.

use crate::code::Code;
use crate::drops::MOST;
use crate::{Dropped, Drops, Patch, Release, Watched};
use foldhash::{HashMap, HashMapExt, HashSet};
use iced_x86::IcedError;
use iced_x86::code_asm::*;
use stackglass_layouts::KnownFunction;
use stackglass_process_view::core_image::{CoreImage, Memory};
use stackglass_process_view::pages::Pages;
use std::cell::{Cell, RefCell};

const CODE: u64 = 0x10_0000;
const RELEASE: u64 = 0x20_0000;
const VALUE: u64 = 0x30_0000;
const LOCK: u64 = 0x40_0000;
const RESUME: u64 = 0x21_0000;
const ABORT: u64 = 0x22_0000;

struct Bytes(Vec<(u64, Vec<u8>)>);

impl Memory for Bytes {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        for (at, byte) in into.iter_mut().enumerate() {
            let address = address + at as u64;
            let found = self
                .0
                .iter()
                .find_map(|(start, bytes)| bytes.get(usize::try_from(address.checked_sub(*start)?).ok()?));
            *byte = found.copied().unwrap_or(0);
        }
        into.len()
    }
}

/// What a function gives back that drops a value, which begins with these words.
fn releases(
    words: &[u64],
    patches: &[Patch],
    function: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>,
) -> (Vec<Release>, bool) {
    let ask = |drops: &Drops<'_>| drops.of_changed(CODE, VALUE, &Watched::default(), patches);
    let found = interpreted(words, function, ask);
    (found.releases, found.is_whole)
}

/// The answer of `ask` for a function, if memory begins with these words.
fn interpreted(
    words: &[u64],
    function: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>,
    ask: impl FnOnce(&Drops<'_>) -> Dropped,
) -> Dropped {
    let mut code = CodeAssembler::new(64).expect("64 bits are supported");
    function(&mut code).expect("the instructions exist");
    let code = code.assemble(CODE).expect("the code can be assembled");
    let value = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let memory = Box::new(Bytes(vec![(VALUE, value), (CODE, code)]));
    let image =
        CoreImage { pid: 1, executable: String::new(), mappings: Vec::new(), threads: Vec::new(), memory };
    let pages = Pages::new(&image);
    let code = Code {
        pages: &pages,
        functions: HashMap::from_iter([
            (RELEASE, KnownFunction::Release),
            (RESUME, KnownFunction::Resume),
            (ABORT, KnownFunction::NoReturn),
        ]),
        slots: HashMap::new(),
        modules: std::iter::once(CODE..CODE + 0x1000).collect(),
        decoded: RefCell::default(),
    };
    let drops =
        Drops { code, has_both: true, left: Cell::new(MOST), thread_local: None, stops: RefCell::default() };
    ask(&drops)
}

/// What a landing pad makes of a word of value 2 to which `rbx` points, surely and at last, and whether all of it was followed.
fn of_landing_pad(
    function: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>,
) -> (Option<Option<u64>>, Option<u64>, bool) {
    let mut registers = [None; 17];
    // By DWARF's numbers: rbx, rsp.
    (registers[3], registers[7]) = (Some(VALUE), Some(VALUE + 0x800));
    let ask = |drops: &Drops<'_>| drops.of_landing_pad(CODE, &registers, &HashSet::from_iter([VALUE]));
    let found = interpreted(&[2], function, ask);
    (found.changes(VALUE), found.leaves(VALUE), found.is_whole)
}

/// Code that gives a mutex back, as the drop of a guard does.
fn unlock(code: &mut CodeAssembler) -> Result<(), IcedError> {
    code.mov(r14, rax)?;
    code.xor(eax, eax)?;
    code.xchg(dword_ptr(rbx), eax)
}

#[test]
fn landing_pads_that_unwind_the_caller() {
    let whole = of_landing_pad(|code| {
        unlock(code)?;
        code.mov(rdi, r14)?;
        code.call(RESUME)
    });
    assert_eq!(whole, (Some(Some(0)), Some(0), true));
    let nothing = of_landing_pad(|code| code.call(RESUME));
    assert_eq!(nothing, (Some(None), None, true));
    // What is behind a call that cannot be followed is less sure.
    let behind = of_landing_pad(|code| {
        code.call(LOCK)?;
        unlock(code)?;
        code.call(RESUME)
    });
    assert_eq!(behind, (None, Some(0), false));
    let before = of_landing_pad(|code| {
        unlock(code)?;
        code.call(LOCK)?;
        code.call(RESUME)
    });
    assert_eq!(before, (Some(Some(0)), Some(0), false));
}

#[test]
fn landing_pads_that_do_something_else() {
    // The program is aborted: the code behind is that of another landing pad.
    let aborts = of_landing_pad(|code| {
        code.call(ABORT)?;
        unlock(code)?;
        code.call(RESUME)
    });
    assert_eq!(aborts, (None, None, false));
    // It catches what is thrown, and gives the lock back as usual.
    let catches = of_landing_pad(|code| {
        unlock(code)?;
        code.ret()
    });
    assert_eq!(catches, (None, None, false));
    // A register that is not known.
    let unknown = of_landing_pad(|code| {
        code.mov(dword_ptr(r12), 0)?;
        code.call(RESUME)
    });
    assert_eq!(unknown, (None, None, false));
}

/// Drops what a flag says, after a call that saves and restores the flag's register.
fn by_flag(code: &mut CodeAssembler) -> Result<(), IcedError> {
    let (mut other, mut end) = (code.create_label(), code.create_label());
    code.push(rbp)?;
    code.push(rbx)?;
    code.mov(bpl, byte_ptr(rdi))?;
    code.mov(rbx, rdi)?;
    code.call(other)?;
    code.test(bpl, bpl)?;
    code.je(end)?;
    code.mov(rdi, qword_ptr(rbx + 8))?;
    code.mov(esi, 1)?;
    code.call(RELEASE)?;
    code.set_label(&mut end)?;
    code.pop(rbx)?;
    code.pop(rbp)?;
    code.ret()?;
    code.set_label(&mut other)?;
    code.push(rbp)?;
    code.xor(ebp, ebp)?;
    code.pop(rbp)?;
    code.ret()
}

#[test]
fn a_flag_in_a_part_of_a_register_that_functions_keep() {
    let release = Release { semaphore: LOCK, permits: 1 };
    assert_eq!(releases(&[1, LOCK], &[], by_flag), (vec![release], true));
    assert_eq!(releases(&[0, LOCK], &[], by_flag), (vec![], true));
}

#[test]
fn changes_before_the_code_is_interpreted() {
    let patch = Patch { address: VALUE, size: 1, value: 0 };
    assert_eq!(releases(&[1, LOCK], &[patch], by_flag), (vec![], true));
}

#[test]
fn what_is_not_known_is_left_out() {
    let function = |code: &mut CodeAssembler| {
        let mut other = code.create_label();
        code.mov(rbx, rdi)?;
        code.call(other)?;
        code.mov(rdi, qword_ptr(rbx + 8))?;
        code.mov(esi, 1)?;
        code.call(RELEASE)?;
        code.ret()?;
        code.set_label(&mut other)?;
        code.syscall()?;
        code.ret()
    };
    let release = Release { semaphore: LOCK, permits: 1 };
    assert_eq!(releases(&[1, LOCK], &[], function), (vec![release], false));
}

/// Each message in a queue that is dropped gives a permit back, and takes the lock of the semaphore's list for that.
#[test]
fn a_lock_that_is_given_to_a_known_function_is_free_behind_it() {
    let function = |code: &mut CodeAssembler| {
        let mut end = code.create_label();
        code.mov(rbx, qword_ptr(rdi + 8))?;
        for _ in 0..3 {
            code.xor(eax, eax)?;
            code.mov(ecx, 1)?;
            code.lock().cmpxchg(dword_ptr(rbx), ecx)?;
            code.jne(end)?;
            code.mov(rdi, rbx)?;
            code.mov(esi, 1)?;
            code.mov(rdx, rbx)?;
            code.call(RELEASE)?;
        }
        code.set_label(&mut end)?;
        code.ret()
    };
    let release = Release { semaphore: LOCK, permits: 1 };
    assert_eq!(releases(&[1, LOCK], &[], function), (vec![release; 3], true));
}
