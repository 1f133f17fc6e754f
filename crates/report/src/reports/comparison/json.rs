//! A comparison for programs, as documented in `docs/json.md`.

use crate::call_tree::StateFilter;
use crate::queries::comparison::{Comparison, Row};
use crate::reports::json_head::Quantity;
use crate::text::json::Object;
use std::io::{self, Write};

pub(super) fn write(comparison: &Comparison, names: (&str, &str), out: &mut dyn Write) -> io::Result<()> {
    let Comparison { metric, timed, exact, before, after, common, spread, .. } = comparison;
    let states = if comparison.of_tasks { StateFilter::All } else { StateFilter::Awake };
    let quantity = Quantity { metric: *metric, states, timed: *timed };
    let object = quantity.add_to(Object::new().text("before", names.0).text("after", names.1));
    let object = object
        .number("total_before", whole(before.amount))
        .number("total_after", whole(after.amount))
        .number("samples_before", before.hits)
        .number("samples_after", after.hits)
        .real("common", Some(*common))
        .real("spread", Some(*spread))
        .flag("exact", *exact);
    writeln!(out, "{}", object.list("rows", comparison.rows.iter().map(row)).end())
}

fn row(row: &Row) -> Object {
    Object::new()
        .text("function", &row.name)
        .number("own_before", whole(row.before.amount))
        .number("own_after", whole(row.after.amount))
        .number("total_before", whole(row.total.0.amount))
        .number("total_after", whole(row.total.1.amount))
        .real("change", Some(row.change.round()))
        .real("error", Some(row.error.round()))
        .flag("beyond_noise", row.is_beyond_noise())
}

/// Amounts are whole numbers, kept with fractions only for sums.
fn whole(amount: f64) -> u64 {
    amount.round() as u64
}
