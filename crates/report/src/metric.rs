//! Metrics: what a view of a recording counts.

use crate::options::{UnknownValue, option_words};
use crate::text::numbers::{bytes_text, count_text, duration_text};
use stackglass_profile::{AllocationCounts, Recording};
use std::fmt;
use std::str::FromStr;

option_words! {
    /// What a view of a recording counts: time, or one of the numbers of allocations.
    ///
    /// ```
    /// use stackglass_report::Metric;
    ///
    /// assert_eq!("peak-bytes".parse(), Ok(Metric::PeakBytes));
    /// assert_eq!(Metric::LiveBytes.to_string(), "live-bytes");
    /// ```
    Metric("metric") {
        /// Time of threads.
        #[default]
        Time = "time",
        /// Allocated bytes.
        Bytes = "bytes",
        /// Number of allocations.
        Count = "count",
        /// Bytes of the blocks that are alive at the end.
        LiveBytes = "live-bytes",
        /// Number of blocks that are alive at the end.
        LiveCount = "live-count",
        /// Bytes of the blocks that were alive when the process had the most live bytes.
        PeakBytes = "peak-bytes",
        /// Bytes of the blocks that are alive at the end, without those that something holds. What holds them is known if the
        /// recording has a heap snapshot of its end (`record --allocs --heap-at exit`); else it is all of them.
        LeakedBytes = "leaked-bytes",
        /// Number of allocations that were freed before their thread allocated again.
        Temporary = "temporary",
    } "time, bytes, count, live-bytes, live-count, peak-bytes, leaked-bytes or temporary"
}

/// The unit of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes.
    Bytes,
    /// Allocations.
    Allocations,
}

impl Unit {
    /// A value with its unit and three significant digits: `3.02 s`, `345 MB`, `1.23 M`. Allocations have no unit.
    pub fn text(self, value: u64) -> String {
        match self {
            Unit::Nanoseconds => duration_text(value),
            Unit::Bytes => bytes_text(value),
            Unit::Allocations => count_text(value),
        }
    }
}

impl Metric {
    /// The value of some allocations; 0 for [`Metric::Time`].
    pub fn of(self, counts: &AllocationCounts) -> u64 {
        match self {
            Metric::Time => 0,
            Metric::Bytes => counts.bytes,
            Metric::Count => counts.count,
            Metric::LiveBytes => counts.live_bytes(),
            Metric::LiveCount => counts.live_count(),
            Metric::PeakBytes => counts.peak_bytes,
            Metric::LeakedBytes => counts.leaked_bytes(),
            Metric::Temporary => counts.temporary_count,
        }
    }

    /// The number of allocations that the [value](Metric::of) is made of.
    pub fn blocks(self, counts: &AllocationCounts) -> u64 {
        match self {
            Metric::Time => 0,
            Metric::Bytes | Metric::Count => counts.count,
            Metric::LiveBytes | Metric::LiveCount => counts.live_count(),
            Metric::PeakBytes => counts.peak_count,
            Metric::LeakedBytes => counts.leaked_count(),
            Metric::Temporary => counts.temporary_count,
        }
    }

    /// The unit of its values.
    pub fn unit(self) -> Unit {
        match self {
            Metric::Time => Unit::Nanoseconds,
            Metric::Bytes | Metric::LiveBytes | Metric::PeakBytes | Metric::LeakedBytes => Unit::Bytes,
            Metric::Count | Metric::LiveCount | Metric::Temporary => Unit::Allocations,
        }
    }

    /// What it counts. The first word is the unit as a plural: `bytes at the peak`.
    pub fn noun(self) -> &'static str {
        match self {
            Metric::Time => "time",
            Metric::Bytes => "bytes",
            Metric::Count => "allocations",
            Metric::LiveBytes => "bytes alive at the end",
            Metric::LiveCount => "blocks alive at the end",
            Metric::PeakBytes => "bytes at the peak",
            Metric::LeakedBytes => "bytes leaked",
            Metric::Temporary => "temporary allocations",
        }
    }

    /// The metric of a recording if the reader selects none: time if there are samples, otherwise bytes if allocations
    /// were recorded.
    pub fn default_of(recording: &Recording) -> Metric {
        match recording.samples.is_empty() && recording.allocations.were_recorded() {
            true => Metric::Bytes,
            false => Metric::Time,
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_its_number() {
        let counts = AllocationCounts {
            count: 100,
            bytes: 1000,
            freed_count: 60,
            freed_bytes: 500,
            temporary_count: 7,
            peak_count: 5,
            peak_bytes: 400,
            older_count: 0,
            older_bytes: 0,
            kept_count: 10,
            kept_bytes: 300,
        };
        let of = |of: fn(Metric, &AllocationCounts) -> u64| -> Vec<u64> {
            Metric::ALL.iter().map(|metric| of(*metric, &counts)).collect()
        };
        assert_eq!(of(Metric::of), [0, 1000, 100, 500, 40, 400, 200, 7]);
        assert_eq!(of(Metric::blocks), [0, 100, 100, 40, 40, 5, 30, 7]);
        for metric in Metric::ALL {
            assert_eq!(metric.to_string().parse(), Ok(*metric));
        }
        let error = "size".parse::<Metric>().unwrap_err().to_string();
        assert!(error.starts_with("`size` is not a metric: use time, bytes"), "{error}");
    }
}
