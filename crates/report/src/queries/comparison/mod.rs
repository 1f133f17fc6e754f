//! Comparison of two profiles: which functions take more or less time, and whether the change exceeds the sampling noise.
//!
//! * `cost`: time and the hits it rests on;
//! * `functions`: the cost of each function in one profile;
//! * `common`: the change that most functions share (another CPU, a busier machine), and the usual spread between runs.

mod common;
mod cost;
mod functions;

pub use cost::{BEYOND, Cost};
pub use functions::FunctionCost;

use crate::options::{UnknownValue, option_words};
use crate::queries::allocations::are_exact;
use crate::{Metric, order};
use common::Common;
use stackglass_profile::Recording;
use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

option_words! {
    /// What the rows of a comparison are.
    ComparisonKey("key of comparisons") {
        /// Functions.
        #[default]
        Function = "function",
        /// Allocated types.
        Type = "type",
    } "function or type"
}

/// The result of a comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Functions or types: changes beyond the noise first, then the largest changes.
    pub rows: Vec<Row>,
    /// The total of the first profile.
    pub before: Cost,
    /// The total of the second profile.
    pub after: Cost,
    /// The factor, after ÷ before, that most functions have in common; 1 if there is none. Changes exclude it.
    pub common: f64,
    /// How many times more rows differ than their hits explain; at least 1. Errors are scaled by it.
    pub spread: f64,
    /// Whether costs are amounts of the metric. Otherwise they are numbers of samples.
    pub timed: bool,
    /// Whether both are profiles by wall time: time is that of tasks.
    pub of_tasks: bool,
    /// What is compared: CPU time, or a number of allocations.
    pub metric: Metric,
    /// What the rows are.
    pub key: ComparisonKey,
    /// Whether every allocation of both programs was recorded: all errors are 0.
    pub exact: bool,
    /// The share of the time not asleep in which threads were ready, without a CPU, 0 to 1. On a busy machine, times
    /// vary by more than hits explain.
    pub waited: Waited,
}

/// Shares of the time not asleep in which threads were ready, without a CPU, 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Waited {
    /// In the first profile.
    pub before: f64,
    /// In the second profile.
    pub after: f64,
}

/// A function in both profiles.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Its path, or `[module]` if it has no name; or the type.
    pub name: Arc<str>,
    /// Its own time before: in it, and in code of the standard and C libraries that it called.
    pub before: Cost,
    /// Its own time after.
    pub after: Cost,
    /// Time in it and in everything that it called.
    pub total: (Cost, Cost),
    /// Change of its own time, without the common factor.
    pub change: f64,
    /// Standard error of the change.
    pub error: f64,
}

impl Row {
    /// Whether the change is beyond the noise.
    pub fn is_beyond_noise(&self) -> bool {
        self.change.abs() > BEYOND * self.error
    }

    /// Its own time before, with the [common](Comparison::common) factor applied.
    pub fn expected(&self, common: f64) -> f64 {
        self.before.amount * common
    }

    /// The change in percent of [`Row::expected`]; `None` for new functions.
    pub fn percent(&self, common: f64) -> Option<f64> {
        let before = self.expected(common);
        (before > 0.0).then(|| self.change / before * 100.0)
    }
}

impl Comparison {
    /// Compares the CPU time of functions, or their samples if either profile has no times.
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
        Comparison::by(Metric::Time, ComparisonKey::Function, before, after)
    }

    /// Compares by a metric. For allocations, both recordings must be those of
    /// [`weighted`](crate::allocation_queries::weighted) with this metric. If every allocation was recorded, all differences
    /// are exact. Otherwise their errors are those of the samples. For types, the stacks must end with them
    /// ([`TypeLeaf::With`](crate::allocation_queries::TypeLeaf::With)).
    pub fn by(metric: Metric, key: ComparisonKey, before: &Recording, after: &Recording) -> Comparison {
        let timed = metric != Metric::Time || functions::is_timed(before) && functions::is_timed(after);
        let exact = metric != Metric::Time && are_exact(&before.allocations) && are_exact(&after.allocations);
        let (old, new) = (functions::costs(before, timed, key), functions::costs(after, timed, key));
        let mut pairs: BTreeMap<Arc<str>, (FunctionCost, FunctionCost)> = BTreeMap::new();
        for (name, cost) in old.functions {
            pairs.entry(name).or_default().0 = cost;
        }
        for (name, cost) in new.functions {
            pairs.entry(name).or_default().1 = cost;
        }
        let own: Vec<(Cost, Cost)> = pairs.values().map(|(a, b)| (a.own, b.own)).collect();
        let Common { factor, spread } = match metric {
            Metric::Time => Common::from_pairs(&own, (old.all, new.all)),
            // No other CPU and no busier machine changes the number of allocations.
            _ => Common { factor: 1.0, spread: 1.0 },
        };
        let error = |a, b| match exact {
            true => 0.0,
            false => common::error(a, b, factor, (old.all, new.all)) * spread,
        };
        let row = |(name, (a, b)): (Arc<str>, (FunctionCost, FunctionCost))| Row {
            name,
            before: a.own,
            after: b.own,
            total: (a.total, b.total),
            change: b.own.amount - a.own.amount * factor,
            error: error(a.own, b.own),
        };
        // A function without own time cannot have changed itself.
        let mut rows: Vec<Row> =
            pairs.into_iter().map(row).filter(|row| row.before.amount + row.after.amount > 0.0).collect();
        rows.sort_by(|a, b| {
            order::changes((a.is_beyond_noise(), a.change, &a.name), (b.is_beyond_noise(), b.change, &b.name))
        });
        let waited = Waited { before: old.waited, after: new.waited };
        Comparison {
            rows,
            before: old.all,
            after: new.all,
            common: factor,
            spread,
            timed,
            of_tasks: before.is_walltime() && after.is_walltime(),
            metric,
            key,
            exact,
            waited,
        }
    }
}
