//! Random numbers for moments and periods. They only need to be out of step with any program.

/// A generator of random numbers: xorshift64 (Marsaglia 2003).
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Default for Random {
    fn default() -> Random {
        Random::new(0)
    }
}

impl Random {
    /// A generator with this seed. Seeds that are nearly the same give numbers that have nothing in common: each bit of the first
    /// state depends on all bits of the seed (the finalizer of SplitMix64; Steele, Lea and Flood 2014).
    pub fn new(seed: u64) -> Random {
        let seed = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let seed = (seed ^ seed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        Random((seed ^ seed >> 31) | 1)
    }

    /// The next number, of 64 bits.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number from 0 up to but not including `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.number()) * u128::from(end)) >> 64) as u64
    }

    /// A number from `low` up to but not including `high`.
    pub fn between(&mut self, (low, high): (f64, f64)) -> f64 {
        low + (high - low) * self.below(1 << 32) as f64 / (1u64 << 32) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fill_their_range_evenly() {
        let (mut random, mut tenths) = (Random::new(0), [0; 10]);
        for _ in 0..100_000 {
            assert!(random.below(3) < 3);
            let number = random.between((2.0, 4.0));
            assert!((2.0..4.0).contains(&number));
            tenths[((number - 2.0) * 5.0) as usize] += 1;
        }
        assert!(tenths.iter().all(|n| (9_500..10_500).contains(n)), "{tenths:?}");
    }
}
