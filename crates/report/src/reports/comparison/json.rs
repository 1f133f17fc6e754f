//! A comparison for programs, as documented in `docs/json.md`.

use crate::call_tree::StateFilter;
use crate::queries::comparison::{Comparison, ComparisonKey, Row as Compared};
use crate::reports::json_head::{Quantity, QuantityWords};
use crate::text::json::{self, Rows};
use serde::Serialize;
use std::io::{self, Write};

#[derive(Serialize)]
struct Report<'a, R> {
    before: &'a str,
    after: &'a str,
    #[serde(flatten)]
    quantity: QuantityWords,
    total_before: u64,
    total_after: u64,
    samples_before: u64,
    samples_after: u64,
    common: f64,
    spread: f64,
    exact: bool,
    rows: R,
}

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    name: Name<'a>,
    own_before: u64,
    own_after: u64,
    total_before: u64,
    total_after: u64,
    change: f64,
    error: f64,
    beyond_noise: bool,
}

/// The name of a row. Its key says what it is.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Name<'a> {
    Function(&'a str),
    Type(&'a str),
}

pub(super) fn write(comparison: &Comparison, names: (&str, &str), out: &mut dyn Write) -> io::Result<()> {
    let Comparison { metric, timed, exact, before, after, common, spread, .. } = comparison;
    let states = if comparison.of_tasks { StateFilter::All } else { StateFilter::Awake };
    let report = Report {
        before: names.0,
        after: names.1,
        quantity: Quantity { metric: *metric, states, timed: *timed }.words(),
        total_before: whole(before.amount),
        total_after: whole(after.amount),
        samples_before: before.hits,
        samples_after: after.hits,
        common: *common,
        spread: *spread,
        exact: *exact,
        rows: Rows(comparison.rows.iter().map(|row| Row::from_row(comparison.key, row))),
    };
    json::write(&report, out)
}

impl Row<'_> {
    fn from_row(key: ComparisonKey, row: &Compared) -> Row<'_> {
        let name = match key {
            ComparisonKey::Function => Name::Function,
            ComparisonKey::Type => Name::Type,
        };
        Row {
            name: name(&row.name),
            own_before: whole(row.before.amount),
            own_after: whole(row.after.amount),
            total_before: whole(row.total.0.amount),
            total_after: whole(row.total.1.amount),
            change: row.change.round(),
            error: row.error.round(),
            beyond_noise: row.is_beyond_noise(),
        }
    }
}

/// Amounts are whole numbers, kept with fractions only for sums.
fn whole(amount: f64) -> u64 {
    amount.round() as u64
}
