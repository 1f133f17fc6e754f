//! Allocations as the page reads them, against the tables and stacks of the reports.

use proptest::prelude::*;
use stackglass_profile::{
    AllocatingProcess, AllocationCounts, AllocationGroup, AllocationKind, AllocationSampling,
    AllocationSlice, Frame, Location, LocationId, Nanos, Process, ProcessIndex, Recording, Sample, SizeClass,
    SliceChange, SliceKey, SlicedProcess, StackId, State, Thread, ThreadNumber,
};
use stackglass_report::allocation_queries::{TypeLeaf, weighted};
use stackglass_report::{AllocationKey, AllocationTable, Metric};
use stackglass_view::{Beside, Packed};
use std::collections::{BTreeMap, HashMap};

mod columns;
mod numbers;

/// What the page has of allocations.
struct Read {
    numbers: HashMap<&'static str, Vec<u64>>,
    names: Vec<String>,
    /// The names on the way to each node, outermost first.
    paths: Vec<Vec<String>>,
}

impl Read {
    fn new(packed: &Packed) -> Read {
        let all = columns::columns(packed);
        let texts = |name: &str| -> Vec<String> { serde_json::from_slice(&all[name]).unwrap() };
        let is_text = |name: &str| ["strings", "allocations.names", "allocations.short"].contains(&name);
        let numbers: HashMap<&'static str, Vec<u64>> = all
            .iter()
            .filter(|(name, _)| !is_text(name))
            .map(|(name, column)| (*name, numbers::numbers(column)))
            .collect();
        let strings = texts("strings");
        let (mut paths, mut open) = (vec![Vec::new()], Vec::new());
        for (left, frame) in numbers["nodes.left"].iter().zip(&numbers["nodes.frame"]) {
            open.truncate(open.len() - *left as usize);
            open.push(strings[numbers["frames.name"][*frame as usize] as usize].clone());
            paths.push(open.clone());
        }
        Read { numbers, names: texts("allocations.names"), paths }
    }

    fn column(&self, name: &str) -> &[u64] {
        &self.numbers[format!("allocations.{name}").as_str()]
    }

    fn signed(&self, name: &str) -> Vec<i64> {
        let signed = |number: &u64| (number >> 1) as i64 ^ -((number & 1) as i64);
        self.column(name).iter().map(signed).collect()
    }

    /// Each group of blocks: its key, and its counts.
    fn groups(&self) -> Vec<(usize, AllocationCounts)> {
        let at = |name: &str, i: usize| self.column(&format!("groups.{name}"))[i];
        let groups = self.column("groups.key").iter().enumerate().map(|(i, key)| {
            let counts = AllocationCounts {
                count: at("count", i),
                bytes: at("bytes", i),
                freed_count: at("freedCount", i),
                freed_bytes: at("freedBytes", i),
                temporary_count: at("temporary", i),
                peak_count: at("peakCount", i),
                peak_bytes: at("peakBytes", i),
                kept_count: at("keptCount", i),
                kept_bytes: at("keptBytes", i),
                ..AllocationCounts::default()
            };
            (*key as usize, counts)
        });
        groups.filter(|(key, _)| self.column("keys.kind")[*key] == 0).collect()
    }

    fn row(&self, by: usize, key: usize) -> &str {
        let keys = self.column("keys.node").len();
        &self.names[self.column("keys.rows")[by * keys + key] as usize]
    }
}

/// A location with these functions, the innermost first.
fn location(recording: &mut Recording, functions: &[(&str, &str, i64)]) -> LocationId {
    let offset = recording.stacks.locations().len() as u64;
    let id = recording.stacks.intern_location(Location { module: None, offset });
    let frames = functions.iter().enumerate().map(|(i, (func, spec, line))| Frame {
        func: (*func).into(),
        spec: (!spec.is_empty()).then(|| (*spec).into()),
        file: if *line > 0 { "/home/me/app/src/main.rs".into() } else { "".into() },
        line: *line,
        foreign: false,
        inlined: i + 1 < functions.len(),
        krate: func.split("::").next().unwrap_or("").into(),
        ..Frame::unknown(0)
    });
    recording.symbols.set(id, frames.collect::<Vec<_>>());
    id
}

