//! Damaged and hostile unwind tables, stacks and registers: no panic, no endless loop, no read outside of the module, and
//! never more frames than fit.

use super::unwind_tables::{Bytes, CODE, CODE_SIZE, DATA, check, check_image};
use crate::support::FileImage;
use proptest::prelude::*;
use stackglass_unwind::Scratch;
use std::cell::Cell;
use std::path::Path;

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
        check_image(&Bytes { data, reads: Cell::new(0) }, header, seed);
    }

    #[test]
    fn random_header_with_entries(mut data in proptest::collection::vec(any::<u8>(), 12..600), seed: u64) {
        data[..4].copy_from_slice(&[1, 0x1b, 0x03, 0x3b]);
        check_image(&Bytes { data, reads: Cell::new(0) }, 600, seed);
    }

    #[test]
    fn random_instructions(
        cie in proptest::collection::vec(any::<u8>(), 0..40),
        fde in proptest::collection::vec(any::<u8>(), 0..200),
        signal: bool,
        seed: u64,
    ) {
        let augmentation: &[u8] = if signal { b"zRS" } else { b"zR" };
        check_image(&Bytes { data: table_with(&cie, &fde, augmentation), reads: Cell::new(0) }, 20, seed);
    }

    /// CFA by expression: random operations after the opcode and a length.
    #[test]
    fn random_expressions(operations in proptest::collection::vec(any::<u8>(), 1..100), seed: u64) {
        let mut cie = vec![0x90, 1, 0x0f, operations.len() as u8];
        cie.extend(&operations);
        check_image(&Bytes { data: table_with(&cie, &[], b"zR"), reads: Cell::new(0) }, 20, seed);
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

#[test]
fn inputs_that_fuzzing_began_with_or_found() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/unwind_tables");
    let files: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() > 1, "{} holds the corpus", folder.display());
    files.iter().for_each(|path| check(&std::fs::read(path).unwrap()));
}
