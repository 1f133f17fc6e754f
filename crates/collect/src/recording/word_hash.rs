//! Hashing of stacks and addresses: a few multiplications a word, seeded anew in each run.
//!
//! SipHash would cost more than all other work on a known stack. The seed keeps a program from
//! preparing colliding addresses; 128 bits make an accidental collision (a wrong stack) less
//! likely than a memory error.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Mixes one word into a state: the halves of the 128-bit product, folded.
fn fold(state: u64, word: u64, by: u64) -> u64 {
    let product = u128::from(state ^ word) * u128::from(by);
    (product as u64) ^ (product >> 64) as u64
}

/// Seeds of one table.
#[derive(Clone, Copy)]
pub(crate) struct WordSeed {
    one: u64,
    two: u64,
}

impl WordSeed {
    /// A random seed.
    pub(crate) fn random() -> WordSeed {
        let state = RandomState::new();
        WordSeed { one: state.hash_one(1u8) | 1, two: state.hash_one(2u8) | 1 }
    }

    /// 128 bits for a stack. Its length takes part, so that a prefix is another stack.
    pub(crate) fn stack(self, frames: &[u64]) -> u128 {
        let (mut a, mut b) = (frames.len() as u64, !(frames.len() as u64));
        for word in frames {
            a = fold(a, *word, self.one | 0x9e37_79b9_0000_0001);
            b = fold(b.rotate_left(23), *word, self.two | 0x0000_0001_c2b2_ae35);
        }
        u128::from(a) << 64 | u128::from(b)
    }
}

impl BuildHasher for WordSeed {
    type Hasher = WordHasher;

    fn build_hasher(&self) -> WordHasher {
        WordHasher { state: self.two, by: self.one | 0x9e37_79b9_0000_0001 }
    }
}

/// A [`Hasher`] for keys that are one number.
pub(crate) struct WordHasher {
    state: u64,
    by: u64,
}

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.state = fold(self.state, word, self.by);
    }

    fn write_u128(&mut self, word: u128) {
        // Already mixed: see `WordSeed::stack`.
        self.state = word as u64;
    }

    fn finish(&self) -> u64 {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn near_stacks_have_distinct_hashes_in_both_halves() {
        let seed = WordSeed::random();
        let mut seen = [HashSet::new(), HashSet::new()];
        for len in 0..20u64 {
            for low in 0..200u64 {
                let mut frames: Vec<u64> = (0..len).map(|i| 0x5555_0000_0000 + i * 16).collect();
                if let Some(leaf) = frames.first_mut() {
                    *leaf += low;
                } else if low > 0 {
                    continue;
                }
                let hash = seed.stack(&frames);
                assert!(seen[0].insert(hash as u64), "low half of {frames:x?}");
                assert!(seen[1].insert((hash >> 64) as u64), "high half of {frames:x?}");
            }
        }
    }

    #[test]
    fn order_and_zeros_matter() {
        let seed = WordSeed::random();
        assert_ne!(seed.stack(&[1, 2]), seed.stack(&[2, 1]));
        assert_ne!(seed.stack(&[0]), seed.stack(&[0, 0]));
        assert_ne!(seed.stack(&[]), seed.stack(&[0]));
    }
}
