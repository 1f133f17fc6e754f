//! Allocations as columns: counts of the whole recording by group, changes by slice of time, and where each group comes from.
//!
//! Rows of tables and shown stacks are those of the reports (`AllocationOrigins`). The page only sums them up.

use crate::columns::{Columns, zigzag};
use crate::compared::Added;
use crate::nodes::Nodes;
use foldhash::HashMap;
use serde::Serialize;
use stackglass_profile::{
    AllocationCounts, AllocationKind, AllocationSampling, Recording, SliceChange, StackId, sanitize,
};
use stackglass_report::allocation_queries::{
    AllocationOrigin, AllocationOrigins, AllocationSource, are_exact,
};
use stackglass_report::{AllocationKey, AllocationsText, Metric};
use std::borrow::Cow;

/// What is known of allocations before any column is read.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AllocationsHead {
    /// Whether every allocation was recorded.
    exact: bool,
    /// Whether it is known which blocks something holds at the end.
    kept: bool,
    /// Number of slices of time.
    slices: usize,
    /// Index of each process with allocations, and how they were recorded.
    processes: Vec<(u32, Sampling)>,
    /// What limits the numbers, in the words of `stackglass allocs`.
    notes: Vec<String>,
    /// The same of what leaked, beyond that.
    leak_notes: Vec<String>,
}

/// How allocations were recorded.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum Sampling {
    Every,
    Rate(f64),
    ScaledRate(f64),
    Stacks(f64),
    Bytes(u64),
}

impl From<AllocationSampling> for Sampling {
    fn from(sampling: AllocationSampling) -> Sampling {
        match sampling {
            AllocationSampling::Every => Sampling::Every,
            AllocationSampling::Rate(rate) => Sampling::Rate(rate),
            AllocationSampling::ScaledRate(rate) => Sampling::ScaledRate(rate),
            AllocationSampling::Stacks(share) => Sampling::Stacks(share),
            AllocationSampling::Bytes(interval) => Sampling::Bytes(interval),
        }
    }
}

/// Groups with the same origin.
#[derive(Clone, Copy)]
struct Key {
    source: AllocationSource,
    kind: AllocationKind,
    origin: AllocationOrigin,
}

/// A name, and if it is a file and a line, the same with the file as reports show it; else nothing.
struct Name {
    whole: String,
    short: String,
}

/// The allocations of a recording, and where they come from.
pub(crate) struct Allocated {
    head: AllocationsHead,
    keys: Vec<Key>,
    names: Vec<Name>,
    /// The number of the key of each group, and its counts.
    groups: Vec<(u32, AllocationCounts)>,
    /// The same of each key of slices.
    sliced: Vec<u32>,
}

impl Allocated {
    /// Those of a recording, before names are added to it for the page: rows depend on what code there is. `None` without any.
    pub(crate) fn of(recording: &mut Recording) -> Option<Allocated> {
        // The end of the recording may be missing.
        recording.allocations.sum_up_slices();
        if !recording.allocations.were_recorded() {
            return None;
        }
        let mut numbers: HashMap<(AllocationSource, AllocationKind), u32> = HashMap::default();
        let mut known = Vec::new();
        let mut number = |source: AllocationSource, kind: AllocationKind| {
            *numbers.entry((source, kind)).or_insert_with(|| {
                known.push((source, kind));
                known.len() as u32 - 1
            })
        };
        let allocations = &recording.allocations;
        let of_all = notes(recording, Metric::Bytes);
        let head = AllocationsHead {
            exact: are_exact(allocations),
            kept: allocations.groups.iter().any(|group| group.counts.kept_count > 0),
            slices: allocations.slices.slices().len(),
            processes: allocations
                .processes
                .iter()
                .map(|process| (process.process.0, process.sampling.into()))
                .collect(),
            leak_notes: notes(recording, Metric::LeakedBytes)
                .into_iter()
                .filter(|note| !of_all.contains(note))
                .collect(),
            notes: of_all,
        };
        let groups =
            allocations.groups.iter().map(|group| (number(group.into(), group.kind), group.counts)).collect();
        let sliced = allocations.slices.keys().iter().map(|key| number(key.into(), key.kind)).collect();
        let sources: Vec<AllocationSource> = known.iter().map(|(source, _)| *source).collect();
        let origins = AllocationOrigins::new(recording, &sources);
        let keys = known.into_iter().zip(origins.list);
        let keys = keys.map(|((source, kind), origin)| Key { source, kind, origin }).collect();
        let name = |whole: String| Name { short: shortened(recording, &whole), whole };
        let names = origins.names.into_iter().map(name).collect();
        Some(Allocated { head, keys, names, groups, sliced })
    }

    /// Adds the allocations of an earlier recording that was added to the recording, without their slices.
    pub(crate) fn add(&mut self, before: Allocated, added: &Added) {
        self.head.exact &= before.head.exact;
        let processes = before.head.processes.iter();
        let shifted = processes.map(|(process, sampling)| (added.process(*process), *sampling));
        self.head.processes.extend(shifted);
        let mut numbers: HashMap<String, u32> = HashMap::default();
        for (number, name) in self.names.iter().enumerate() {
            numbers.insert(name.whole.clone(), number as u32);
        }
        let names = &mut self.names;
        let moved: Vec<u32> = before
            .names
            .into_iter()
            .map(|name| {
                *numbers.entry(name.whole.clone()).or_insert_with(|| {
                    names.push(name);
                    names.len() as u32 - 1
                })
            })
            .collect();
        let sites = self.keys.iter().map(|key| key.origin.site + 1).max().unwrap_or(0);
        let first = self.keys.len() as u32;
        self.keys.extend(before.keys.into_iter().map(|mut key| {
            let AllocationOrigin { shown, rows, line_function, site, .. } = &mut key.origin;
            *shown = added.stack(*shown);
            rows.iter_mut().for_each(|name| *name = moved[*name as usize]);
            *line_function = moved[*line_function as usize];
            *site += sites;
            key.source.thread = added.thread(key.source.thread);
            key.source.process.0 = added.process(key.source.process.0);
            key
        }));
        self.groups.extend(before.groups.iter().map(|(key, counts)| (first + key, *counts)));
    }

