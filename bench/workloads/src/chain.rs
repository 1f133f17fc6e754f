//! One thread below a chain of callers in a known order.
//!
//! Twenty functions call each other in a ring down to the given depth, so that every missing, duplicate or wrong frame is
//! visible. A right stack is `chain_root`, `link_00`, `link_01`, … `link_19`, `link_00`, …, with `chain_leaf` only below
//! exactly `--depth` links. Most time is spent in the leaf, the rest in calls and returns.

use crate::options::Options;
use crate::report::Report;
use crate::spin::{Limit, spin_rounds};

macro_rules! ring {
    ($($name:ident -> $next:ident, $key:expr;)*) => { $(
        #[inline(never)]
        fn $name(left: u32, rounds: u32, x: u64) -> u64 {
            let a = x.wrapping_mul(0x9E37_79B9_7F4A_7C15 ^ $key).rotate_left(7);
            let r = if left == 1 { chain_leaf(rounds, a) } else { $next(left - 1, rounds, a) };
            r.rotate_left(5) ^ a
        }
    )* }
}

ring! {
    link_00 -> link_01, 0; link_01 -> link_02, 1; link_02 -> link_03, 2; link_03 -> link_04, 3;
    link_04 -> link_05, 4; link_05 -> link_06, 5; link_06 -> link_07, 6; link_07 -> link_08, 7;
    link_08 -> link_09, 8; link_09 -> link_10, 9; link_10 -> link_11, 10; link_11 -> link_12, 11;
    link_12 -> link_13, 12; link_13 -> link_14, 13; link_14 -> link_15, 14; link_15 -> link_16, 15;
    link_16 -> link_17, 16; link_17 -> link_18, 17; link_18 -> link_19, 18; link_19 -> link_00, 19;
}

#[inline(never)]
fn chain_leaf(rounds: u32, x: u64) -> u64 {
    spin_rounds(x | 1, rounds) ^ x
}

#[inline(never)]
fn chain_root(limit: &mut Limit, batch: u32, depth: u32, rounds: u32) -> u64 {
    let mut x = 88_172_645_463_325_252;
    let mut batches = 0;
    while limit.go_on() {
        for _ in 0..batch {
            x = link_00(depth, rounds, x);
        }
        batches += 1;
    }
    std::hint::black_box(x);
    batches
}

/// Runs the chain of 20 calls this many times, without reading a clock.
#[inline(never)]
pub fn links(times: u32) -> u64 {
    (0..times).fold(1, |x, _| link_00(20, 64, x))
}

/// Runs the chain; a unit of work is about 250 us.
pub fn run(options: &Options, report: &mut Report) {
    let depth = options.depth.unwrap_or(20).max(1);
    let rounds = (3 * depth).max(64);
    let batch = (100_000 / rounds).max(1);
    let work = chain_root(&mut Limit::from_options(options), batch, depth, rounds);
    report.number("depth", depth);
    report.number("work", work);
}
