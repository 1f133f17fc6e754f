//! The notes at the end: what limits the numbers, and what to do about it.

use super::AllocationsText;
use super::digest::sampling;
use crate::queries::allocations::process_name;
use crate::text::columns::wrap;
use crate::text::numbers::{counted, percent_text};
use crate::text::style::{Line, Paint};
use crate::{AllocationTable, Metric, kinds};
use stackglass_profile::frame::file_name;
use stackglass_profile::symbols::{Missing, is_known_type};
use stackglass_profile::{AllocationKind, ProcessIndex, Recording, sanitize};
use std::collections::{BTreeMap, BTreeSet};

/// A smaller share of allocations with a type gets a note.
const TYPED: f64 = 0.9;
/// A process that was recorded this much later than it started may have older blocks, in nanoseconds.
const LATE: u64 = 100_000_000;
/// Number of modules that a note names.
const MODULES: usize = 3;

/// All notes.
pub(super) fn texts(text: &AllocationsText, recording: &Recording, table: &AllocationTable) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(unheld(recording, text, table));
    notes.extend(sampling(recording));
    notes.extend(untyped(recording, table));
    notes.extend(late(recording));
    notes.extend(lost(recording));
    if !text.closing {
        notes.extend(recording.info.remarks.iter().map(|remark| sanitize(remark).into_owned()));
    }
    notes
}

/// The lines of each note.
pub(super) fn lines(
    text: &AllocationsText,
    recording: &Recording,
    table: &AllocationTable,
) -> Vec<Vec<Line>> {
    let lines_of = |note: &String| {
        let parts = wrap(note, text.cols.saturating_sub(6)).into_iter().enumerate();
        let line = |(index, part)| {
            let mut line = Line::new();
            line.push(Paint::Yellow, if index == 0 { "note: " } else { "      " }).plain(part);
            line
        };
        parts.map(line).collect()
    };
    texts(text, recording, table).iter().map(lines_of).collect()
}

/// Whether it is known what holds the blocks that are alive at the end.
fn unheld(recording: &Recording, text: &AllocationsText, table: &AllocationTable) -> Option<String> {
    if text.metric != Metric::LeakedBytes || table.total.live_count() == 0 {
        return None;
    }
    if table.total.kept_count == 0 {
        return Some(
            "all blocks that are alive at the end count as leaked: `record --allocs --heap-at exit` finds out which of them something holds"
                .to_owned(),
        );
    }
    // A process that a signal killed has no snapshot of its end.
    let mut alive_and_kept: BTreeMap<ProcessIndex, (u64, u64)> = BTreeMap::new();
    for group in recording.allocations.groups.iter().filter(|group| group.kind == AllocationKind::Block) {
        let (alive, kept) = alive_and_kept.entry(group.process).or_default();
        *alive += group.counts.live_count();
        *kept += group.counts.kept_count;
    }
    let unknown = alive_and_kept.iter().filter(|(_, (alive, kept))| *alive > 0 && *kept == 0);
    let mut names: Vec<String> = unknown.map(|(process, _)| process_name(recording, *process)).collect();
    names.dedup();
    (!names.is_empty()).then(|| {
        format!(
            "no heap snapshot tells what {} holds: all its blocks that are alive at the end count as leaked",
            sanitize(&names.join(", "))
        )
    })
}

/// Why types are missing, and what to set.
fn untyped(recording: &Recording, table: &AllocationTable) -> Option<String> {
    if table.typed_share() >= TYPED {
        return None;
    }
    let share = percent_text(table.total.count.saturating_sub(table.typed), table.total.count);
    let untyped = modules_without_types(recording);
    let poor = recording.symbols.notes().iter();
    let poor = poor.filter(|note| matches!(note.missing, Missing::DebugInfo | Missing::Names));
    let modules: BTreeSet<&str> =
        poor.map(|note| file_name(&note.module)).filter(|name| untyped.contains(name)).collect();
    let named: Vec<String> = modules.iter().take(MODULES).map(|name| sanitize(name).into_owned()).collect();
    let of = match named.is_empty() {
        true => String::new(),
        false => format!(
            " ({}{} without debug information)",
            named.join(", "),
            if modules.len() > named.len() { ", …" } else { "" }
        ),
    };
    let advice = match recording.has_rust() {
        true => "set `debug = 1` or `debug = 2` under [profile.release] in Cargo.toml",
        false if !modules.is_empty() => "compile with `-g`",
        false => "no single type is known of what receives them",
    };
    Some(format!("the type of {share} of the allocations is unknown{of}: {advice}"))
}

/// The modules that allocate blocks without a type, by their file names: those of the innermost functions outside of allocators.
fn modules_without_types(recording: &Recording) -> BTreeSet<&str> {
    let symbols = &recording.symbols;
    let is_untyped = |stack| symbols.allocated_type(stack).is_none_or(|name| !is_known_type(name));
    let blocks = recording.allocations.groups.iter().filter(|group| group.kind == AllocationKind::Block);
    let stacks: BTreeSet<_> = blocks.map(|group| group.stack).filter(|stack| is_untyped(*stack)).collect();
    let module = |stack| {
        let mut frames = recording.stacks.walk(stack).flat_map(|location| symbols.frames_of(location));
        frames.find(|frame| !kinds::is_memory(frame) && !kinds::is_recorder(&frame.module))
    };
    stacks.into_iter().filter_map(module).map(|frame| file_name(&frame.module)).collect()
}

/// Whether blocks may be older than their records.
fn late(recording: &Recording) -> Option<String> {
    let is_late = recording.allocations.processes.iter().any(|process| {
        let started =
            recording.processes.get(process.process.0 as usize).map_or(0, |process| process.start.0);
        started > 0 && process.begin.0 > started.saturating_add(LATE)
    });
    is_late.then(|| {
        "blocks that are older than the recording have no record: neither their bytes nor their ends count"
            .to_owned()
    })
}

/// What could not be counted.
fn lost(recording: &Recording) -> Vec<String> {
    let processes = &recording.allocations.processes;
    let sum = |of: fn(&stackglass_profile::AllocatingProcess) -> u64| {
        processes.iter().map(of).fold(0, u64::saturating_add)
    };
    let (lost, without_stack) = (sum(|process| process.lost), sum(|process| process.without_stack));
    let mut notes = Vec::new();
    if lost > 0 {
        let lost = counted(lost, "allocation was", "allocations were");
        notes.push(format!(
            "{lost} not recorded: they interrupted the recorder, came first in a forked child, or found its memory full"
        ));
    }
    if without_stack > 0 {
        let without = counted(without_stack, "allocation", "allocations");
        notes.push(format!("{without} without a stack: the memory for stacks was full"));
    }
    notes
}
