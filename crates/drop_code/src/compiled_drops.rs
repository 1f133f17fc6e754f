//! Whole functions, as the compiler makes them to drop futures.

use crate::code::Code;
use crate::drops::MOST;
use crate::{Dropped, Drops, Patch, Release, Watched};
use foldhash::{HashMap, HashMapExt, HashSet};
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

/// A piece of a function.
enum Part {
    /// An instruction.
    One(&'static [u8]),
    /// A call of the function at an address.
    Call(u64),
    /// A call of what is behind a label.
    CallOf(&'static str),
    /// A jump to a label: its opcode is given.
    Jump(u8, &'static str),
    Label(&'static str),
}
use Part::*;

const RET: Part = One(&[0xc3]);
const PUSH_RBP: Part = One(&[0x55]);
const POP_RBP: Part = One(&[0x5d]);
const PUSH_RBX: Part = One(&[0x53]);
const POP_RBX: Part = One(&[0x5b]);
const SYSCALL: Part = One(&[0x0f, 0x05]);
const MOV_R14_RAX: Part = One(&[0x49, 0x89, 0xc6]);
const MOV_RDI_R14: Part = One(&[0x4c, 0x89, 0xf7]);
const MOV_RBX_RDI: Part = One(&[0x48, 0x89, 0xfb]);
const MOV_RDI_RBX: Part = One(&[0x48, 0x89, 0xdf]);
const MOV_RDX_RBX: Part = One(&[0x48, 0x89, 0xda]);
const MOV_ECX_1: Part = One(&[0xb9, 1, 0, 0, 0]);
const MOV_ESI_1: Part = One(&[0xbe, 1, 0, 0, 0]);
const XOR_EAX_EAX: Part = One(&[0x31, 0xc0]);
const XOR_EBP_EBP: Part = One(&[0x31, 0xed]);
const TEST_BPL_BPL: Part = One(&[0x40, 0x84, 0xed]);
/// `mov bpl, [rdi]`
const LOAD_BPL_OF_RDI: Part = One(&[0x40, 0x8a, 0x2f]);
/// `mov rdi, [rbx + 8]`
const LOAD_RDI_OF_RBX_8: Part = One(&[0x48, 0x8b, 0x7b, 8]);
/// `mov rbx, [rdi + 8]`
const LOAD_RBX_OF_RDI_8: Part = One(&[0x48, 0x8b, 0x5f, 8]);
/// `mov dword ptr [r12], 0`
const CLEAR_AT_R12: Part = One(&[0x41, 0xc7, 0x04, 0x24, 0, 0, 0, 0]);
/// `xchg [rbx], eax`
const XCHG_AT_RBX_EAX: Part = One(&[0x87, 0x03]);
/// `lock cmpxchg [rbx], ecx`
const LOCK_CMPXCHG_AT_RBX_ECX: Part = One(&[0xf0, 0x0f, 0xb1, 0x0b]);
const JE: u8 = 0x74;
const JNE: u8 = 0x75;

/// The bytes of a function at `CODE`.
fn assembled(parts: &[Part]) -> Vec<u8> {
    let mut labels = HashMap::new();
    let mut at = 0;
    for part in parts {
        at += match part {
            One(bytes) => bytes.len(),
            Call(_) | CallOf(_) => 5,
            Jump(..) => 2,
            Label(name) => {
                labels.insert(*name, at);
                0
            }
        };
    }
    let mut code = Vec::new();
    for part in parts {
        let behind = |len| code.len() as i64 + len;
        let call = |target: i64| {
            let distance = i32::try_from(target - behind(5)).expect("it is near");
            [&[0xe8], &distance.to_le_bytes()[..]].concat()
        };
        let bytes = match part {
            One(bytes) => bytes.to_vec(),
            Call(address) => call((*address - CODE) as i64),
            CallOf(name) => call(labels[name] as i64),
            Jump(opcode, name) => {
                let distance = i8::try_from(labels[name] as i64 - behind(2)).expect("it is near");
                vec![*opcode, distance as u8]
            }
            Label(_) => Vec::new(),
        };
        code.extend(bytes);
    }
    code
}

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
fn releases(words: &[u64], patches: &[Patch], function: &[Part]) -> (Vec<Release>, bool) {
    let ask = |drops: &Drops<'_>| drops.of_changed(CODE, VALUE, &Watched::default(), patches);
    let found = interpreted(words, function, ask);
    (found.releases, found.is_whole)
}

/// The answer of `ask` for a function, if memory begins with these words.
fn interpreted(words: &[u64], function: &[Part], ask: impl FnOnce(&Drops<'_>) -> Dropped) -> Dropped {
    let code = assembled(function);
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
fn of_landing_pad(function: &[Part]) -> (Option<Option<u64>>, Option<u64>, bool) {
    let mut registers = [None; 17];
    // By DWARF's numbers: rbx, rsp.
    (registers[3], registers[7]) = (Some(VALUE), Some(VALUE + 0x800));
    let ask = |drops: &Drops<'_>| drops.of_landing_pad(CODE, &registers, &HashSet::from_iter([VALUE]));
    let found = interpreted(&[2], function, ask);
    (found.changes(VALUE), found.leaves(VALUE), found.is_whole)
}

/// Code that gives a mutex back, as the drop of a guard does.
const UNLOCK: [Part; 3] = [MOV_R14_RAX, XOR_EAX_EAX, XCHG_AT_RBX_EAX];

/// `UNLOCK` between other parts.
fn around_unlock<const B: usize, const A: usize>(before: [Part; B], after: [Part; A]) -> Vec<Part> {
    before.into_iter().chain(UNLOCK).chain(after).collect()
}

#[test]
fn landing_pads_that_unwind_the_caller() {
    let whole = of_landing_pad(&around_unlock([], [MOV_RDI_R14, Call(RESUME)]));
    assert_eq!(whole, (Some(Some(0)), Some(0), true));
    let nothing = of_landing_pad(&[Call(RESUME)]);
    assert_eq!(nothing, (Some(None), None, true));
    // What is behind a call that cannot be followed is less sure.
    let behind = of_landing_pad(&around_unlock([Call(LOCK)], [Call(RESUME)]));
    assert_eq!(behind, (None, Some(0), false));
    let before = of_landing_pad(&around_unlock([], [Call(LOCK), Call(RESUME)]));
    assert_eq!(before, (Some(Some(0)), Some(0), false));
}

#[test]
fn landing_pads_that_do_something_else() {
    // The program is aborted: the code behind is that of another landing pad.
    let aborts = of_landing_pad(&around_unlock([Call(ABORT)], [Call(RESUME)]));
    assert_eq!(aborts, (None, None, false));
    // It catches what is thrown, and gives the lock back as usual.
    let catches = of_landing_pad(&around_unlock([], [RET]));
    assert_eq!(catches, (None, None, false));
    // A register that is not known.
    let unknown = of_landing_pad(&[CLEAR_AT_R12, Call(RESUME)]);
    assert_eq!(unknown, (None, None, false));
}

/// Drops what a flag says, after a call that saves and restores the flag's register.
const BY_FLAG: [Part; 19] = [
    PUSH_RBP,
    PUSH_RBX,
    LOAD_BPL_OF_RDI,
    MOV_RBX_RDI,
    CallOf("other"),
    TEST_BPL_BPL,
    Jump(JE, "end"),
    LOAD_RDI_OF_RBX_8,
    MOV_ESI_1,
    Call(RELEASE),
    Label("end"),
    POP_RBX,
    POP_RBP,
    RET,
    Label("other"),
    PUSH_RBP,
    XOR_EBP_EBP,
    POP_RBP,
    RET,
];

#[test]
fn a_flag_in_a_part_of_a_register_that_functions_keep() {
    let release = Release { semaphore: LOCK, permits: 1 };
    assert_eq!(releases(&[1, LOCK], &[], &BY_FLAG), (vec![release], true));
    assert_eq!(releases(&[0, LOCK], &[], &BY_FLAG), (vec![], true));
}

#[test]
fn changes_before_the_code_is_interpreted() {
    let patch = Patch { address: VALUE, size: 1, value: 0 };
    assert_eq!(releases(&[1, LOCK], &[patch], &BY_FLAG), (vec![], true));
}

#[test]
fn what_is_not_known_is_left_out() {
    let function = [
        MOV_RBX_RDI,
        CallOf("other"),
        LOAD_RDI_OF_RBX_8,
        MOV_ESI_1,
        Call(RELEASE),
        RET,
        Label("other"),
        SYSCALL,
        RET,
    ];
    let release = Release { semaphore: LOCK, permits: 1 };
    assert_eq!(releases(&[1, LOCK], &[], &function), (vec![release], false));
}

/// Each message in a queue that is dropped gives a permit back, and takes the lock of the semaphore's list for that.
#[test]
fn a_lock_that_is_given_to_a_known_function_is_free_behind_it() {
    let message = || {
        let take = [XOR_EAX_EAX, MOV_ECX_1, LOCK_CMPXCHG_AT_RBX_ECX, Jump(JNE, "end")];
        let give_back = [MOV_RDI_RBX, MOV_ESI_1, MOV_RDX_RBX, Call(RELEASE)];
        take.into_iter().chain(give_back)
    };
    let mut function = vec![LOAD_RBX_OF_RDI_8];
    (0..3).for_each(|_| function.extend(message()));
    function.extend([Label("end"), RET]);
    let release = Release { semaphore: LOCK, permits: 1 };
    assert_eq!(releases(&[1, LOCK], &[], &function), (vec![release; 3], true));
}
