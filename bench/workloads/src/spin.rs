//! A known amount of work: rounds of a shift register, with the same machine code for every caller.

use std::hint::black_box;
use std::time::{Duration, Instant};

#[inline(always)]
fn inlined_round(mut x: u64) -> u64 {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    x
}

/// Computes `rounds` rounds (about 2 ns each).
#[inline(never)]
pub fn spin_rounds(mut x: u64, rounds: u32) -> u64 {
    for _ in 0..rounds {
        x = inlined_round(x);
    }
    black_box(x)
}

/// A simple random sequence, sufficient to shuffle.
pub struct Shuffle(u64);

impl Shuffle {
    /// A sequence that depends only on the seed.
    pub fn new(seed: u64) -> Shuffle {
        Shuffle(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = inlined_round(self.0);
        ((self.0 as u128 * bound as u128) >> 64) as u64
    }
}

/// The end of the work: after a number of rounds, or at a time.
pub enum Limit {
    /// Rounds left.
    Rounds(u64),
    /// End of the time.
    Until(Instant),
}

impl Limit {
    /// By `--work` if given, else by `--seconds`.
    pub fn from_options(options: &crate::options::Options) -> Limit {
        match options.work {
            Some(rounds) => Limit::Rounds(rounds),
            None => Limit::Until(Instant::now() + Duration::from_secs_f64(options.seconds)),
        }
    }

    /// Counts one round; false at the end.
    pub fn go_on(&mut self) -> bool {
        match self {
            Limit::Rounds(0) => false,
            Limit::Rounds(left) => {
                *left -= 1;
                true
            }
            Limit::Until(end) => Instant::now() < *end,
        }
    }
}

/// Defines functions that compute rounds of a shift register from a start value, each with separate machine code.
macro_rules! spin_functions {
    ($($name:ident adds $number:literal;)*) => { $(
        #[inline(never)]
        fn $name(mut x: u64, rounds: u64) -> u64 {
            // Written out: an inlined function would take its time.
            for _ in 0..rounds {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                x = x.wrapping_add($number);
            }
            x | 1
        }
    )* };
}
pub(crate) use spin_functions;
