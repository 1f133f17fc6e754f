//! How often a thread is looked at: at each tick, unless it sleeps and there are many threads.

/// Ticks from one observation of a thread to the next, at least 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PollInterval(u8);

impl PollInterval {
    /// The thread is looked at at each tick.
    pub const EACH_TICK: PollInterval = PollInterval(1);

    /// The longest interval of a sleeping thread among `threads`, at most `most` ticks. About `polls` threads may be looked
    /// at in each tick although all sleep.
    pub fn longest(threads: usize, polls: usize, most: u8) -> PollInterval {
        let ticks = (threads / polls.max(1)).next_power_of_two().min(most.into());
        PollInterval(ticks as u8)
    }

    /// The next interval of a thread that still sleeps: twice as long, so it never exceeds the time that the thread has slept.
    #[must_use]
    pub fn lengthened(self, longest: PollInterval) -> PollInterval {
        PollInterval(self.0.saturating_mul(2).min(longest.0))
    }

    /// Number of ticks.
    pub fn ticks(self) -> u64 {
        self.0.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_threads_are_looked_at_at_each_tick_and_many_less_and_less_often() {
        let longest = |threads| PollInterval::longest(threads, 24, 64).ticks();
        assert_eq!([0, 24, 47, 48, 100, 24 * 64, 1 << 20].map(longest), [1, 1, 1, 2, 4, 64, 64]);
        let longest = PollInterval::longest(300, 64, 32);
        let mut interval = PollInterval::EACH_TICK;
        let ticks = [(); 4].map(|()| {
            interval = interval.lengthened(longest);
            interval.ticks()
        });
        assert_eq!(ticks, [2, 4, 4, 4]);
    }
}
