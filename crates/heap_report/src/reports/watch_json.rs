//! What grew on the heap of a process that is watched, for programs, as documented in `docs/json.md`.

use super::watch::{nanos, per_minute};
use crate::answers::HeapPath;
use crate::answers::watch::{Grown, GrownRow, TakenCopy, Watch};
use serde::Serialize;
use stackglass_report::json::write_sections;
use std::io::{self, Write};

/// Writes what grew as one JSON object. `process` is the id, `end` says why no more copies were taken.
///
/// # Errors
/// When writing fails.
pub fn write_watch_json(
    process: u32,
    end: &str,
    watch: &Watch,
    grown: &Grown,
    out: &mut dyn Write,
) -> io::Result<()> {
    let watched = Watched {
        process,
        end,
        time: nanos(grown.time),
        copies: watch.copies().iter().map(Copied::from_copy).collect(),
        compared: &grown.compared,
        holders: grown.holders.iter().map(Holder::from_entry).collect(),
        types: grown.rows.iter().map(|row| Row::from_row(row, grown)).collect(),
    };
    write_sections(&["copies", "compared", "holders", "types"], &watched, out)
}

#[derive(Serialize)]
struct Watched<'a> {
    process: u32,
    end: &'a str,
    time: u64,
    copies: Vec<Copied>,
    compared: &'a [usize],
    holders: Vec<Holder>,
    types: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Copied {
    time: u64,
    count: u64,
    self_size: u64,
    typed_count: u64,
    typed_size: u64,
    pause: u64,
}

#[derive(Serialize)]
struct Holder {
    path: Vec<String>,
    growth: i128,
}

/// A type on a path, with a number for each copy that was compared.
#[derive(Serialize)]
struct Row<'a> {
    #[serde(rename = "type")]
    name: &'a str,
    sizes: Option<[u64; 2]>,
    site: Option<&'a str>,
    path: Vec<String>,
    on_path: u64,
    likely_leak: bool,
    steps: usize,
    growth: i128,
    bytes_per_minute: i128,
    count: Vec<u64>,
    self_size: Vec<u64>,
}

impl Copied {
    fn from_copy(copy: &TakenCopy) -> Copied {
        Copied {
            time: nanos(copy.at),
            count: copy.all.count,
            self_size: copy.all.self_size,
            typed_count: copy.typed.count,
            typed_size: copy.typed.self_size,
            pause: nanos(copy.pause),
        }
    }
}

impl Holder {
    fn from_entry((path, growth): &(HeapPath, i128)) -> Holder {
        Holder { path: path.parts(), growth: *growth }
    }
}

impl<'a> Row<'a> {
    fn from_row(row: &'a GrownRow, grown: &Grown) -> Row<'a> {
        Row {
            name: &row.name,
            sizes: row.size_class.map(|class| [*class.sizes().start(), *class.sizes().end()]),
            site: row.site.as_deref(),
            path: row.path.parts(),
            on_path: row.on_path,
            likely_leak: row.is_likely_leak,
            steps: row.steps,
            growth: row.growth(),
            bytes_per_minute: per_minute(row.growth(), grown.time),
            count: row.sums.iter().map(|sum| sum.count).collect(),
            self_size: row.sums.iter().map(|sum| sum.self_size).collect(),
        }
    }
}
