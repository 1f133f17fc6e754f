//! The interval in which some of a thread's time lies.

/// From one moment to another, CLOCK_MONOTONIC ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Interval {
    pub from: u64,
    pub to: u64,
}

impl Interval {
    /// The smallest interval that contains both.
    pub(super) fn hull(self, other: Interval) -> Interval {
        Interval { from: self.from.min(other.from), to: self.to.max(other.to) }
    }

    /// How long it is, ns.
    pub(super) fn length(self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// How much longer it is than `time` ns. What timers are late by does not count.
    pub(super) fn spread(self, time: u64) -> u64 {
        let spread = self.length().saturating_sub(time);
        if spread <= time / LATE { 0 } else { spread }
    }
}

/// Timers are late by less than this part of a period.
const LATE: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_longer_than_its_time_has_a_spread() {
        let interval = Interval { from: 1000, to: 3000 }.hull(Interval { from: 2000, to: 5000 });
        assert_eq!(interval, Interval { from: 1000, to: 5000 });
        assert_eq!((interval.spread(1000), interval.spread(4000), interval.spread(5000)), (3000, 0, 0));
        assert_eq!(interval.spread(3900), 0, "a tick that is late");
    }
}
