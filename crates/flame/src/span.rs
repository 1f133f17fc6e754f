//! A range of the cost axis.

use std::fmt;

/// Positions on the cost axis, from 1 on, with both ends included. An empty span has `stop == start - 1`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Span {
    start: i64,
    stop: i64,
}

impl Span {
    /// The span from `start` to `stop`. As with Julia's ranges, it is empty if `stop` is before `start`.
    pub const fn new(start: i64, stop: i64) -> Span {
        let before = start.saturating_sub(1);
        Span { start, stop: if stop < before { before } else { stop } }
    }

    /// The span of this many positions from `start` on.
    pub const fn of_len(start: i64, len: u64) -> Span {
        Span::new(start, start.saturating_sub(1).saturating_add_unsigned(len))
    }

    /// The first position.
    pub const fn start(self) -> i64 {
        self.start
    }

    /// The last position.
    pub const fn stop(self) -> i64 {
        self.stop
    }

    /// Number of positions, that is samples.
    pub const fn len(self) -> u64 {
        // Saturates for the longest span.
        self.stop.abs_diff(self.start.saturating_sub(1))
    }

    /// Whether the span is empty.
    pub const fn is_empty(self) -> bool {
        self.stop < self.start
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.start, self.stop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_and_lengths() {
        assert_eq!((Span::new(3, 7).len(), Span::of_len(3, 5)), (5, Span::new(3, 7)));
        assert_eq!(Span::new(5, 1).to_string(), "5:4");
        assert!(Span::of_len(1, 0).is_empty() && Span::new(5, 1).is_empty());
        for span in [Span::new(i64::MIN, i64::MAX), Span::new(i64::MIN, i64::MIN), Span::of_len(7, u64::MAX)]
        {
            assert!(span.stop() >= span.start() - i64::from(span.start() > i64::MIN), "{span}");
            let _ = span.len();
        }
    }
}
