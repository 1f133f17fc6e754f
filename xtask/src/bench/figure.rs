//! A figure with its interval, its bound and the verdict.

use super::statistics::Interval;
use serde_json::{Value, json};
use std::fmt;

/// The bound of a figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Bound {
    /// Not more than this.
    AtMost(f64),
    /// Not less than this.
    AtLeast(f64),
    /// From the first to the second.
    Within(f64, f64),
}

/// The verdict on an interval and its bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The whole interval is within the bound.
    Held,
    /// The bound lies within the interval.
    Open,
    /// The whole interval is beyond the bound.
    Missed,
    /// No bound: the figure of a peer, or for information.
    Told,
    /// It could not be measured.
    Missing,
}

/// The format of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A share, in percent.
    Percent,
    /// A ratio.
    Times,
    /// Milliseconds.
    Millis,
    /// Megabytes (10^6).
    Megabytes,
    /// A plain number.
    Count,
}

/// One row.
#[derive(Clone, Debug)]
pub struct Figure {
    what: String,
    measured: Option<(Interval, Unit)>,
    must: Option<Bound>,
    note: String,
}

impl Figure {
    /// A figure without a bound.
    pub fn told(what: impl Into<String>, interval: Interval, unit: Unit) -> Figure {
        Figure { what: what.into(), measured: Some((interval, unit)), must: None, note: String::new() }
    }

    /// A figure with a bound.
    pub fn must(what: impl Into<String>, interval: Interval, unit: Unit, bound: Bound) -> Figure {
        Figure { must: Some(bound), ..Figure::told(what, interval, unit) }
    }

    /// A figure that could not be measured, and why.
    pub fn missing(what: impl Into<String>, why: impl Into<String>) -> Figure {
        Figure { what: what.into(), measured: None, must: None, note: why.into() }
    }

    /// Sets the note.
    pub fn note(mut self, note: impl Into<String>) -> Figure {
        self.note = note.into();
        self
    }

    /// Adds to the note.
    pub fn add_note(&mut self, more: &str) {
        self.note = format!("{}; {more}", self.note);
    }

    /// The verdict.
    pub fn verdict(&self) -> Verdict {
        let Some((interval, _)) = self.measured else { return Verdict::Missing };
        let (whole_keeps, whole_misses) = match self.must {
            None => return Verdict::Told,
            Some(Bound::AtMost(bound)) => (interval.high <= bound, interval.low > bound),
            Some(Bound::AtLeast(bound)) => (interval.low >= bound, interval.high < bound),
            Some(Bound::Within(least, most)) => {
                (interval.low >= least && interval.high <= most, interval.high < least || interval.low > most)
            }
        };
        match (whole_keeps, whole_misses) {
            (true, _) => Verdict::Held,
            (_, true) => Verdict::Missed,
            _ => Verdict::Open,
        }
    }

    /// Name, bound, value, verdict and note, as JSON.
    pub fn json(&self) -> Value {
        let must = match (self.must, self.measured) {
            (Some(Bound::AtMost(bound)), Some((_, unit))) => format!("≤ {}", unit.bound(bound)),
            (Some(Bound::AtLeast(bound)), Some((_, unit))) => format!("≥ {}", unit.bound(bound)),
            (Some(Bound::Within(least, most)), Some((_, unit))) => {
                format!("{} to {}", unit.bound(least), unit.bound(most))
            }
            _ => String::new(),
        };
        let measured = match self.measured {
            Some((i, unit)) if i.low == i.high => unit.show(i.middle),
            Some((i, unit)) => {
                format!("{} [{}, {}]", unit.show(i.middle), unit.show(i.low), unit.show(i.high))
            }
            None => "not measured".into(),
        };
        let verdict = match self.verdict() {
            Verdict::Held => "held",
            Verdict::Open => "open",
            Verdict::Missed => "MISSED",
            Verdict::Told => "",
            Verdict::Missing => "–",
        };
        json!({"what": self.what, "must": must, "measured": measured, "verdict": verdict, "note": self.note})
    }
}

impl Unit {
    fn show(self, x: f64) -> String {
        match self {
            Unit::Percent if x.abs() > 0.9 && x < 1.0 => format!("{:.3} %", x * 100.0),
            Unit::Percent => format!("{:.2} %", x * 100.0),
            Unit::Times => format!("{x:.2}"),
            Unit::Millis if x.abs() < 10.0 => format!("{x:.2} ms"),
            Unit::Millis => format!("{x:.0} ms"),
            Unit::Megabytes => format!("{x:.1} MB"),
            Unit::Count if x.fract() == 0.0 => format!("{x}"),
            Unit::Count => format!("{x:.2}"),
        }
    }

    /// A bound is a round number.
    fn bound(self, x: f64) -> String {
        match self {
            Unit::Percent => format!("{} %", (x * 1e6).round() / 1e4),
            Unit::Millis => format!("{x} ms"),
            Unit::Megabytes => format!("{x} MB"),
            Unit::Times | Unit::Count => format!("{x}"),
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = self.json();
        let text = |key: &str| json[key].as_str().unwrap_or("").to_owned();
        write!(f, "{}: {} {} {} {}", self.what, text("measured"), text("must"), text("verdict"), self.note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_interval_beyond_the_bound_is_a_miss() {
        let figure =
            |low, high, bound| Figure::must("x", Interval { low, middle: low, high }, Unit::Count, bound);
        assert_eq!(figure(1.0, 2.0, Bound::AtMost(2.0)).verdict(), Verdict::Held);
        assert_eq!(figure(1.0, 2.0, Bound::AtMost(1.5)).verdict(), Verdict::Open);
        assert_eq!(figure(1.0, 2.0, Bound::AtMost(0.9)).verdict(), Verdict::Missed);
        assert_eq!(figure(1.0, 2.0, Bound::AtLeast(2.1)).verdict(), Verdict::Missed);
        assert_eq!(figure(1.0, 2.0, Bound::AtLeast(1.0)).verdict(), Verdict::Held);
        assert_eq!(figure(1.0, 2.0, Bound::Within(1.0, 2.0)).verdict(), Verdict::Held);
        assert_eq!(figure(1.0, 2.0, Bound::Within(1.5, 2.5)).verdict(), Verdict::Open);
        assert_eq!(figure(1.0, 2.0, Bound::Within(2.5, 3.5)).verdict(), Verdict::Missed);
    }
}
