//! The table for programs, as documented in `docs/json.md`.

use crate::Metric;
use crate::queries::hot::{HotKey, HotRow, HotTable};
use crate::reports::json_head::{Head, Quantity};
use crate::text::json::{self, Rows};
use serde::Serialize;
use stackglass_profile::Recording;
use std::io::{self, Write};

#[derive(Serialize)]
struct Report<'a, R> {
    #[serde(flatten)]
    head: Head<'a>,
    by: &'a str,
    rows: R,
}

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    name: Name<'a>,
    own: u64,
    error: Option<f64>,
    total: u64,
    own_samples: u64,
    total_samples: u64,
}

/// What a row is.
#[derive(Serialize)]
#[serde(untagged)]
enum Name<'a> {
    Function {
        function: &'a str,
        file: Option<&'a str>,
        line: Option<u64>,
        waits_in: Option<&'a str>,
        module: &'a str,
    },
    Line {
        function: &'a str,
        file: Option<&'a str>,
        line: Option<u64>,
    },
    Module {
        module: &'a str,
    },
    Crate {
        #[serde(rename = "crate")]
        name: &'a str,
    },
    Thread {
        thread: &'a str,
    },
    Process {
        process: &'a str,
    },
    Command {
        command: &'a str,
        processes: u64,
    },
    Task {
        task: &'a str,
        tasks: u64,
    },
}

/// Writes a table as one JSON object, with all rows.
///
/// # Errors
/// When writing fails.
pub fn write_json(table: &HotTable, recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    let quantity = Quantity { metric: Metric::Time, states: table.states, timed: table.timed };
    let report = Report {
        head: Head::new(recording, quantity, table.total, table.samples),
        by: table.key.word(),
        rows: Rows(table.rows.iter().map(|row| Row::from_row(table, row))),
    };
    json::write(&report, out)
}

impl Row<'_> {
    fn from_row<'a>(table: &HotTable, row: &'a HotRow) -> Row<'a> {
        // Fractions of a nanosecond say nothing.
        let error = row.error.map(|error| if table.timed { error.round() } else { error });
        Row {
            name: Name::from_row(table.key, row),
            own: row.own,
            error,
            total: row.total,
            own_samples: row.own_samples,
            total_samples: row.total_samples,
        }
    }
}

impl Name<'_> {
    fn from_row(key: HotKey, row: &HotRow) -> Name<'_> {
        let HotRow { name, module, waits_in, .. } = row;
        let place = row.place.as_ref();
        let file = place.map(|at| &*at.file);
        let line = place.and_then(|at| u64::try_from(at.line).ok());
        match key {
            HotKey::Function => {
                Name::Function { function: name, file, line, waits_in: waits_in.as_deref(), module }
            }
            HotKey::Line => Name::Line { function: place.map_or(name, |at| &at.function), file, line },
            HotKey::Module => Name::Module { module: name },
            HotKey::Crate => Name::Crate { name },
            HotKey::Thread => Name::Thread { thread: name },
            HotKey::Process => Name::Process { process: name },
            HotKey::Command => Name::Command { command: name, processes: row.alike },
            HotKey::Task => Name::Task { task: name, tasks: row.alike },
        }
    }
}
