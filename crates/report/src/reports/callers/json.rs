//! Callers for programs, as documented in `docs/json.md`.

use crate::Source;
use crate::queries::callers::{Answer, Caller as Found};
use crate::reports::json_frame::JsonFrame;
use crate::reports::json_head::{Head, Quantity};
use crate::text::json::{self, Rows};
use serde::Serialize;
use stackglass_profile::Recording;
use std::io::{self, Write};

#[derive(Serialize)]
struct Report<'a, F> {
    #[serde(flatten)]
    head: Head<'a>,
    functions: F,
}

#[derive(Serialize)]
struct Function<'a, C> {
    function: &'a str,
    module: &'a str,
    amount: u64,
    asleep: u64,
    without_caller: u64,
    callers: C,
}

#[derive(Serialize)]
struct Caller<'a> {
    #[serde(flatten)]
    frame: JsonFrame<'a>,
    amount: u64,
    asleep: u64,
}

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
    let functions = answer.functions.iter().map(|called| Function {
        function: &called.func,
        module: &called.module,
        amount: called.snapshots,
        asleep: called.asleep,
        without_caller: called.uncalled,
        callers: Rows(called.callers.iter().map(Caller::from_found)),
    });
    let report =
        Report { head: Head::new(recording, quantity, answer.all, samples), functions: Rows(functions) };
    json::write(&report, out)
}

impl Caller<'_> {
    fn from_found(found: &Found) -> Caller<'_> {
        Caller { frame: JsonFrame::from(&found.frame), amount: found.count, asleep: found.asleep }
    }
}
