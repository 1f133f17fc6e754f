//! Callers for programs, as documented in `docs/json.md`.

use crate::Source;
use crate::queries::callers::Answer;
use crate::reports::json_head::{Quantity, head};
use crate::text::json::Object;
use stackglass_profile::{Frame, Recording};
use std::io::{self, Write};

pub(super) fn write(
    answer: &Answer,
    source: Source<'_>,
    quantity: Quantity,
    out: &mut dyn Write,
) -> io::Result<()> {
    let none = Recording::default();
    let recording = match source {
        Source::Recording(recording) => recording,
        Source::Data(..) => &none,
    };
    let samples = recording.samples.iter().map(|sample| u64::from(sample.hits)).sum();
    let functions = answer.functions.iter().map(|called| {
        let callers = called.callers.iter().map(|caller| {
            place(Object::new().text("function", &caller.frame.func), &caller.frame)
                .text("module", &caller.frame.module)
                .number("amount", caller.count)
                .number("asleep", caller.asleep)
        });
        Object::new()
            .text("function", &called.func)
            .text("module", &called.module)
            .number("amount", called.snapshots)
            .number("asleep", called.asleep)
            .number("without_caller", called.uncalled)
            .list("callers", callers)
    });
    let object = head(recording, quantity, answer.all, samples);
    writeln!(out, "{}", object.list("functions", functions).end())
}

/// Adds the file and line of a frame.
fn place(object: Object, frame: &Frame) -> Object {
    let file = Some(&*frame.file).filter(|file| !file.is_empty());
    object
        .text_or_null("file", file)
        .number_or_null("line", u64::try_from(frame.line).ok().filter(|l| *l > 0))
}
