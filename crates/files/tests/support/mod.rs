//! Recordings for tests: random ones that grow in steps, and a comparison in full.
#![allow(dead_code)]

use proptest::prelude::*;
use stackglass_files::GlassWriter;
use stackglass_profile::symbols::{Language, Missing, ModuleNote};
use stackglass_profile::{
    AllocatingProcess, AllocationCounts, AllocationGroup, AllocationKind, AllocationSampling,
    AllocationSlice, Cut, End, Frame, Location, LocationId, MemoryPoint, Module, ModuleIndex, Nanos, Process,
    ProcessIndex, Recording, RecordingInfo, SHORTEST_SLICE, Sample, ShortPath, SizeClass, SliceChange,
    SliceKey, SlicedProcess, StackId, State, Task, TaskId, Thread, ThreadNumber,
};

/// One thing that happens to a recording.
#[derive(Clone, Debug)]
pub enum Step {
    Process {
        pid: u32,
        exe: String,
        arguments: Vec<String>,
        start: u64,
        forked: bool,
    },
    EndProcess {
        which: usize,
        at: u64,
    },
    Count {
        which: usize,
        label: String,
        n: u64,
    },
    Thread {
        process: usize,
        tid: u32,
        name: String,
        start: u64,
    },
    EndThread {
        which: usize,
        at: u64,
        cpu: u64,
        blocked: bool,
    },
    Task {
        process: usize,
        id: u64,
        name: String,
        line: u32,
    },
    Wait {
        which: usize,
        time: u64,
    },
    Module {
        path: String,
        build_id: Vec<u8>,
    },
    Sample {
        stack: Vec<(usize, u64)>,
        thread: usize,
        task: u64,
        tick: u64,
        state: u8,
        cut: Option<u8>,
        hits: u32,
        time: u64,
    },
    Again {
        tick: u64,
        hits: u32,
        time: u64,
    },
    Remark(String),
    /// Allocations of a process begin to be recorded.
    Allocating {
        process: usize,
        times: [u64; 3],
        sampling: AllocationSampling,
        lost: [u64; 2],
    },
    Memory {
        which: usize,
        point: [u64; 3],
    },
    Allocations {
        process: usize,
        stack: usize,
        thread: usize,
        task: u64,
        mapping: bool,
        class: u8,
        counts: [u64; 9],
    },
    /// A slice of time in which a new key and the first one have changed.
    Slice {
        process: usize,
        stack: usize,
        thread: usize,
        task: u64,
        mapping: bool,
        class: u8,
        length: u64,
        sampling: AllocationSampling,
        change: [i64; 5],
    },
    /// The recorder writes what is new.
    Flush,
}

/// Times that are likely to meet every branch of the encoding.
fn nanos() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        0..3u64,
        999_000..1_001_000u64,
        any::<u64>().prop_map(|n| n >> 1),
        Just(u64::MAX - 1)
    ]
}

/// Numbers of allocations: small ones, which depend on each other, or any.
fn counts() -> impl Strategy<Value = [u64; 9]> {
    let few = (0..100u64, 0..100u64, 1..200u64).prop_map(|(count, freed, size)| {
        let freed = freed.min(count);
        [count, count * size, freed, freed * size, freed / 2, count - freed, (count - freed) * size, 0, 0]
    });
    prop_oneof![3 => few, 1 => prop::array::uniform9(prop_oneof![0..5u64, any::<u64>()])]
}

fn sampling() -> impl Strategy<Value = AllocationSampling> {
    prop_oneof![
        Just(AllocationSampling::Every),
        (0.0..=1.0f64).prop_map(AllocationSampling::Rate),
        any::<u64>().prop_map(AllocationSampling::Bytes),
        (0.0..=1.0f64).prop_map(|rate| match rate < 0.5 {
            true => AllocationSampling::ScaledRate(rate),
            false => AllocationSampling::Stacks(rate),
        }),
    ]
}

