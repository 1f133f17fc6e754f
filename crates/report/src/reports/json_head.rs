//! The first members of every JSON report on a recording: what is counted, in which unit, and how much of it there is.

use crate::call_tree::StateFilter;
use crate::metric::{Metric, Unit};
use serde::Serialize;
use stackglass_profile::Recording;

/// What a report counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quantity {
    /// Time, or a number of allocations.
    pub metric: Metric,
    /// The states of threads that are counted. Allocations have none.
    pub states: StateFilter,
    /// Whether amounts are those of the metric. Otherwise they are samples.
    pub timed: bool,
}

/// A [`Quantity`] in words.
#[derive(Serialize)]
pub(crate) struct QuantityWords {
    counts: &'static str,
    unit: &'static str,
}

/// The first members.
#[derive(Serialize)]
pub(crate) struct Head<'a> {
    command: &'a [String],
    #[serde(flatten)]
    quantity: QuantityWords,
    total: u64,
    samples: u64,
}

impl Quantity {
    /// Its name: `cpu`, `wall`, `asleep`, `samples`, or the word of the metric.
    fn word(self) -> &'static str {
        match self.metric {
            Metric::Time if self.timed => self.states.word(),
            Metric::Time => "samples",
            metric => metric.word(),
        }
    }

    /// The unit of all amounts.
    fn unit(self) -> &'static str {
        match self.metric.unit() {
            Unit::Nanoseconds if self.timed => "ns",
            Unit::Nanoseconds => "samples",
            Unit::Bytes => "bytes",
            Unit::Allocations => "allocations",
        }
    }

    /// Its name and unit.
    pub(crate) fn words(self) -> QuantityWords {
        QuantityWords { counts: self.word(), unit: self.unit() }
    }
}

impl<'a> Head<'a> {
    /// Those of a report on this recording.
    pub(crate) fn new(recording: &'a Recording, quantity: Quantity, total: u64, samples: u64) -> Head<'a> {
        // A profile by wall time has all the time of its tasks.
        let states = if recording.is_walltime() { StateFilter::All } else { quantity.states };
        let quantity = Quantity { states, ..quantity }.words();
        Head { command: &recording.info.command, quantity, total, samples }
    }
}
