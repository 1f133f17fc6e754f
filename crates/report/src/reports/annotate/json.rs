//! Lines with their times for programs, as documented in `docs/json.md`. Sources are not read.

use super::Annotate;
use crate::queries::line_times::{Counts, SeenFile};
use crate::reports::json_head::{Quantity, head};
use crate::text::json::Object;
use stackglass_profile::Recording;
use std::io::{self, Write};

pub(super) fn write(
    annotate: &Annotate,
    recording: &Recording,
    counts: &Counts,
    out: &mut dyn Write,
) -> io::Result<()> {
    let quantity = Quantity { metric: annotate.metric, states: annotate.states, timed: counts.timed };
    let object = head(recording, quantity, counts.measure(counts.all), counts.all.hits);
    let is_meant = |file: &&SeenFile| match &annotate.pattern {
        Some(pattern) => pattern.matches(&file.file, recording.symbols.short_path(&file.file)),
        None => true,
    };
    let files = counts.files.iter().filter(is_meant).map(|file| {
        let lines = file.lines.iter().map(|(line, seen)| {
            let counted = seen.counted;
            Object::new()
                .number("line", u64::try_from(*line).unwrap_or(0))
                .text("function", &seen.func)
                .number("own", counts.measure(counted.own))
                .number("total", counts.measure(counted.total))
                .number("own_samples", counted.own.hits)
                .number("total_samples", counted.total.hits)
                .number_or_null("bytes", counts.bytes.map(|_| counted.bytes))
        });
        Object::new()
            .text("file", &file.file)
            .number("own", counts.measure(file.counted.own))
            .number("total", counts.measure(file.counted.total))
            .list("lines", lines)
    });
    let object = object.number("without_lines", counts.measure(counts.without_lines));
    writeln!(out, "{}", object.list("files", files).end())
}