/// No spread, any, or that of time that is as long as its interval but for a third.
fn spread_of(tick: u64, time: u64) -> u64 {
    match tick % 3 {
        0 => 0,
        1 => tick ^ time.rotate_left(17),
        _ => time / 2,
    }
}

/// Any step; samples, which are most of a real recording, most often.
pub fn step() -> impl Strategy<Value = Step> {
    let few = 0..4usize;
    prop_oneof![
        1 => (any::<u32>(), ".{0,12}", prop::collection::vec(".{0,6}", 0..4), nanos(), any::<bool>()).prop_map(
            |(pid, exe, arguments, start, forked)| Step::Process { pid, exe, arguments, start, forked }),
        1 => (few.clone(), nanos()).prop_map(|(which, at)| Step::EndProcess { which, at }),
        1 => (few.clone(), "[a-c]{1}", any::<u64>()).prop_map(|(which, label, n)| Step::Count { which, label, n }),
        1 => (few.clone(), any::<u32>(), ".{0,8}", nanos()).prop_map(
            |(process, tid, name, start)| Step::Thread { process, tid, name, start }),
        1 => (few.clone(), nanos(), nanos(), any::<bool>()).prop_map(
            |(which, at, cpu, blocked)| Step::EndThread { which, at, cpu, blocked }),
        1 => (few.clone(), any::<u64>(), ".{0,8}", any::<u32>()).prop_map(
            |(process, id, name, line)| Step::Task { process, id, name, line }),
        1 => (few.clone(), nanos()).prop_map(|(which, time)| Step::Wait { which, time }),
        1 => ("[a-d/]{0,3}", prop::collection::vec(any::<u8>(), 0..21)).prop_map(
            |(path, build_id)| Step::Module { path, build_id }),
        8 => (prop::collection::vec((few.clone(), prop_oneof![0..5u64, any::<u64>()]), 0..6), few.clone(),
              prop_oneof![Just(0), 0..3u64, any::<u64>()], nanos(), 1..=4u8, prop::option::of(any::<u8>()),
              prop_oneof![Just(1), 0..20u32, any::<u32>()], nanos()).prop_map(
            |(stack, thread, task, tick, state, cut, hits, time)| Step::Sample { stack, thread, task, tick, state, cut, hits, time }),
        4 => (nanos(), 0..3u32, nanos()).prop_map(|(tick, hits, time)| Step::Again { tick, hits, time }),
        1 => ".{0,20}".prop_map(Step::Remark),
        1 => (few.clone(), prop::array::uniform3(nanos()), sampling(), any::<[u64; 2]>()).prop_map(
            |(process, times, sampling, lost)| Step::Allocating { process, times, sampling, lost }),
        2 => (few.clone(), [nanos().boxed(), any::<u64>().boxed(), (0..3u64).boxed()]).prop_map(
            |(which, point)| Step::Memory { which, point }),
        4 => (few.clone(), 0..30usize, few.clone(), prop_oneof![Just(0), any::<u64>()], any::<bool>(), any::<u8>(), counts())
            .prop_map(|(process, stack, thread, task, mapping, class, counts)| Step::Allocations {
                process, stack, thread, task, mapping, class, counts }),
        3 => (few.clone(), 0..30usize, few.clone(), prop_oneof![Just(0), any::<u64>()], any::<bool>(), any::<u8>(),
              0..1_000_000_000u64, sampling(), prop_oneof![[-5..50i64, 0..5000, 0..50, 0..5000, 0..9], any::<[i64; 5]>()])
            .prop_map(|(process, stack, thread, task, mapping, class, length, sampling, change)| Step::Slice {
                process, stack, thread, task, mapping, class, length, sampling, change }),
        3 => Just(Step::Flush),
    ]
}

/// Many steps.
pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 0..60)
}

/// Writes the recording as its recorder would; returns what it was at the last flush.
pub fn grow(writer: &mut GlassWriter, recording: &mut Recording, steps: &[Step]) -> Recording {
    let mut flushed = recording.clone();
    for step in steps {
        apply(recording, step);
        if matches!(step, Step::Flush) {
            writer.append(recording).unwrap();
            flushed = recording.clone();
        }
    }
    flushed
}

