//! Ten functions, one of which can be made slower: a comparison of two runs should find only that one.
//!
//! They run in random order, 6 to 60 us at a time. `--work` fixes the amount of work, which is equal in all runs, except for the
//! function that `--slower PERCENT` makes slower.

use crate::options::Options;
use crate::report::Report;
use crate::spin::{Limit, Shuffle, spin_functions};

/// Rounds of the smallest turn: about 6 us.
const UNIT: u64 = 3000;

macro_rules! variants {
    ($($name:ident = $weight:literal;)*) => {
        spin_functions! { $($name adds $weight;)* }
        const VARIANTS: &[(u64, fn(u64, u64) -> u64)] = &[$(($weight, $name)),*];
    };
}

variants! {
    variant_one = 1;
    variant_two = 2;
    variant_three = 3;
    variant_four = 4;
    variant_five = 5;
    variant_six = 6;
    variant_seven = 7;
    variant_eight = 8;
    variant_nine = 9;
    variant_ten = 10;
}

/// Runs the functions.
pub fn run(options: &Options, report: &mut Report) {
    let slower = options.slower.unwrap_or(0);
    let (mut limit, mut order, mut x) = (Limit::from_options(options), Shuffle::new(options.seed), 1);
    while limit.go_on() {
        for _ in 0..64 {
            let (weight, function) = VARIANTS[order.below(VARIANTS.len() as u64) as usize];
            let more = if weight == 6 { slower } else { 0 };
            x = function(x, UNIT * weight * (100 + more) / 100);
        }
    }
    std::hint::black_box(x);
    report.number("slower_percent", slower);
}
