//! Functions with known shares of the CPU time, given by their work.
//!
//! They run in random order, 3 to 60 us at a time: shorter than any tick, and without a period. All call the same machine
//! code, so that time is proportional to rounds.

use crate::options::Options;
use crate::report::Report;
use crate::spin::{Limit, Shuffle, spin_rounds};

/// Rounds of the smallest turn: about 3 us.
const UNIT: u32 = 1500;

macro_rules! sharers {
    ($($name:ident = $weight:expr;)*) => {
        $(
            #[inline(never)]
            fn $name(x: u64) -> u64 {
                spin_rounds(x | 1, UNIT * $weight).rotate_left($weight) ^ x
            }
        )*
        const SHARERS: &[(&str, u32, fn(u64) -> u64)] = &[$((stringify!($name), $weight, $name)),*];
    };
}

sharers! {
    share_one = 1;
    share_two = 2;
    share_three = 3;
    share_five = 5;
    share_ten = 10;
    share_twenty = 20;
}

#[inline(never)]
fn shares_root(limit: &mut Limit, order: &mut Shuffle, turns: &mut [u64]) -> u64 {
    let mut x = 1;
    while limit.go_on() {
        for _ in 0..64 {
            let which = order.below(SHARERS.len() as u64) as usize;
            turns[which] += 1;
            x = SHARERS[which].2(x);
        }
    }
    std::hint::black_box(x)
}

/// Runs the functions; `truth` has the rounds of each.
pub fn run(options: &Options, report: &mut Report) {
    let mut turns = vec![0; SHARERS.len()];
    shares_root(&mut Limit::from_options(options), &mut Shuffle::new(options.seed), &mut turns);
    let truth: Vec<String> = SHARERS
        .iter()
        .zip(&turns)
        .map(|((name, weight, _), turns)| {
            format!("{{\"function\": \"{name}\", \"rounds\": {}}}", turns * (*weight * UNIT) as u64)
        })
        .collect();
    report.list("truth", &truth);
    report.number("work", turns.iter().sum::<u64>());
}
