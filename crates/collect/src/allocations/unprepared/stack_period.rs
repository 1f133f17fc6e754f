//! How many calls of an allocator one stack stands for: few enough stacks that taking and reading them costs little.
//!
//! Periods are primes: a loop that allocates in turns would else show always the same of its lines. 5 is none of them, as many loops turn
//! five or ten times. A period that changes while an event is open is no way out: the kernel then takes the stack of the very next call.
//!
//! Source: `perf_event_period` in kernel/events/core.c sets `period_left` to 0.

/// Stacks a second that are wanted at most, of all threads together.
const WANTED: f64 = 3000.0;
/// The period changes if the calls in a window ask for one that is so many times longer or shorter.
const TOO_MANY: f64 = 3.0;
/// About four times as long each.
const PERIODS: [u64; 9] = [1, 7, 19, 79, 317, 1277, 5101, 20_399, 81_611];

/// The period for that many calls a second, if the current one does not suit them. A `current` of 0 is none.
pub(super) fn period_for(calls_per_second: f64, current: u64) -> Option<u64> {
    let wanted = calls_per_second / WANTED;
    let suits = current != 0
        && wanted <= current as f64 * TOO_MANY
        && (current == 1 || wanted >= current as f64 / (8.0 * TOO_MANY));
    if suits {
        return None;
    }
    let best =
        PERIODS.into_iter().find(|period| *period as f64 >= wanted).unwrap_or(PERIODS[PERIODS.len() - 1]);
    (best != current).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_calls_all_have_stacks() {
        assert_eq!(period_for(0.0, 0), Some(1));
        assert_eq!(period_for(3000.0, 0), Some(1));
        assert_eq!(period_for(8000.0, 1), None);
    }

    #[test]
    fn many_calls_have_a_longer_period_and_it_stays_while_it_suits() {
        let period = period_for(300_000.0, 1).unwrap();
        assert_eq!(period, 317);
        for calls in [100_000.0, 300_000.0, 1_000_000.0] {
            assert_eq!(period_for(calls, period), None, "{calls}");
        }
        assert_eq!(period_for(1000.0, period), Some(1));
        assert_eq!(period_for(1e18, 1), Some(81_611));
        assert_eq!(period_for(1e18, 81_611), None);
    }
}
