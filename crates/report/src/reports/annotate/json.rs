//! Lines with their times for programs, as documented in `docs/json.md`. Sources are not read.

use super::Annotate;
use crate::queries::line_times::{Counts, SeenFile, SeenLine};
use crate::reports::json_head::{Head, Quantity};
use crate::text::json::{self, Rows};
use serde::Serialize;
use stackglass_profile::Recording;
use std::io::{self, Write};

#[derive(Serialize)]
struct Report<'a, F> {
    #[serde(flatten)]
    head: Head<'a>,
    without_lines: u64,
    files: F,
}

#[derive(Serialize)]
struct File<'a, L> {
    file: &'a str,
    own: u64,
    total: u64,
    lines: L,
}

#[derive(Serialize)]
struct Line<'a> {
    line: u64,
    function: &'a str,
    own: u64,
    total: u64,
    own_samples: u64,
    total_samples: u64,
    bytes: Option<u64>,
}

pub(super) fn write(
    annotate: &Annotate,
    recording: &Recording,
    counts: &Counts,
    out: &mut dyn Write,
) -> io::Result<()> {
    let quantity = Quantity { metric: annotate.metric, states: annotate.states, timed: counts.timed };
    let is_meant = |file: &&SeenFile| match &annotate.pattern {
        Some(pattern) => pattern.matches(&file.file, recording.symbols.short_path(&file.file)),
        None => true,
    };
    let files = counts.files.iter().filter(is_meant).map(|file| File {
        file: &file.file,
        own: counts.measure(file.counted.own),
        total: counts.measure(file.counted.total),
        lines: Rows(file.lines.iter().map(|(line, seen)| Line::from_seen(counts, *line, seen))),
    });
    let report = Report {
        head: Head::new(recording, quantity, counts.measure(counts.all), counts.all.hits),
        without_lines: counts.measure(counts.without_lines),
        files: Rows(files),
    };
    json::write(&report, out)
}

impl Line<'_> {
    fn from_seen<'a>(counts: &Counts, line: i64, seen: &'a SeenLine) -> Line<'a> {
        let counted = seen.counted;
        Line {
            line: u64::try_from(line).unwrap_or(0),
            function: &seen.func,
            own: counts.measure(counted.own),
            total: counts.measure(counted.total),
            own_samples: counted.own.hits,
            total_samples: counted.total.hits,
            bytes: counts.bytes.map(|_| counted.bytes),
        }
    }
}
