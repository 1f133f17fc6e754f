//! A part of the time of a recording.

use crate::{Nanos, RecordingInfo};

/// From one moment to another, relative to the start of a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TimeRange {
    /// `None`: from the start.
    pub from: Option<Nanos>,
    /// `None`: to the end.
    pub to: Option<Nanos>,
}

impl TimeRange {
    /// Whether it is the whole recording, however long that is.
    pub fn is_all(self) -> bool {
        self == TimeRange::default()
    }

    /// The same as moments of CLOCK_MONOTONIC.
    pub fn moments(self, info: &RecordingInfo) -> (Nanos, Nanos) {
        let moment = |relative: Nanos| Nanos(info.start.0.saturating_add(relative.0));
        (self.from.map_or(Nanos(0), moment), self.to.map_or(Nanos(u64::MAX), moment))
    }
}
