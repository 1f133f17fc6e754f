//! Samples in order of time, as columns.

use crate::columns::Columns;
use crate::nodes::Nodes;
use foldhash::HashMap;
use serde::Serialize;
use stackglass_profile::{Cut, Nanos, Recording, Sample, StackId};
use stackglass_report::{cut_meaning, why_incomplete};
use std::collections::BTreeSet;

/// Samples in order of time.
pub(crate) fn sorted(recording: &Recording) -> Vec<&Sample> {
    let mut samples: Vec<&Sample> = recording.samples.iter().collect();
    samples.sort_by_key(|sample| sample.clock);
    samples
}

/// Counts samples without times: each hit is one of what the page counts.
pub(crate) fn count_hits(recording: &mut Recording) {
    let start = recording.info.start;
    for sample in &mut recording.samples {
        (sample.clock, sample.time, sample.spread) = (start, Nanos(sample.hits.into()), Nanos(0));
    }
}

/// Adds the columns of samples. The time of a sample lies evenly in an interval up to its clock, which is longer by its spread. Of each clock, the column has the distance from the one
/// before, and from the start of the recording for the first.
pub(crate) fn write(recording: &Recording, samples: &[&Sample], nodes: &Nodes, columns: &mut Columns) {
    let mut before = recording.info.start.0;
    let clocks = samples.iter().map(|sample| {
        let passed = sample.clock.0.saturating_sub(before);
        before = before.max(sample.clock.0);
        passed
    });
    let clocks: Vec<u64> = clocks.collect();
    columns.push("samples.clock", clocks);
    columns.push("samples.node", samples.iter().map(|sample| u64::from(nodes.of_stack(sample.stack))));
    columns.push("samples.thread", samples.iter().map(|sample| u64::from(sample.thread.0)));
    columns.push("samples.state", samples.iter().map(|sample| sample.state as u64));
    columns.push("samples.hits", samples.iter().map(|sample| u64::from(sample.hits)));
    columns.push("samples.time", samples.iter().map(|sample| sample.time.0));
    columns.push("samples.spread", samples.iter().map(|sample| sample.spread.0));
}

/// Why stacks are incomplete, in the words of the reports.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct CutWords {
    number: u8,
    meaning: &'static str,
    remedy: &'static str,
}

/// Adds a column of the reasons why stacks are incomplete, 0 for those that are not, if there are any. Returns the reasons.
pub(crate) fn write_cuts(recording: &Recording, samples: &[&Sample], columns: &mut Columns) -> Vec<CutWords> {
    let mut known: HashMap<(StackId, Option<Cut>), Option<Cut>> = HashMap::default();
    let mut why = |sample: &Sample| {
        *known.entry((sample.stack, sample.cut)).or_insert_with(|| why_incomplete(recording, sample))
    };
    let cuts: Vec<Option<Cut>> = samples.iter().map(|sample| why(sample)).collect();
    let reasons: BTreeSet<Cut> = cuts.iter().flatten().copied().collect();
    if !reasons.is_empty() {
        columns.push("samples.cut", cuts.iter().map(|cut| cut.map_or(0, |cut| cut.0.into())));
    }
    let words = |cut: Cut| {
        let (meaning, remedy) = cut_meaning(cut);
        CutWords { number: cut.0, meaning, remedy }
    };
    reasons.into_iter().map(words).collect()
}
