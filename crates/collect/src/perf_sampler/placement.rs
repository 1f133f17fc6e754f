//! Where on the time axis the CPU time of a thread's samples lies.
//!
//! A sample says that the thread ran since the one before. But a stack in the kernel also stands for time in which the kernel is not
//! sampled, so that its time may be longer than that interval. A thread never runs for more than a second in each second: such a sample
//! gets room from its neighbours, which move aside, in order.

use super::interval::Interval;
use std::cmp::Reverse;

/// Consecutive samples that share their intervals.
#[derive(Clone, Copy, Debug)]
struct Pool {
    samples: usize,
    /// All their time, ns.
    time: u64,
    /// How long their intervals are together, ns.
    length: u64,
}

impl Pool {
    fn merged(self, other: Pool) -> Pool {
        Pool {
            samples: self.samples + other.samples,
            time: self.time.saturating_add(other.time),
            length: self.length.saturating_add(other.length),
        }
    }

    /// What is left of the intervals, ns; negative if there is too much time.
    fn room(self) -> i128 {
        i128::from(self.length) - i128::from(self.time)
    }
}

/// Finds an interval for each of a thread's samples. They want intervals in order of time, and have so much time, ns.
///
/// Those found do not overlap, and each is at least as long as its time. Only samples move whose time is too long for their interval, with
/// as many neighbours as it takes.
pub(super) fn place(wanted: &[(Interval, u64)]) -> Vec<Interval> {
    let pool = |&(interval, time): &(Interval, u64)| Pool { samples: 1, time, length: interval.length() };
    // Those that fit, and those that were not looked at, in reverse.
    let mut before: Vec<Pool> = Vec::with_capacity(wanted.len());
    let mut after: Vec<Pool> = wanted.iter().rev().map(pool).collect();
    while let Some(mut pool) = after.pop() {
        while pool.room() < 0 {
            // Where there is more room; if there is none, both sides grow alike.
            let rank = |other: &Pool| (other.room(), Reverse(other.length));
            let side = match (before.last().map(rank), after.last().map(rank)) {
                (None, None) => break,
                (one, other) if one >= other => &mut before,
                _ => &mut after,
            };
            pool = side.pop().map_or(pool, |other| pool.merged(other));
        }
        before.push(pool);
    }
    let mut placed = Vec::with_capacity(wanted.len());
    for pool in before {
        let samples = &wanted[placed.len()..placed.len() + pool.samples];
        match samples {
            [(interval, _)] if pool.room() >= 0 => placed.push(*interval),
            _ => share(samples, pool, &mut placed),
        }
    }
    placed
}

/// Divides the intervals of a pool among its samples, in proportion to their time.
fn share(samples: &[(Interval, u64)], pool: Pool, placed: &mut Vec<Interval>) {
    // What fits nowhere was before all of them.
    let missing = pool.time.saturating_sub(pool.length);
    let mut parts = samples.iter().enumerate().map(|(index, &(interval, _))| {
        let from = if index == 0 { interval.from.saturating_sub(missing) } else { interval.from };
        Interval { from, to: interval.to.max(from) }
    });
    let mut part = parts.next().unwrap_or(Interval { from: 0, to: 0 });
    let (all, mut time, mut passed) = (u128::from(pool.length) + u128::from(missing), 0u64, 0u64);
    for (_, own) in samples {
        time = time.saturating_add(*own);
        let until = (all * u128::from(time)).checked_div(u128::from(pool.time)).unwrap_or(0) as u64;
        let mut left = until - passed;
        passed = until;
        if part.from == part.to && left > 0 {
            part = parts.find(|part| part.from < part.to).unwrap_or(part);
        }
        let from = part.from;
        while left > part.length() {
            left -= part.length();
            part = parts.next().unwrap_or(Interval { from: part.to, to: part.to.saturating_add(left) });
        }
        part.from += left;
        placed.push(Interval { from, to: part.from });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_sampling::Random;

    fn interval(from: u64, to: u64) -> Interval {
        Interval { from, to }
    }

    #[test]
    fn samples_that_fit_stay_where_they_are() {
        let wanted = [(interval(0, 1000), 1000), (interval(1000, 2000), 400), (interval(5000, 6000), 1000)];
        assert_eq!(place(&wanted), wanted.map(|(interval, _)| interval));
        assert_eq!(place(&[]), []);
    }

    #[test]
    fn a_long_one_moves_its_neighbours() {
        // The one in the middle stands for three periods; the next has two of room.
        let wanted = [(interval(0, 1000), 1000), (interval(1000, 2000), 3000), (interval(2000, 5000), 1000)];
        assert_eq!(place(&wanted), [interval(0, 1000), interval(1000, 4000), interval(4000, 5000)]);
        let wanted = [(interval(0, 3000), 1000), (interval(3000, 4000), 3000), (interval(4000, 5000), 1000)];
        assert_eq!(place(&wanted), [interval(0, 1000), interval(1000, 4000), interval(4000, 5000)]);
    }

    #[test]
    fn time_does_not_move_to_where_the_thread_slept() {
        let wanted =
            [(interval(0, 2000), 1000), (interval(90_000, 91_000), 1500), (interval(91_000, 92_000), 1000)];
        // A quarter of the first one's interval is all that is needed of it.
        let placed = place(&wanted);
        assert_eq!(placed[0], interval(0, 1200));
        assert_eq!(placed[1], interval(1200, 91_000));
        assert_eq!(placed[2], interval(91_000, 92_000));
    }

    #[test]
    fn what_fits_nowhere_was_before() {
        assert_eq!(place(&[(interval(9000, 10_000), 4000)]), [interval(6000, 10_000)]);
        let wanted = [(interval(9000, 10_000), 4000), (interval(10_000, 11_000), 1000)];
        assert_eq!(place(&wanted), [interval(6000, 10_000), interval(10_000, 11_000)]);
        assert_eq!(place(&[(interval(5, 5), 0), (interval(5, 5), 0)]), [interval(5, 5), interval(5, 5)]);
    }

    #[test]
    fn no_interval_overlaps_another_or_is_too_short() {
        let mut random = Random::new(3);
        for round in 0..2000 {
            let (mut at, mut wanted) = (1_000_000, Vec::new());
            for _ in 0..1 + random.below(40) {
                let from = at + if random.below(4) == 0 { random.below(3000) } else { 0 };
                at = from + random.below(2000);
                let most = if random.below(3) == 0 { 6000 } else { 1500 };
                wanted.push((interval(from, at), random.below(most)));
            }
            let placed = place(&wanted);
            assert_eq!(placed.len(), wanted.len());
            for (place, (_, time)) in placed.iter().zip(&wanted) {
                assert!(place.length() >= *time, "{round}: {place:?} is too short for {time}");
            }
            let is_ordered = placed.windows(2).all(|two| two[0].to <= two[1].from);
            assert!(is_ordered, "{round}: {wanted:?}: {placed:?}");
            assert!(placed.last().is_some_and(|last| last.to <= at), "{round}: {placed:?} ends after {at}");
        }
    }
}
