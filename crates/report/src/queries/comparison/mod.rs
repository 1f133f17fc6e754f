//! Two profiles held against each other: which functions take more time now, which less, and whether that is
//! more than the noise of looking at moments only.
//!
//! * `cost`: time and the hits it rests on;
//! * `functions`: the cost of each function in one profile;
//! * `common`: what changed for all alike (another processor, a busier machine), and how far two runs of the same
//!   program differ anyway.

mod common;
mod cost;
mod functions;

pub use cost::{BEYOND, Cost};
pub use functions::FunctionCost;

use crate::order;
use common::Common;
use stackglass_profile::Recording;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What was compared.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Functions: those with a change beyond the noise first, then by the size of the change.
    pub rows: Vec<Row>,
    /// Everything before.
    pub before: Cost,
    /// Everything now.
    pub after: Cost,
    /// What all functions have in common, now ÷ before; rows are compared after it is taken off. 1 when nothing
    /// says otherwise.
    pub common: f64,
    /// How much further rows differ than their hits explain; at least 1. Errors are that much larger.
    pub spread: f64,
    /// Costs are nanoseconds of processor time; otherwise numbers of samples.
    pub timed: bool,
    /// Which part of the time in which they could have run programs waited for a processor, before and now, 0 to 1.
    /// On a busy machine times vary by more than hits explain.
    pub waited: (f64, f64),
}

/// A function.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Its path; `[module]` where it has no name.
    pub name: Arc<str>,
    /// Its own time before: in it, and in code of the standard and C libraries that it called.
    pub before: Cost,
    /// Its own time now.
    pub after: Cost,
    /// Time in it and in all it called, before and now.
    pub total: (Cost, Cost),
    /// Change of its own time, after what is common to all.
    pub change: f64,
    /// Standard error of the change.
    pub error: f64,
}

impl Row {
    /// Whether the change is beyond the noise.
    pub fn is_beyond_noise(&self) -> bool {
        self.change.abs() > BEYOND * self.error
    }

    /// What it would have taken now if nothing but what is [common](Comparison::common) to all had changed.
    pub fn expected(&self, common: f64) -> f64 {
        self.before.amount * common
    }

    /// The change as a share of that, in percent; `None` for what is new.
    pub fn percent(&self, common: f64) -> Option<f64> {
        let before = self.expected(common);
        (before > 0.0).then(|| self.change / before * 100.0)
    }
}

impl Comparison {
    /// Compares the processor time of functions. Where either profile knows no times, samples are counted.
    ///
    /// ```
    /// use stackglass_profile::Recording;
    /// use stackglass_report::Comparison;
    ///
    /// let comparison = Comparison::new(&Recording::default(), &Recording::default());
    /// assert!(comparison.rows.is_empty());
    /// assert_eq!(comparison.common, 1.0);
    /// ```
    pub fn new(before: &Recording, after: &Recording) -> Comparison {
        let timed = functions::is_timed(before) && functions::is_timed(after);
        let (old, new) = (functions::costs(before, timed), functions::costs(after, timed));
        let mut pairs: BTreeMap<Arc<str>, (FunctionCost, FunctionCost)> = BTreeMap::new();
        for (name, cost) in old.functions {
            pairs.entry(name).or_default().0 = cost;
        }
        for (name, cost) in new.functions {
            pairs.entry(name).or_default().1 = cost;
        }
        let own: Vec<(Cost, Cost)> = pairs.values().map(|(a, b)| (a.own, b.own)).collect();
        let Common { factor, spread } = Common::of(&own, (old.all, new.all));
        let row = |(name, (a, b)): (Arc<str>, (FunctionCost, FunctionCost))| Row {
            name,
            before: a.own,
            after: b.own,
            total: (a.total, b.total),
            change: b.own.amount - a.own.amount * factor,
            error: common::error(a.own, b.own, factor, (old.all, new.all)) * spread,
        };
        // Who has no time of its own cannot have changed by itself.
        let mut rows: Vec<Row> =
            pairs.into_iter().map(row).filter(|row| row.before.amount + row.after.amount > 0.0).collect();
        rows.sort_by(|a, b| {
            order::changes((a.is_beyond_noise(), a.change, &a.name), (b.is_beyond_noise(), b.change, &b.name))
        });
        let waited = (old.waited, new.waited);
        Comparison { rows, before: old.all, after: new.all, common: factor, spread, timed, waited }
    }
}