const ALLOC: &str = "<app::Counting as core::alloc::global::GlobalAlloc>::alloc";

/// A program with an allocator of its own, two processes and three threads. A group is a stack of these locations, its thread, its kind,
/// its size, and its counts.
type Group = (Vec<u8>, u32, bool, u8, [u64; 5]);

fn recording(groups: &[Group]) -> Recording {
    let mut recording = Recording::default();
    recording.info.start = Nanos(1000);
    for pid in [7, 8] {
        recording.processes.push(Process { pid, exe: "/bin/app".into(), ..Process::default() });
    }
    for (process, name) in [(0, "app"), (0, "worker"), (1, "worker")] {
        recording.threads.push(Thread {
            process: ProcessIndex(process),
            tid: 7,
            name: name.into(),
            start: Nanos(1000),
            end: None,
            cpu: Nanos(0),
            blocked_signal: false,
        });
    }
    let method = ("app::Counting::alloc", ALLOC, 3);
    let made = ("app::__rust_alloc", "", 0);
    let locations = [
        location(&mut recording, &[("app::main", "", 40)]),
        location(&mut recording, &[("app::parse", "", 12), ("app::read", "", 20)]),
        location(&mut recording, &[method, made, ("app::grow", "", 33)]),
        location(&mut recording, &[method, made]),
        location(&mut recording, &[("serde::de::value", "", 0)]),
        location(&mut recording, &[]),
    ];
    let all = 0..groups.len() as u32;
    for (number, (stack, thread, is_mapping, size, numbers)) in all.zip(groups) {
        let leaf_first: Vec<LocationId> = stack.iter().map(|at| locations[usize::from(*at)]).collect();
        let stack = if leaf_first.is_empty() { StackId(0) } else { recording.stacks.intern(&leaf_first) };
        if stack.0 % 3 > 0 {
            let name = ["", "Vec<u8>", "Node"][stack.0 as usize % 3];
            recording.symbols.set_allocated_type(stack, name.into());
        }
        let process =
            recording.thread(ThreadNumber(*thread)).map_or(ProcessIndex(0), |thread| thread.process);
        let key = SliceKey {
            stack,
            thread: ThreadNumber(*thread),
            process,
            task: 0,
            kind: if *is_mapping { AllocationKind::Mapping } else { AllocationKind::Block },
            size_class: SizeClass(*size),
        };
        let [count, bytes, freed, temporary, peak] = *numbers;
        recording.allocations.groups.push(AllocationGroup {
            stack,
            thread: key.thread,
            process,
            task: 0,
            kind: key.kind,
            size_class: key.size_class,
            counts: AllocationCounts {
                count,
                bytes,
                freed_count: freed.min(count),
                freed_bytes: freed.min(bytes),
                temporary_count: temporary,
                peak_count: peak,
                peak_bytes: 8 * peak,
                kept_count: peak,
                kept_bytes: 8 * peak,
                ..AllocationCounts::default()
            },
        });
        recording.allocations.slices.add_key(key);
        let (begin, end) = (1000 + u64::from(number) * 60_000_000, 1000 + u64::from(number + 1) * 60_000_000);
        // Estimates go down as well. Keys are in no order.
        let change = |key: u32, sign: i64| SliceChange {
            key,
            count: sign * count as i64,
            bytes: sign * bytes as i64,
            freed_count: freed as i64,
            freed_bytes: -(freed as i64),
            temporary_count: temporary as i64,
        };
        let changes = vec![change(number, 1), change(number / 2, -1), change(number, 1)];
        recording.allocations.slices.push(AllocationSlice { begin: Nanos(begin), end: Nanos(end), changes });
    }
    for process in 0..2 {
        let (process, sampling) = (ProcessIndex(process), AllocationSampling::Every);
        let (begin, end, peak_at) = (Nanos(1000), Nanos(2000), Nanos(1500));
        recording.allocations.slices.add_process(SlicedProcess { process, begin, sampling });
        recording.allocations.processes.push(AllocatingProcess {
            process,
            begin,
            end,
            sampling,
            peak_at,
            lost: 0,
            without_stack: 0,
            memory: Vec::new(),
        });
    }
    // Time without a stack is named as if it were code.
    recording.samples.push(Sample {
        stack: StackId(0),
        thread: ThreadNumber(1),
        task: 0,
        clock: Nanos(1500),
        state: State::Awake,
        cut: None,
        hits: 1,
        time: Nanos(100),
        spread: Nanos(0),
    });
    recording
}

