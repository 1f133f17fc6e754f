//! Tables of call sites: those of compilers, and damaged ones.

use super::unwind_tables::{CODE, HEADER, with_call_sites};
use proptest::prelude::*;
use stackglass_unwind::{CallSites, LandingPad};

#[test]
fn a_function_without_a_table() {
    let mut image = with_call_sites(&[]);
    let pointer = image.data.len() - 4;
    image.data[pointer..].fill(0);
    let module = image.module(u64::from(HEADER));
    let pad = |lookup| CallSites::of(&image, &module, lookup).pad;
    assert_eq!(pad(CODE + 1), LandingPad::NoTable);
    assert_eq!(pad(CODE + 0x80), LandingPad::Unknown, "of no function");
}

fn pads<const N: usize>(table: &[u8], calls: [u64; N]) -> [LandingPad; N] {
    let image = with_call_sites(table);
    let module = image.module(u64::from(HEADER));
    calls.map(|call| CallSites::of(&image, &module, CODE + call).pad)
}

/// g++ 12 -O1 made this of a function with a `std::lock_guard` and a `try`: calls that throw before the lock is taken, while it is held,
/// within the `try`, and again in the landing pad.
#[test]
fn the_table_of_a_function_of_cpp() {
    let table = [
        0xff, 0x9b, 0x1d, 0x01, 0x10, 0x1c, 0x05, 0x64, 0x00, 0x25, 0x05, 0x00, 0x00, 0x2d, 0x05, 0x34, 0x03,
        0x76, 0x05, 0x00, 0x00, 0x00, 0x00, 0x01, 0x7d, 0x00, 0x00, 0x00, 0x00,
    ];
    let found = pads(&table, [0x13, 0x20, 0x29, 0x31, 0x44, 0x7a, 0x7b]);
    let expected = [
        // `pthread_mutex_lock` is declared as one that does not throw.
        LandingPad::Unknown,
        LandingPad::Cleanup(CODE + 0x64),
        LandingPad::Nothing,
        LandingPad::Catch(CODE + 0x34),
        LandingPad::Unknown,
        LandingPad::Nothing,
        LandingPad::Unknown,
    ];
    assert_eq!(found, expected);
}

/// LLVM makes such a table of `before_c` in `tests/hosts/rust_guards.rs`: one entry of two calls, with a call of C between them.
#[test]
fn an_entry_with_several_calls() {
    let table =
        [0xff, 0xff, 0x01, 0x0c, 0x00, 0x19, 0x00, 0x00, 0x19, 0x52, 0x70, 0x00, 0x6b, 0x14, 0x00, 0x00];
    let image = with_call_sites(&table);
    let module = image.module(u64::from(HEADER));
    let found = CallSites::of(&image, &module, CODE + 0x59);
    let function = CODE..CODE + 0x80;
    assert_eq!(
        found,
        CallSites { pad: LandingPad::Cleanup(CODE + 0x70), range: CODE + 0x19..CODE + 0x6b, function }
    );
}

#[test]
fn other_encodings() {
    // Numbers of four bytes; the landing pads count from an address of their own; an action that only cleans up.
    let base = (CODE + 0x40).to_le_bytes();
    let mut table = vec![0x00];
    table.extend(base);
    table.extend([0xff, 0x03, 13]);
    table.extend([0x10, 0, 0, 0, 0x05, 0, 0, 0, 0x08, 0, 0, 0, 1]);
    table.extend([0, 0]);
    assert_eq!(pads(&table, [0x14, 0x15]), [LandingPad::Cleanup(CODE + 0x48), LandingPad::Unknown]);
    // Actions that lead to each other, and tables that end too early.
    let circle = [0xff, 0xff, 0x01, 4, 0x10, 5, 8, 1, 0, 0x7f];
    assert_eq!(pads(&circle, [0x14]), [LandingPad::Unknown]);
    for count in 0..table.len() - 2 {
        assert_eq!(pads(&table[..count], [0x14]), [LandingPad::Unknown], "{count}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_table(table in proptest::collection::vec(any::<u8>(), 0..200), encoding in 0u8..16, call in 0u64..0x80) {
        let _ = pads(&table, [call]);
        let header = [0xff, 0xff, encoding];
        let _ = pads(&[&header, &table[..]].concat(), [call]);
    }
}
