//! The table for programs, as documented in `docs/json.md`.

use crate::queries::allocations::AllocationRow;
use crate::text::json::{Rows, write_sections};
use crate::{AllocationKey, AllocationTable};
use serde::Serialize;
use stackglass_profile::{AllocationCounts, AllocationSampling};
use std::io::{self, Write};

/// Writes a table as one JSON object, with all rows. Equal recordings give equal bytes.
///
/// ```
/// use stackglass_profile::Recording;
/// use stackglass_report::{AllocationKey, AllocationTable, Metric, allocations};
///
/// let table = AllocationTable::new(&Recording::default(), AllocationKey::Type, Metric::Bytes);
/// let mut json = Vec::new();
/// allocations::write_json(&table, &mut json)?;
/// assert!(json.starts_with(br#"{"total":{"count":0,"bytes":0,"#));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// When writing fails.
pub fn write_json(table: &AllocationTable, out: &mut dyn Write) -> io::Result<()> {
    let AllocationTable { mappings, .. } = table;
    let report = Report {
        total: Counts::from_counts(&table.total),
        mappings: Mappings {
            count: mappings.count,
            bytes: mappings.bytes,
            live_bytes: mappings.live_bytes(),
        },
        typed_share: (table.typed_share() * 1e6).floor() / 1e6,
        rate: match table.sampling {
            AllocationSampling::Every | AllocationSampling::Stacks(_) => Some(1.0),
            AllocationSampling::Rate(rate) | AllocationSampling::ScaledRate(rate) => Some(rate),
            AllocationSampling::Bytes(_) => None,
        },
        interval: match table.sampling {
            AllocationSampling::Bytes(interval) => Some(interval),
            _ => None,
        },
        stacks: match table.sampling {
            AllocationSampling::Stacks(share) => Some(share),
            _ => None,
        },
        error: table.error,
        range: table.part.map(|part| {
            let (from, to) = part.bounds();
            Range { from: from.0, to: to.0, slices: part.slices }
        }),
        rows: Rows(table.rows.iter().map(|row| Row::from_row(table.key, row))),
    };
    write_sections(&["mappings", "typed_share", "rows"], &report, out)
}

#[derive(Serialize)]
struct Report<R> {
    total: Counts,
    mappings: Mappings,
    typed_share: f64,
    rate: Option<f64>,
    interval: Option<u64>,
    stacks: Option<f64>,
    error: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<Range>,
    rows: R,
}

/// The slices of time that count, in nanoseconds since the start.
#[derive(Serialize)]
struct Range {
    from: u64,
    to: u64,
    slices: usize,
}

#[derive(Serialize)]
struct Counts {
    count: u64,
    bytes: u64,
    live_count: u64,
    live_bytes: u64,
    leaked_count: u64,
    leaked_bytes: u64,
    peak_bytes: u64,
    temporary_count: u64,
}

#[derive(Serialize)]
struct Mappings {
    count: u64,
    bytes: u64,
    live_bytes: u64,
}

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    name: Name<'a>,
    #[serde(flatten)]
    counts: Counts,
    error: f64,
    sites: u64,
}

/// The name of a row. Its key says what it is.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Name<'a> {
    Type(&'a str),
    Site(&'a str),
    Line(&'a str),
    Function(&'a str),
    Crate(&'a str),
    Thread(&'a str),
    Process(&'a str),
    Size(&'a str),
}

impl Counts {
    fn from_counts(counts: &AllocationCounts) -> Counts {
        Counts {
            count: counts.count,
            bytes: counts.bytes,
            live_count: counts.live_count(),
            live_bytes: counts.live_bytes(),
            leaked_count: counts.leaked_count(),
            leaked_bytes: counts.leaked_bytes(),
            peak_bytes: counts.peak_bytes,
            temporary_count: counts.temporary_count,
        }
    }
}

impl Row<'_> {
    fn from_row(key: AllocationKey, row: &AllocationRow) -> Row<'_> {
        let name = match key {
            AllocationKey::Type => Name::Type,
            AllocationKey::Site => Name::Site,
            AllocationKey::Line => Name::Line,
            AllocationKey::Function => Name::Function,
            AllocationKey::Crate => Name::Crate,
            AllocationKey::Thread => Name::Thread,
            AllocationKey::Process => Name::Process,
            AllocationKey::Size => Name::Size,
        };
        Row {
            name: name(&row.name),
            counts: Counts::from_counts(&row.counts),
            error: row.error,
            sites: row.sites,
        }
    }
}
