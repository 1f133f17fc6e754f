//! The first microseconds of CPU bursts, where stacks come late.
//!
//! A timer that runs out while the kernel changes threads fires after that, and one that is set for a moment very near
//! fires late: up to 40 µs on virtual machines. So stacks that were due in the kernel, or earlier in the burst, pile up in
//! the code that runs next. In no part of its bursts does a thread's own code run for longer than the bursts did: where
//! stacks say more, the surplus is left out, and its time is the kernel's. (Measured with bursts of 60 µs: the function that
//! began each burst had 1.07 to 1.11 of its true time before, and the later ones 0.95 to 1.01.)

use std::ops::Range;

/// Parts of a burst, ns since its beginning. Before them the thread is in the kernel still.
const PARTS: [Range<u64>; 3] = [16_000..24_000, 24_000..32_000, 32_000..40_000];
/// Periods that are added to both sides of a share: few stacks prove nothing.
const PRIOR: u64 = 16;

/// One of the parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Part(u8);

/// What a thread ran in each part, and what its stacks say of that, ns.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct BurstStart {
    ran: [u64; PARTS.len()],
    sampled: [u64; PARTS.len()],
    /// What was left out, in parts of a stack: less than one.
    left_out: [f64; PARTS.len()],
}

impl BurstStart {
    /// A burst of this length has ended.
    pub(super) fn add_burst(&mut self, len: u64) {
        for (ran, part) in self.ran.iter_mut().zip(&PARTS) {
            *ran += len.clamp(part.start, part.end) - part.start;
        }
    }

    /// A stack of the thread's own code was taken so long after the beginning of a burst. The part that it is in.
    pub(super) fn add_hit(&mut self, since: u64, period: u64) -> Option<Part> {
        let part = PARTS.iter().position(|part| part.contains(&since))?;
        self.sampled[part] += period;
        Some(Part(part as u8))
    }

    /// Whether a stack that was taken in this part is surplus.
    pub(super) fn is_surplus(&mut self, part: Part, period: u64) -> bool {
        let (part, prior) = (usize::from(part.0), (PRIOR * period) as f64);
        let (ran, sampled) = (self.ran[part] as f64 + prior, self.sampled[part] as f64 + prior);
        let left_out = &mut self.left_out[part];
        *left_out += (1.0 - ran / sampled).max(0.0);
        let surplus = *left_out >= 1.0;
        if surplus {
            *left_out -= 1.0;
        }
        surplus
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 20 000 bursts of 60 µs every so-manyth has a stack of 1 ms in the second part: how many there are, and how many
    /// remain when all are judged at the end.
    fn remaining(every: usize) -> (usize, usize) {
        let (mut start, mut hits) = (BurstStart::default(), Vec::new());
        for i in 0..20_000 {
            start.add_burst(60_000);
            if i % every == 0 {
                hits.push(start.add_hit(30_000, 1_000_000).unwrap());
            }
        }
        (hits.len(), hits.iter().filter(|part| !start.is_surplus(**part, 1_000_000)).count())
    }

    #[test]
    fn no_part_of_the_bursts_has_more_than_they_ran() {
        // 160 ms in the part.
        let (all, remain) = remaining(100);
        assert!(all == 200 && (160..=170).contains(&remain), "{remain}");
        assert_eq!(remaining(125), (160, 160));
        assert_eq!(remaining(1000), (20, 20));
    }

    #[test]
    fn few_stacks_and_long_bursts_are_left_alone() {
        let mut start = BurstStart::default();
        assert_eq!((start.add_hit(15_999, 1), start.add_hit(40_000, 1)), (None, None));
        start.add_burst(20_000);
        let part = start.add_hit(17_000, 1_000_000).unwrap();
        assert!(!start.is_surplus(part, 1_000_000));
        assert_eq!(start.ran, [4000, 0, 0]);
    }
}
