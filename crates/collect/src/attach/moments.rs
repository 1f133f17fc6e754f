//! When to look: once in each delay, at a moment of it that chance chooses, so that nothing periodic in the
//! program is seen always or never.

/// The row of slots, each one delay long, ns.
pub struct Moments {
    delay: u64,
    start: u64,
    random: u64,
}

impl Moments {
    /// Slots of `delay` from `start` on.
    pub fn new(delay: u64, start: u64) -> Moments {
        Moments { delay: delay.max(1), start, random: start | 1 }
    }

    /// The next moment after one that was taken at `now`, and how many slots passed without one. Two are at
    /// least an eighth of a delay apart.
    pub fn next(&mut self, now: u64) -> (u64, u64) {
        self.start += self.delay;
        let missed = now.saturating_sub(self.start) / self.delay;
        self.start += missed * self.delay;
        // xorshift64 (Marsaglia 2003).
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let into = ((u128::from(self.random) * u128::from(self.delay)) >> 64) as u64;
        ((self.start + into).max(now + self.delay / 8), missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_moment_in_each_slot() {
        let (mut moments, mut now) = (Moments::new(1_000_000, 5_000_000), 5_000_000);
        for _ in 0..100_000 {
            let (next, missed) = moments.next(now);
            assert!(missed == 0 && next >= now + 125_000 && next < now + 2_125_000);
            now = next;
        }
        assert!((now - 5_000_000).abs_diff(100_000 * 1_000_000) < 2_000_000);
        let (next, missed) = moments.next(now + 10_000_000);
        assert!((8..=10).contains(&missed) && next < now + 12_000_000);
    }
}
