//! The first members of every JSON report on a recording: what is counted, in which unit, and how much of it there is.

use crate::call_tree::StateFilter;
use crate::metric::{Metric, Unit};
use crate::text::json::Object;
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

    /// `{"counts":"cpu","unit":"ns"`.
    pub(crate) fn add_to(self, object: Object) -> Object {
        object.text("counts", self.word()).text("unit", self.unit())
    }
}

/// `{"command":[…],"counts":"cpu","unit":"ns","total":…,"samples":…`.
pub(crate) fn head(recording: &Recording, quantity: Quantity, total: u64, samples: u64) -> Object {
    // A profile by wall time has all the time of its tasks.
    let states = if recording.is_walltime() { StateFilter::All } else { quantity.states };
    let quantity = Quantity { states, ..quantity };
    let command = recording.info.command.iter().map(String::as_str);
    let object = quantity.add_to(Object::new().texts("command", command));
    object.number("total", total).number("samples", samples)
}
