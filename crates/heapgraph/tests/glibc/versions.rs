//! Versions of glibc that are not installed, and damaged memory.

use super::made_up::{MadeUp, VERSIONS};
use proptest::prelude::*;
use stackglass_heapgraph::blocks::glibc::live_blocks;

#[test]
fn each_version() {
    for version in VERSIONS {
        let made = MadeUp::new(version);
        let heap = live_blocks(&made.image()).unwrap_or_else(|error| panic!("{}: {error}", version.name));
        let blocks = &heap.blocks;
        let found: Vec<_> = blocks.iter().collect();
        let name = version.name;
        assert_eq!(found, made.blocks, "{name}: {:#x?}", heap.report);
        assert!(heap.report.is_complete() && heap.report.strays == 0, "{name}: {:#?}", heap.report);
        assert_eq!((heap.report.arenas, heap.report.caches), (2, 2), "{name}");
        assert_eq!(heap.report.mapped.agree(), Some(true), "{name}: {:#?}", heap.report);
    }
}

#[test]
fn a_damaged_head_loses_few_blocks_and_is_reported() {
    let made = MadeUp::new(VERSIONS[4]);
    for number in 0..made.blocks.len() {
        let (address, size) = made.blocks[number];
        // Nothing shows the damage of a chunk with a mapping of its own, if its moved head is lost.
        if address % 4096 == 0 {
            continue;
        }
        let mut damaged = made.clone();
        for (start, bytes) in &mut damaged.memory {
            if let Some(at) = (address - 8).checked_sub(*start).filter(|at| *at < bytes.len() as u64) {
                bytes[at as usize..at as usize + 8].fill(0xff);
            }
        }
        let heap = live_blocks(&damaged.image()).unwrap();
        assert!(!heap.report.is_complete(), "block {number}: {:#?}", heap.report);
        assert!(!heap.report.remarks().is_empty());
        assert!(heap.blocks.len() + 2 >= made.blocks.len(), "block {number} of {size}: {:#?}", heap.report);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn damaged_memory(
        version in 0..VERSIONS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), word()), 1..60),
    ) {
        let mut made = MadeUp::new(VERSIONS[version]);
        for (region, place, word) in changes {
            let count = made.memory.len();
            let (start, bytes) = &mut made.memory[region.index(count)];
            let at = place.index(bytes.len() / 8) * 8;
            let word = match word {
                Word::Number(number) => number,
                Word::Near(distance) => start.wrapping_add(at as u64).wrapping_add_signed(distance),
            };
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        super::hostile::check_image(&made.image());
    }
}

#[derive(Clone, Debug)]
enum Word {
    Number(u64),
    Near(i64),
}

fn word() -> impl Strategy<Value = Word> {
    prop_oneof![
        any::<u64>().prop_map(Word::Number),
        (0_u64..0x3000).prop_map(Word::Number),
        (-0x3000_i64..0x3000).prop_map(|distance| Word::Near(distance & !15)),
    ]
}

#[test]
fn inputs_that_fuzzing_began_with_or_found() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/glibc_heap");
    let mut files = 0;
    for entry in folder.read_dir().unwrap() {
        super::hostile::check(&std::fs::read(entry.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files > 1, "{} holds the corpus", folder.display());
}