/// Lets a step happen.
pub fn apply(recording: &mut Recording, step: &Step) {
    let r = recording;
    match step.clone() {
        Step::Process { pid, exe, arguments, start, forked } => {
            let (exe, start) = (exe.into(), Nanos(start));
            r.processes.push(Process {
                pid,
                parent: pid / 2,
                exe,
                arguments,
                start,
                forked,
                ..Process::default()
            });
        }
        Step::EndProcess { which, at } => {
            // An ended process does not change any more.
            if let Some(process) = r.processes.get_mut(which) {
                process.end.get_or_insert(Nanos(at));
            }
        }
        Step::Count { which, label, n } => {
            if let Some(process) = r.processes.get_mut(which).filter(|p| p.end.is_none()) {
                process.counters.insert(label, n);
            }
        }
        Step::Thread { process, tid, name, start } => {
            if !r.processes.is_empty() {
                let process = ProcessIndex((process % r.processes.len()) as u32);
                let (name, start) = (name.into(), Nanos(start));
                let (end, cpu, blocked_signal) = (None, Nanos(0), false);
                r.threads.push(Thread { process, tid, name, start, end, cpu, blocked_signal });
            }
        }
        Step::EndThread { which, at, cpu, blocked } => {
            if let Some(thread) = r.threads.get_mut(which).filter(|t| t.end.is_none()) {
                thread.end = Some(Nanos(at));
                thread.cpu = Nanos(cpu);
                thread.blocked_signal = blocked;
            }
        }
        Step::Task { process, id, name, line } => {
            if !r.processes.is_empty() {
                let process = ProcessIndex((process % r.processes.len()) as u32);
                let (id, file, name) = (TaskId(id), format!("{name}.rs").into(), name.into());
                r.tasks.push(Task { id, process, name, file, line, waited: Nanos(0) });
            }
        }
        Step::Wait { which, time } => {
            if let Some(task) = r.tasks.get_mut(which) {
                task.waited = Nanos(time);
            }
        }
        Step::Module { path, build_id } => {
            r.intern_module(Module { path: path.into(), build_id: build_id.into() });
        }
        Step::Sample { stack, thread, task, tick, state, cut, hits, time } => {
            if r.threads.is_empty() {
                return;
            }
            let locations: Vec<LocationId> = stack
                .iter()
                .map(|(module, offset)| {
                    let module = (*module < r.modules.len()).then_some(ModuleIndex(*module as u32));
                    r.stacks.intern_location(Location { module, offset: *offset })
                })
                .collect();
            let stack = r.stacks.intern(&locations);
            let thread = ThreadNumber((thread % r.threads.len()) as u32 + 1);
            let state = [State::Awake, State::Asleep, State::Task, State::Waiting][state as usize - 1];
            r.push(Sample {
                stack,
                thread,
                task,
                clock: Nanos(tick),
                state,
                cut: cut.map(Cut),
                hits,
                time: Nanos(time),
                spread: Nanos(spread_of(tick, time)),
            });
        }
        Step::Again { tick, hits, time } => {
            if let Some(last) = r.samples.last().copied() {
                let (time, spread) = (Nanos(time), Nanos(spread_of(tick, time)));
                r.push(Sample { clock: Nanos(tick), hits, time, spread, ..last });
            }
        }
        Step::Remark(text) => {
            r.info.remarks.push(text);
            r.info.own_cpu.0 += 1;
        }
        Step::Allocating { process, times: [begin, end, peak_at], sampling, lost: [lost, without_stack] } => {
            if !r.processes.is_empty() {
                r.allocations.processes.push(AllocatingProcess {
                    process: ProcessIndex((process % r.processes.len()) as u32),
                    begin: Nanos(begin),
                    end: Nanos(end),
                    sampling,
                    peak_at: Nanos(peak_at),
                    lost,
                    without_stack,
                    memory: Vec::new(),
                });
            }
        }
        Step::Memory { which, point: [clock, live_bytes, resident_bytes] } => {
            if let Some(process) = r.allocations.processes.get_mut(which) {
                process.memory.push(MemoryPoint { clock: Nanos(clock), live_bytes, resident_bytes });
            }
        }
        Step::Allocations { process, stack, thread, task, mapping, class, counts } => {
            if !r.processes.is_empty() {
                let [count, bytes, freed_count, freed_bytes, temporary_count, rest @ ..] = counts;
                let [peak_count, peak_bytes, kept_count, kept_bytes] = rest;
                r.allocations.groups.push(AllocationGroup {
                    stack: StackId((stack % (r.stacks.nodes().len() + 1)) as u32),
                    thread: ThreadNumber((thread % (r.threads.len() + 1)) as u32),
                    process: ProcessIndex((process % r.processes.len()) as u32),
                    task,
                    kind: if mapping { AllocationKind::Mapping } else { AllocationKind::Block },
                    size_class: SizeClass(class),
                    counts: AllocationCounts {
                        count,
                        bytes,
                        freed_count,
                        freed_bytes,
                        temporary_count,
                        peak_count,
                        peak_bytes,
                        kept_count,
                        kept_bytes,
                        ..AllocationCounts::default()
                    },
                });
            }
        }
        Step::Slice { process, stack, thread, task, mapping, class, length, sampling, change } => {
            let mut changes = Vec::new();
            let process = ProcessIndex((process % r.processes.len().max(1)) as u32);
            let slices = &mut r.allocations.slices;
            if !r.processes.is_empty() {
                if slices.processes().iter().all(|known| known.process != process) {
                    slices.add_process(SlicedProcess { process, begin: Nanos(length), sampling });
                }
                let key = slices.add_key(SliceKey {
                    stack: StackId((stack % (r.stacks.nodes().len() + 1)) as u32),
                    thread: ThreadNumber((thread % (r.threads.len() + 1)) as u32),
                    process,
                    task,
                    kind: if mapping { AllocationKind::Mapping } else { AllocationKind::Block },
                    size_class: SizeClass(class),
                });
                let [count, bytes, freed_count, freed_bytes, temporary_count] = change;
                let change = SliceChange { key, count, bytes, freed_count, freed_bytes, temporary_count };
                changes = vec![change, SliceChange { key: 0, ..change }];
            }
            let begin = slices.slices().last().map_or(Nanos(length), |last| last.end);
            // Shorter ones become parts of others.
            let end = Nanos(begin.0 + SHORTEST_SLICE.0 + length);
            slices.push(AllocationSlice { begin, end, changes });
        }
        Step::Flush => {}
    }
}