    /// The stacks that are shown.
    pub(crate) fn stacks(&self) -> impl Iterator<Item = StackId> {
        self.keys.iter().map(|key| key.origin.shown)
    }

    /// Adds the columns.
    pub(crate) fn write(
        self,
        recording: &Recording,
        nodes: &Nodes,
        columns: &mut Columns,
    ) -> AllocationsHead {
        self.write_keys(nodes, columns);
        self.write_groups(columns);
        self.write_slices(recording, columns);
        let (whole, short): (Vec<_>, Vec<_>) =
            self.names.iter().map(|name| (sanitize(&name.whole), sanitize(&name.short))).unzip();
        columns.push_text("allocations.names", &json(&whole));
        columns.push_text("allocations.short", &json(&short));
        self.head
    }

    fn write_keys(&self, nodes: &Nodes, columns: &mut Columns) {
        let keys = || self.keys.iter();
        columns.push("allocations.keys.node", keys().map(|key| nodes.of_stack(key.origin.shown).into()));
        columns.push("allocations.keys.thread", keys().map(|key| key.source.thread.0.into()));
        columns.push("allocations.keys.process", keys().map(|key| key.source.process.0.into()));
        columns.push("allocations.keys.kind", keys().map(|key| key.kind as u64));
        columns.push("allocations.keys.size", keys().map(|key| key.source.size_class.0.into()));
        columns.push("allocations.keys.site", keys().map(|key| key.origin.site.into()));
        columns.push("allocations.keys.typed", keys().map(|key| key.origin.has_type.into()));
        columns.push("allocations.keys.own", keys().map(|key| key.origin.line_function.into()));
        // One kind of rows after the other, in the order of the words in the page.
        let rows =
            (0..AllocationKey::ALL.len()).flat_map(|by| keys().map(move |key| key.origin.rows[by].into()));
        columns.push("allocations.keys.rows", rows);
    }

    fn write_groups(&self, columns: &mut Columns) {
        columns.push("allocations.groups.key", self.groups.iter().map(|(key, _)| u64::from(*key)));
        let mut push = |name, of: fn(&AllocationCounts) -> u64| {
            columns.push(name, self.groups.iter().map(|(_, counts)| of(counts)));
        };
        push("allocations.groups.count", |counts| counts.count);
        push("allocations.groups.bytes", |counts| counts.bytes);
        push("allocations.groups.freedCount", |counts| counts.freed_count);
        push("allocations.groups.freedBytes", |counts| counts.freed_bytes);
        push("allocations.groups.temporary", |counts| counts.temporary_count);
        push("allocations.groups.peakCount", |counts| counts.peak_count);
        push("allocations.groups.peakBytes", |counts| counts.peak_bytes);
        push("allocations.groups.keptCount", |counts| counts.kept_count);
        push("allocations.groups.keptBytes", |counts| counts.kept_bytes);
    }

    fn write_slices(&self, recording: &Recording, columns: &mut Columns) {
        let all = recording.allocations.slices.slices();
        columns.push("allocations.sliced", self.sliced.iter().map(|key| u64::from(*key)));
        let start = recording.info.start.0;
        columns.push(
            "allocations.slices.begin",
            all.iter().map(|slice| zigzag(slice.begin.0.wrapping_sub(start) as i64)),
        );
        columns.push("allocations.slices.length", all.iter().map(|slice| slice.length().0));
        columns.push("allocations.slices.changes", all.iter().map(|slice| slice.changes.len() as u64));
        let mut changes: Vec<SliceChange> = Vec::new();
        let mut passed = Vec::new();
        for slice in all {
            let first = changes.len();
            changes.extend(&slice.changes);
            changes[first..].sort_by_key(|change| change.key);
            // Of each key, the distance from the one before in its slice.
            let mut before = 0;
            passed.extend(changes[first..].iter().map(|change| {
                let distance = change.key - before;
                before = change.key;
                u64::from(distance)
            }));
        }
        columns.push("allocations.changes.key", passed);
        let mut push = |name, of: fn(&SliceChange) -> i64| {
            columns.push(name, changes.iter().map(|change| zigzag(of(change))));
        };
        push("allocations.changes.count", |change| change.count);
        push("allocations.changes.bytes", |change| change.bytes);
        push("allocations.changes.freedCount", |change| change.freed_count);
        push("allocations.changes.freedBytes", |change| change.freed_bytes);
        push("allocations.changes.temporary", |change| change.temporary_count);
    }
}

/// The notes of the report. Remarks on the recording are facts.
fn notes(recording: &Recording, metric: Metric) -> Vec<String> {
    AllocationsText::new().metric(metric).closing(true).notes(recording)
}

fn json(texts: &[Cow<'_, str>]) -> String {
    serde_json::to_string(texts).expect("strings are JSON")
}

fn shortened(recording: &Recording, name: &str) -> String {
    let short = name.rsplit_once(':').and_then(|(file, line)| {
        let short = recording.symbols.short_path(file)?;
        (!short.prefix.is_empty()).then(|| format!("{}/{}:{line}", short.prefix, short.rest))
    });
    short.unwrap_or_default()
}
