//! Damaged and hostile unwind tables, stacks and registers: no panic, no endless loop, no read outside of the module, and
//! never more frames than fit.

use crate::support::FileImage;
use proptest::prelude::*;
use stackglass_unwind::modules::{OwnedModuleList, ProgramHeader};
use stackglass_unwind::{CallSites, Module, ModuleMemory, Register, Registers, Scratch, StackMemory, Walker};
use std::cell::Cell;

pub(super) const DATA: u64 = 0x10_0000;
pub(super) const CODE: u64 = 0x20_0000;
const CODE_SIZE: u64 = 0x1000;

/// A readable segment with given bytes, and a segment of code that consists of `call` instructions.
pub(super) struct Bytes {
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

fn try_everything(image: &Bytes, header_size: u64, seed: u64) {
    let module = image.module(header_size);
    let mut scratch = Scratch::new();
    for pc in [CODE, CODE + 1, CODE + CODE_SIZE / 2, CODE + CODE_SIZE - 1, 0, u64::MAX, DATA] {
        let _ = scratch.row_at(&module, image, pc).is_some();
        let _ = scratch.rule_at(&module, image, pc);
        let _ = CallSites::of(image, &module, pc);
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

/// A header with a sorted table of one entry for all code, with CIE, FDE and the given instructions.
fn table_with(cie_instructions: &[u8], instructions: &[u8], augmentation: &[u8]) -> Vec<u8> {
    let mut data = vec![1, 0x1b, 0x03, 0x3b];
    let header = 20u32;
    data.extend((header - 4).to_le_bytes());
    data.extend(1u32.to_le_bytes());
    data.extend(((CODE - DATA) as u32).to_le_bytes());
    let mut cie = vec![0, 0, 0, 0, 1];
    cie.extend(augmentation);
    cie.extend([0, 1, 0x78, 16]);
    if augmentation.first() == Some(&b'z') {
        cie.extend([1, 0x1b]);
    }
    cie.extend(cie_instructions);
    let fde_at = header + 4 + cie.len() as u32;
    data.extend(fde_at.to_le_bytes());
    data.extend((cie.len() as u32).to_le_bytes());
    data.extend(&cie);
    let mut fde = (fde_at + 4 - header).to_le_bytes().to_vec();
    fde.extend(((CODE - DATA) as u32).wrapping_sub(fde_at + 8).to_le_bytes());
    fde.extend((CODE_SIZE as u32).to_le_bytes());
    if augmentation.first() == Some(&b'z') {
        fde.push(0);
    }
    fde.extend(instructions);
    data.extend((fde.len() as u32).to_le_bytes());
    data.extend(fde);
    data.extend([0; 4]);
    data
}

#[test]
fn the_hand_made_table_is_understood() {
    // CFA = rsp + 8, return address at CFA - 8. If this failed, the tests below would test little.
    let image = Bytes { data: table_with(&[0x0c, 7, 8, 0x90, 1], &[], b"zR"), reads: Cell::new(0) };
    let module = image.module(20);
    let rule = Scratch::new().rule_at(&module, &image, CODE + 5);
    assert_eq!(rule, stackglass_unwind::rules::Rule::Frame { from_rbp: false, cfa: 1, rbp: 0 });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(data in proptest::collection::vec(any::<u8>(), 1..600), header in 0u64..64, seed: u64) {
        try_everything(&Bytes { data, reads: Cell::new(0) }, header, seed);
    }

    #[test]
    fn random_header_with_entries(mut data in proptest::collection::vec(any::<u8>(), 12..600), seed: u64) {
        data[..4].copy_from_slice(&[1, 0x1b, 0x03, 0x3b]);
        try_everything(&Bytes { data, reads: Cell::new(0) }, 600, seed);
    }

    #[test]
    fn random_instructions(
        cie in proptest::collection::vec(any::<u8>(), 0..40),
        fde in proptest::collection::vec(any::<u8>(), 0..200),
        signal: bool,
        seed: u64,
    ) {
        let augmentation: &[u8] = if signal { b"zRS" } else { b"zR" };
        try_everything(&Bytes { data: table_with(&cie, &fde, augmentation), reads: Cell::new(0) }, 20, seed);
    }

    /// CFA by expression: random operations after the opcode and a length.
    #[test]
    fn random_expressions(operations in proptest::collection::vec(any::<u8>(), 1..100), seed: u64) {
        let mut cie = vec![0x90, 1, 0x0f, operations.len() as u8];
        cie.extend(&operations);
        try_everything(&Bytes { data: table_with(&cie, &[], b"zR"), reads: Cell::new(0) }, 20, seed);
    }
}

/// A real table with one byte changed at a time, at some hundreds of positions.
#[test]
fn real_tables_with_one_byte_changed() {
    let mut image = FileImage::open(&std::env::current_exe().unwrap());
    let code = image.module.executable().next().unwrap();
    let places: Vec<u64> = (code.start..code.end).step_by(((code.end - code.start) / 40) as usize).collect();
    let data = image.module.unwind_data();
    let header = image.module.eh_frame_hdr();
    let mut random = 1u64;
    for round in 0..400u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // The first words of the header often, other bytes sometimes.
        let at = if round % 4 == 0 {
            header.start + random % 12
        } else {
            data.start + random % (data.end - data.start)
        };
        let old = image.set(at, (random >> 33) as u8);
        let mut scratch = Scratch::new();
        for place in &places {
            let _ = scratch.rule_at(&image.module, &image, *place);
        }
        image.set(at, old);
    }
}