/// Gives a recording the parts that come at its end.
pub fn end(recording: &mut Recording, seed: u64) {
    let r = recording;
    r.info.end = [None, Some(End::Exit(-3)), Some(End::Signal(9)), Some(End::Running)][seed as usize % 4];
    r.info.kernel_cpu = seed.is_multiple_of(3).then_some(Nanos(seed));
    r.info.full = seed.is_multiple_of(2);
    r.info.wall = Nanos(seed);
    for index in 0..r.stacks.locations().len() as u64 {
        let mix = (index ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let frame = |n: u64| Frame {
            func: format!("f{}", (mix + n) % 5).into(),
            spec: (n == 1).then(|| format!("<f{n} as T>::g").into()),
            file: if mix.is_multiple_of(7) { "".into() } else { format!("/src/{}.rs", mix % 3).into() },
            line: (mix % 11) as i64 - 1,
            foreign: mix.is_multiple_of(5),
            inlined: n > 0,
            allocates_for_caller: [None, Some(false), Some(true)][mix as usize % 3],
            address: 0,
            module: "m".into(),
            krate: ["", "serde"][mix as usize % 2].into(),
        };
        r.symbols.set(LocationId(index as u32), (0..mix % 4).map(frame));
        if mix.is_multiple_of(3) {
            r.symbols.set_dispatches(LocationId(index as u32));
        }
    }
    for stack in (0..=r.stacks.nodes().len() as u32).filter(|stack| stack % 3 == seed as u32 % 3) {
        r.symbols.set_allocated_type(StackId(stack), format!("Vec<T{}>", stack % 4).into());
    }
    r.symbols.set_short_path("/src/0.rs".into(), ShortPath { prefix: "@a".into(), rest: "0.rs".into() });
    let missing = [Missing::DebugInfo, Missing::Names, Missing::File, Missing::Changed][seed as usize % 4];
    let language = [Language::Unknown, Language::Rust, Language::C, Language::Go][(seed / 4) as usize % 4];
    r.symbols.note(ModuleNote { module: "/lib/ü.so".into(), missing, language });
}

/// A recording to begin with.
pub fn beginning(command: &str) -> Recording {
    Recording {
        info: RecordingInfo {
            command: vec![command.into(), "--flag".into()],
            started: 1_700_000_000_000_000_000,
            start: Nanos(5),
            delay: Nanos(1_000_000),
            capacity: 10_000_000,
            writer: "test".into(),
            machine: "a machine".into(),
            ..RecordingInfo::default()
        },
        ..Recording::default()
    }
}

/// Locations that call through vtables and function pointers.
pub fn dispatches(recording: &Recording) -> Vec<LocationId> {
    let locations = (0..recording.stacks.locations().len() as u32).map(LocationId);
    locations.filter(|id| recording.symbols.dispatches(*id)).collect()
}

/// The groups of allocations in the order in which they are stored.
pub fn sorted_groups(recording: &Recording) -> Vec<AllocationGroup> {
    let mut groups = recording.allocations.groups.clone();
    groups.sort_by_key(|g| (g.process, g.stack, g.thread, g.task, g.kind, g.size_class));
    groups
}

/// Compares everything, frames in full. Groups of allocations are sorted in a file.
#[track_caller]
pub fn assert_same(read: &Recording, written: &Recording) {
    assert_eq!(read.info, written.info);
    assert_same_but_about_and_names(read, written);
    let of = |r: &Recording| -> Vec<Vec<_>> {
        let locations = 0..r.stacks.locations().len() as u32;
        locations
            .map(|id| {
                let frames = r.symbols.frames_of(LocationId(id));
                let all = |f: &Frame| {
                    let names = (f.spec.clone(), f.module.clone(), f.krate.clone());
                    (f.clone(), f.allocates_for_caller, names)
                };
                frames.map(all).collect()
            })
            .collect()
    };
    assert_eq!(of(read), of(written));
    assert_eq!(dispatches(read), dispatches(written));
    assert_eq!(read.allocations.processes, written.allocations.processes);
    let (slices, expected) = (&read.allocations.slices, &written.allocations.slices);
    assert_eq!(slices.processes(), expected.processes());
    assert_eq!(slices.keys(), expected.keys());
    assert_eq!(slices.slices(), expected.slices());
    assert_eq!(sorted_groups(read), sorted_groups(written));
    assert_eq!(read.symbols.allocated_types(), written.symbols.allocated_types());
    assert_eq!(read.symbols.short_paths(), written.symbols.short_paths());
    assert_eq!(read.symbols.notes(), written.symbols.notes());
}

/// Compares what an incomplete file can have.
#[track_caller]
pub fn assert_same_but_about_and_names(read: &Recording, written: &Recording) {
    assert_eq!(read.processes, written.processes);
    assert_eq!(read.threads, written.threads);
    assert_eq!(read.tasks, written.tasks);
    assert_eq!(read.modules, written.modules);
    assert_eq!(read.stacks.locations(), written.stacks.locations());
    assert_eq!(read.stacks.nodes(), written.stacks.nodes());
    assert_eq!(read.samples, written.samples);
}
