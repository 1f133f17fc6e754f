//! The table for programs, as documented in `docs/json.md`.

use crate::Metric;
use crate::queries::hot::{HotKey, HotRow, HotTable};
use crate::reports::json_head::{Quantity, head};
use crate::text::json::Object;
use stackglass_profile::Recording;
use std::io::{self, Write};

/// Writes a table as one JSON object, with all rows.
///
/// # Errors
/// When writing fails.
pub fn write_json(table: &HotTable, recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    let quantity = Quantity { metric: Metric::Time, states: table.states, timed: table.timed };
    let object = head(recording, quantity, table.total, table.samples);
    let rows = table.rows.iter().map(|row| row_object(table, row));
    writeln!(out, "{}", object.text("by", table.key.word()).list("rows", rows).end())
}

fn row_object(table: &HotTable, row: &HotRow) -> Object {
    let place = row.place.as_ref();
    let of_place = |object: Object| {
        object
            .text_or_null("file", place.map(|at| &*at.file))
            .number_or_null("line", place.and_then(|at| u64::try_from(at.line).ok()))
    };
    let object = match table.key {
        HotKey::Function => of_place(Object::new().text("function", &row.name))
            .text_or_null("waits_in", row.waits_in.as_deref())
            .text("module", &row.module),
        HotKey::Line => of_place(Object::new().text("function", place.map_or(&row.name, |at| &*at.function))),
        key => Object::new().text(key.word(), &row.name),
    };
    // Fractions of a nanosecond say nothing.
    let error = row.error.map(|error| if table.timed { error.round() } else { error });
    object
        .number("own", row.own)
        .real("error", error)
        .number("total", row.total)
        .number("own_samples", row.own_samples)
        .number("total_samples", row.total_samples)
}
