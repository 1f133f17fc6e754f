//! When ticks come: once in each delay, at a random moment of it.
//!
//! Ticks at equal distances would keep in step with other periodic events, such as a program's own timer or the scheduler's
//! tick. What happens just before both would then be seen always or never. One random tick in each slot keeps the
//! rate and sees every moment with the same probability (stratified sampling).

use crate::Random;

/// A row of slots, each one delay long.
#[derive(Clone, Copy, Debug)]
pub struct TickSchedule {
    delay: u64,
    /// Where the current slot begins.
    start: u64,
    random: Random,
}

impl TickSchedule {
    /// Slots of `delay` ns from `start` on.
    pub fn new(delay: u64, start: u64) -> TickSchedule {
        TickSchedule { delay: delay.max(1), start, random: Random::new(start) }
    }

    /// The moment of the next tick after one at `now`, and the number of slots that have passed without a tick. Two ticks are at
    /// least an eighth of a delay apart.
    pub fn next(&mut self, now: u64) -> (u64, u64) {
        self.start += self.delay;
        let missed = now.saturating_sub(self.start) / self.delay;
        self.start += missed * self.delay;
        let into = self.random.below(self.delay);
        ((self.start + into).max(now + self.delay / 8), missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: u64 = 1_000_000;

    #[test]
    fn the_rate_is_kept_and_every_moment_is_met() {
        let mut schedule = TickSchedule::new(DELAY, 5_000_000);
        let mut now = 5_000_000;
        let mut parts = [0; 10];
        for _ in 0..100_000 {
            let (next, missed) = schedule.next(now);
            assert!(missed == 0 && next >= now + DELAY / 8 && next < now + 2 * DELAY + DELAY / 8);
            now = next;
            parts[(now % DELAY / (DELAY / 10)) as usize] += 1;
        }
        assert!((now - 5_000_000).abs_diff(100_000 * DELAY) < 2 * DELAY, "one tick in each slot");
        assert!(parts.iter().all(|n| (9_000..11_500).contains(n)), "{parts:?}");
    }

    #[test]
    fn late_ticks_do_not_pile_up() {
        let mut schedule = TickSchedule::new(DELAY, 0);
        let (next, missed) = schedule.next(7 * DELAY + 1);
        assert!((next > 7 * DELAY && next < 9 * DELAY) && missed == 6, "{next} {missed}");
    }
}