fn groups() -> impl Strategy<Value = Vec<Group>> {
    let stack = prop::collection::vec(0..6_u8, 0..5);
    let numbers = prop::array::uniform5(0..5000_u64);
    prop::collection::vec((stack, 0..4_u32, prop::bool::weighted(0.2), 0..40_u8, numbers), 0..40)
}

proptest! {
    /// Rows by each key, and their sums, are those of `stackglass allocs`.
    #[test]
    fn rows_are_those_of_the_reports(groups in groups()) {
        let recording = recording(&groups);
        let read = Read::new(&Packed::new(recording.clone(), "test"));
        for (number, by) in AllocationKey::ALL.iter().enumerate() {
            let table = AllocationTable::new(&recording, *by, Metric::Bytes);
            let mut rows: BTreeMap<&str, AllocationCounts> = BTreeMap::new();
            let mut total = AllocationCounts::default();
            for (key, counts) in read.groups() {
                rows.entry(read.row(number, key)).or_default().add(&counts);
                total.add(&counts);
            }
            prop_assert_eq!(total, table.total);
            let expected: BTreeMap<&str, AllocationCounts> =
                table.rows.iter().map(|row| (&*row.name, row.counts)).collect();
            prop_assert_eq!(rows, expected, "{}", by.word());
        }
        let typed: u64 = read
            .groups()
            .iter()
            .filter(|(key, _)| read.column("keys.typed")[*key] == 1)
            .map(|(_, counts)| counts.count)
            .sum();
        let table = AllocationTable::new(&recording, AllocationKey::Type, Metric::Bytes);
        prop_assert_eq!(typed, table.typed);
        for row in &table.rows {
            let of_row = read.groups().into_iter().filter(|(key, _)| read.row(0, *key) == row.name);
            let sites: std::collections::BTreeSet<u64> =
                of_row.map(|(key, _)| read.column("keys.site")[key]).collect();
            prop_assert_eq!(sites.len() as u64, row.sites);
        }
    }

    /// An earlier recording has its own rows, under numbers of threads of its own.
    #[test]
    fn rows_of_an_earlier_recording_are_its_own(groups in groups(), others in groups()) {
        let (after, before) = (recording(&groups), recording(&others));
        let threads = after.threads.len() as u64;
        let beside = Beside { before: Some(("before.glass", &before)), ..Beside::default() };
        let read = Read::new(&Packed::with(after.clone(), "test", &beside));
        for (number, by) in AllocationKey::ALL.iter().enumerate() {
            for (recording, is_before) in [(&after, false), (&before, true)] {
                let mut rows: BTreeMap<&str, AllocationCounts> = BTreeMap::new();
                for (key, counts) in read.groups() {
                    if (read.column("keys.thread")[key] > threads) == is_before {
                        rows.entry(read.row(number, key)).or_default().add(&counts);
                    }
                }
                let table = AllocationTable::new(recording, *by, Metric::Bytes);
                let expected: BTreeMap<&str, AllocationCounts> =
                    table.rows.iter().map(|row| (&*row.name, row.counts)).collect();
                prop_assert_eq!(rows, expected, "{}", by.word());
            }
        }
    }

    /// Each stack has the value that other views show of it, without the allocator that the program provides.
    #[test]
    fn stacks_are_those_of_other_views(groups in groups()) {
        let recording = recording(&groups);
        let read = Read::new(&Packed::new(recording.clone(), "test"));
        for metric in Metric::ALL.iter().filter(|metric| **metric != Metric::Time) {
            let mut values: BTreeMap<&[String], u64> = BTreeMap::new();
            for (key, counts) in read.groups() {
                let path = &read.paths[read.column("keys.node")[key] as usize];
                *values.entry(path).or_default() += metric.of(&counts);
            }
            values.retain(|_, value| *value > 0);
            let view = weighted(recording.clone(), *metric, TypeLeaf::Without);
            let mut expected: BTreeMap<Vec<String>, u64> = BTreeMap::new();
            for sample in &view.samples {
                let mut path: Vec<String> = Vec::new();
                for location in view.stacks.walk(sample.stack) {
                    let names: Vec<String> =
                        view.symbols.frames_of(location).map(|frame| frame.func.to_string()).collect();
                    let unnamed = format!("[0x{:x}]", view.stacks.location(location).offset);
                    path.extend(if names.is_empty() { vec![unnamed] } else { names });
                }
                path.reverse();
                *expected.entry(path).or_default() += sample.time.0;
            }
            let expected: BTreeMap<&[String], u64> =
                expected.iter().map(|(path, value)| (path.as_slice(), *value)).collect();
            prop_assert_eq!(values, expected, "{}", metric);
        }
    }

    /// Slices are there with all their changes, to the nanosecond and byte.
    #[test]
    fn slices_have_their_changes(groups in groups()) {
        let recording = recording(&groups);
        let read = Read::new(&Packed::new(recording.clone(), "test"));
        let slices = &recording.allocations.slices;
        let (begin, length) = (read.signed("slices.begin"), read.column("slices.length"));
        let keys = read.column("changes.key");
        let fields = ["count", "bytes", "freedCount", "freedBytes", "temporary"];
        let fields = fields.map(|name| read.signed(&format!("changes.{name}")));
        let mut at = 0;
        prop_assert_eq!(begin.len(), slices.slices().len());
        for (i, slice) in slices.slices().iter().enumerate() {
            prop_assert_eq!((begin[i] + 1000, length[i]), (slice.begin.0 as i64, slice.length().0));
            let mut changes = Vec::new();
            let mut key = 0;
            for _ in 0..read.column("slices.changes")[i] {
                key += keys[at] as u32;
                changes.push((key, fields.each_ref().map(|field| field[at])));
                at += 1;
            }
            let mut expected: Vec<(u32, [i64; 5])> = slice
                .changes
                .iter()
                .map(|of| (of.key, [of.count, of.bytes, of.freed_count, of.freed_bytes, of.temporary_count]))
                .collect();
            expected.sort();
            changes.sort();
            prop_assert_eq!(changes, expected);
        }
        prop_assert_eq!(at, keys.len());
        for (sliced, key) in read.column("sliced").iter().zip(slices.keys()) {
            let of = |name: &str| read.column(&format!("keys.{name}"))[*sliced as usize];
            let expected = [key.thread.0.into(), key.process.0.into(), key.kind as u64, key.size_class.0.into()];
            prop_assert_eq!(["thread", "process", "kind", "size"].map(of), expected);
        }
    }
}

/// The end of the recording is missing: slices tell what there was.
#[test]
fn slices_stand_for_a_missing_end() {
    let mut cut =
        recording(&[(vec![0], 1, false, 3, [10, 80, 2, 1, 4]), (vec![1], 2, false, 1, [3, 24, 0, 0, 3])]);
    cut.allocations.groups.clear();
    cut.allocations.processes.clear();
    let read = Read::new(&Packed::new(cut.clone(), "test"));
    cut.allocations.sum_up_slices();
    let total = read.groups().iter().fold(AllocationCounts::default(), |mut total, (_, counts)| {
        total.add(counts);
        total
    });
    assert_eq!(total, cut.allocations.total(AllocationKind::Block));
    assert!(total.count > 0);
}

#[test]
fn a_recording_without_allocations_has_no_columns_of_them() {
    let packed = Packed::new(Recording::default(), "empty");
    assert!(!columns::columns(&packed).keys().any(|name| name.starts_with("allocations.")));
    assert!(packed.head().contains("\"allocations\":null"));
}
