//! Unwind tables and tables of call sites: for any bytes, each question about a function has an answer, without a panic, an endless
//! loop, memory, a read outside of the module, or more frames than fit.

use super::memory::peak;
use stackglass_unwind::modules::{OwnedModuleList, ProgramHeader};
use stackglass_unwind::{
    CallSites, LandingPad, Module, ModuleMemory, Register, Registers, Scratch, StackMemory, Walker,
};
use std::cell::Cell;

/// Address of the unwind data.
pub const DATA: u64 = 0x10_0000;
/// Address of the code.
pub const CODE: u64 = 0x20_0000;
/// Size of the code.
pub const CODE_SIZE: u64 = 0x1000;

/// A readable segment with given bytes, and a segment of code that consists of `call` instructions.
pub struct Bytes {
    pub data: Vec<u8>,
    pub reads: Cell<u64>,
}

impl Bytes {
    pub fn module(&self, header_size: u64) -> Module {
        let size = self.data.len() as u64;
        let headers = [
            ProgramHeader { kind: 1, flags: 4, address: DATA, size },
            ProgramHeader { kind: 1, flags: 5, address: CODE, size: CODE_SIZE },
            ProgramHeader { kind: 0x6474_e550, flags: 4, address: DATA, size: header_size.min(size) },
        ];
        Module::from_program_headers(0, headers.into_iter(), |_, _| 0).expect("two segments")
    }
}

impl ModuleMemory for Bytes {
    fn read(&self, _: &Module, address: u64, into: &mut [u8]) -> usize {
        self.reads.set(self.reads.get() + 1);
        assert!(self.reads.get() < 5_000_000, "reads without end");
        let data_end = DATA + self.data.len() as u64;
        let last = address.checked_add(into.len() as u64).expect("no read beyond the last address");
        if (DATA..data_end).contains(&address) {
            assert!(last <= data_end, "a read of unwind data ends inside it");
            let from = (address - DATA) as usize;
            into.copy_from_slice(&self.data[from..from + into.len()]);
            return into.len();
        }
        let code_end = CODE + CODE_SIZE;
        assert!((CODE - 8..=code_end).contains(&address), "a read at {address:#x} is neither data nor code");
        // A read may ask for more than there is: code ends where its segment does.
        let len = last.min(code_end).saturating_sub(address) as usize;
        into[..len].fill(0xe8);
        len
    }
}

/// Random memory, from a seed.
struct Noise(u64);

impl StackMemory for Noise {
    fn read_u64(&mut self, address: u64) -> Option<u64> {
        let mut x = (address ^ self.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x ^= x >> 31;
        match x % 4 {
            0 => None,
            1 => Some(x),
            2 => Some(CODE + x % CODE_SIZE),
            _ => Some(address.wrapping_add(x % 256)),
        }
    }
}

/// The entry with a call holds it, and is in a function.
fn check_call_sites(found: &CallSites, call: u64) {
    let CallSites { pad, range, function } = found;
    assert!(range.is_empty() || range.contains(&call), "{found:x?} of {call:#x}");
    assert!(function.is_empty() || function.contains(&call), "{found:x?} of {call:#x}");
    let is_without = matches!(pad, LandingPad::Unknown | LandingPad::NoTable);
    assert_eq!(range.is_empty(), is_without, "{found:x?} of {call:#x}");
}

/// The first byte says what the rest is: all unwind data (with the size of its header in the next byte), or the table of call sites
/// of one function.
pub fn check(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    if kind % 2 == 0 {
        let Some((header, data)) = rest.split_first() else { return };
        let seed = data.iter().fold(1u64, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(*byte)));
        let image = Bytes { data: data.to_vec(), reads: Cell::new(0) };
        check_image(&image, u64::from(*header), seed);
    } else {
        let image = with_call_sites(rest);
        let module = image.module(u64::from(HEADER));
        let ((), held) = peak(|| {
            for pc in CODE..CODE + 0x80 {
                check_call_sites(&CallSites::of(&image, &module, pc), pc);
            }
        });
        assert_eq!(held, 0, "bytes of memory");
    }
}

/// Asks for rules, call sites and stacks of such a module.
pub fn check_image(image: &Bytes, header_size: u64, seed: u64) {
    let module = image.module(header_size);
    let mut scratch = Scratch::new();
    for pc in [CODE, CODE + 1, CODE + CODE_SIZE / 2, CODE + CODE_SIZE - 1, 0, u64::MAX, DATA] {
        let (_, held) = peak(|| {
            let _ = scratch.row_at(&module, image, pc).is_some();
            let _ = scratch.rule_at(&module, image, pc);
            check_call_sites(&CallSites::of(image, &module, pc), pc);
        });
        assert_eq!(held, 0, "bytes of memory");
    }
    let mut list = OwnedModuleList::new().unwrap();
    list.push(module, b"hostile");
    list.finish(None);
    for rbp in [None, Some(seed), Some(u64::MAX), Some(0)] {
        let mut out = [0u64; 32];
        let start =
            Registers::new(CODE + seed % CODE_SIZE, seed.wrapping_mul(8), rbp).with(Register::R10, seed);
        let walk = Walker { modules: &list, table: None, memory: image, scratch: &mut scratch }.walk(
            &start,
            &mut Noise(seed),
            &mut out,
        );
        assert!(walk.len >= 1 && walk.len <= out.len());
        assert!(walk.end.code() <= 7);
    }
}

/// Size of the header with a sorted table of one entry.
pub const HEADER: u32 = 20;

/// Unwind data of a function at the begin of the code, with this table of call sites.
pub fn with_call_sites(table: &[u8]) -> Bytes {
    let relative = |to: u64, from: u64| (to.wrapping_sub(from) as u32).to_le_bytes();
    let mut data = vec![1, 0x1b, 0x03, 0x3b];
    data.extend((HEADER - 4).to_le_bytes());
    data.extend(1u32.to_le_bytes());
    data.extend(relative(CODE, DATA));
    let cie = [0, 0, 0, 0, 1, b'z', b'L', b'R', 0, 1, 0x78, 16, 2, 0x1b, 0x1b];
    let fde_at = HEADER + 4 + cie.len() as u32;
    data.extend(fde_at.to_le_bytes());
    data.extend((cie.len() as u32).to_le_bytes());
    data.extend(cie);
    data.extend(17u32.to_le_bytes());
    data.extend((fde_at + 4 - HEADER).to_le_bytes());
    data.extend(relative(CODE, DATA + data.len() as u64));
    data.extend(0x80u32.to_le_bytes());
    data.push(4);
    let behind = DATA + data.len() as u64;
    data.extend(relative(behind + 4, behind));
    data.extend(table);
    Bytes { data, reads: Cell::new(0) }
}
