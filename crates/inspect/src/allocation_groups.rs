//! Reads the tables of one process: nodes become stacks, counters become groups.
//!
//! The tables are input from a program: numbers are checked before they are used as indices.

use foldhash::HashMap;
use stackglass_profile::address_space::{AddressSpace, MappedRange};
use stackglass_profile::{
    AllocatingProcess, AllocationCounts, AllocationGroup, AllocationKind, AllocationSampling, MemoryPoint,
    Module, ModuleIndex, Nanos, Process, ProcessIndex, Recorder, SizeClass, StackId, Thread, ThreadNumber,
};
use stackglass_wire::heap::{
    self, CounterEntry, HeapSampling, HeapTables, MAX_COUNTERS, MAX_NODES, MAX_THREADS, MODULE_WORDS,
    NODE_NOWHERE,
};
use stackglass_wire::{Event, text_byte};
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

/// Longest path and build id of a module.
const LONGEST_PATH: usize = 4096;
const LONGEST_BUILD_ID: usize = 64;

/// What the numbers in the tables of a process are in a recording.
#[derive(Debug, Default)]
pub struct Identities {
    /// Stacks by node.
    stacks: Vec<StackId>,
    /// Threads by their number.
    threads: Vec<ThreadNumber>,
}

impl Identities {
    /// The stack and the thread of a counter.
    pub fn of(&self, counter: &CounterEntry) -> (StackId, ThreadNumber) {
        let stack = self.stacks.get(counter.node.load(Relaxed) as usize);
        let thread = self.threads.get(counter.thread.load(Relaxed) as usize);
        (stack.copied().unwrap_or_default(), thread.copied().unwrap_or_default())
    }
}

/// What counts are if each allocation was recorded with a probability.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RateCounts {
    /// Those of the recorded allocations, as in Julia. Recordings with different rates add up.
    OfRecorded,
    /// Estimates for all allocations.
    OfAll,
}

/// Adds the allocations of a process to the recording. `end` is when its recording ended.
pub fn add(
    tables: &HeapTables,
    rate_counts: RateCounts,
    end: Nanos,
    mut memory: Vec<MemoryPoint>,
    recorder: &mut Recorder,
) -> Identities {
    let page = tables.page();
    let begin = Nanos(page.begin_ns.load(Relaxed));
    let modules = Modules::read(tables, recorder);
    let Some(process) = process_of(page.pid.load(Relaxed), begin, &modules, recorder) else {
        return Identities::default();
    };
    let program = modules.program.rsplit('/').next().unwrap_or_default();
    let threads = threads(tables, process, program, recorder);
    let stacks = stacks(tables, &modules, recorder);
    let identities = Identities { stacks, threads };
    let sampling = sampling_of(tables, rate_counts);
    let scale = Scale::from_sampling(sampling);
    let last_peak = page.peak_number().load(Acquire);
    let counters = page.counters().load(Acquire).min(MAX_COUNTERS as u32);
    let allocations = &mut recorder.recording_mut().allocations;
    let first = allocations.groups.len();
    for number in 1..counters {
        let entry = tables.counter(number);
        let counts = counts(entry, last_peak, &scale);
        if counts.count == 0 {
            continue;
        }
        let class = entry.class.load(Relaxed);
        let (stack, thread) = identities.of(entry);
        allocations.groups.push(AllocationGroup {
            stack,
            thread,
            process,
            task: entry.task.load(Relaxed),
            kind: if heap::is_mapping_class(class) { AllocationKind::Mapping } else { AllocationKind::Block },
            size_class: SizeClass(class as u8),
            counts,
        });
    }
    let (end, mut peak_at) = (end.max(begin), Nanos(page.peak_at_ns().load(Relaxed)).max(begin));
    if end_is_peak(&mut allocations.groups[first..]) {
        peak_at = end;
    }
    memory.iter_mut().for_each(|point| point.live_bytes = scale.bytes(point.live_bytes));
    allocations.processes.push(AllocatingProcess {
        process,
        begin,
        end,
        sampling,
        peak_at,
        lost: page.lost().load(Relaxed),
        without_stack: page.without_stack().load(Relaxed),
        memory,
    });
    identities
}

/// If more is alive at the end than at the peak, the end is the peak: threads keep the last small changes to themselves, and
/// scaled counts are estimates. Returns whether it is.
pub fn end_is_peak(groups: &mut [AllocationGroup]) -> bool {
    let blocks = |group: &&AllocationGroup| group.kind == AllocationKind::Block;
    let sum = |of: fn(&AllocationCounts) -> u64| -> u64 {
        groups.iter().filter(blocks).map(|group| of(&group.counts)).fold(0, u64::saturating_add)
    };
    if sum(AllocationCounts::live_bytes) <= sum(|counts| counts.peak_bytes) {
        return false;
    }
    for group in groups {
        let counts = &mut group.counts;
        (counts.peak_count, counts.peak_bytes) = (counts.live_count(), counts.live_bytes());
    }
    true
}

/// How the allocations of a process are recorded.
pub fn sampling_of(tables: &HeapTables, rate_counts: RateCounts) -> AllocationSampling {
    let page = tables.page();
    match HeapSampling::from_number(page.sampling.load(Relaxed)) {
        HeapSampling::Rate => {
            let rate = f64::from_bits(page.parameter.load(Relaxed)).clamp(0.0, 1.0);
            match rate_counts {
                RateCounts::OfRecorded => AllocationSampling::Rate(rate),
                RateCounts::OfAll => AllocationSampling::ScaledRate(rate),
            }
        }
        HeapSampling::Bytes => AllocationSampling::Bytes(page.parameter.load(Relaxed)),
        HeapSampling::Every | HeapSampling::Off => AllocationSampling::Every,
    }
}

/// A smaller rate records nothing in a lifetime; the numbers of a page may be anything.
const LEAST_RATE: f64 = 1e-12;

/// What a number of recorded allocations or bytes stands for.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    count: f64,
    bytes: f64,
}

impl Scale {
    /// For allocations that were recorded in this way.
    pub fn from_sampling(sampling: AllocationSampling) -> Scale {
        match sampling {
            AllocationSampling::Every | AllocationSampling::Rate(_) | AllocationSampling::Stacks(_) => {
                Scale { count: 1.0, bytes: 1.0 }
            }
            // Horvitz and Thompson: each recorded one stands for those that were left out as well.
            AllocationSampling::ScaledRate(rate) => {
                let factor = 1.0 / rate.max(LEAST_RATE);
                Scale { count: factor, bytes: factor }
            }
            // The recorder has weighted them.
            AllocationSampling::Bytes(_) => Scale { count: 1.0 / heap::COUNT_SCALE as f64, bytes: 1.0 },
        }
    }

    /// That many allocations, in units of the recorder.
    pub fn count(&self, n: u64) -> u64 {
        scaled(n, self.count)
    }

    /// That many bytes, in units of the recorder.
    pub fn bytes(&self, n: u64) -> u64 {
        scaled(n, self.bytes)
    }
}

fn scaled(n: u64, factor: f64) -> u64 {
    if factor == 1.0 || n == 0 { n } else { (n as f64 * factor).round() as u64 }
}

fn counts(entry: &CounterEntry, last_peak: u32, scale: &Scale) -> AllocationCounts {
    let (count, bytes) = (entry.count.load(Relaxed), entry.bytes.load(Relaxed));
    let (freed, freed_bytes) = (entry.freed_count.load(Relaxed), entry.freed_bytes.load(Relaxed));
    let (others, others_bytes) = (entry.others_count.load(Relaxed), entry.others_bytes.load(Relaxed));
    let own_peak = if entry.saved_for.load(Relaxed) == last_peak {
        (entry.peak_count.load(Relaxed), entry.peak_bytes.load(Relaxed))
    } else {
        (count.wrapping_sub(freed) as i64, bytes.wrapping_sub(freed_bytes) as i64)
    };
    let others_peak = if entry.others_saved_for.load(Relaxed) == last_peak {
        (entry.others_peak_count.load(Relaxed), entry.others_peak_bytes.load(Relaxed))
    } else {
        (others as i64, others_bytes as i64)
    };
    let not_negative = |n: i64| u64::try_from(n).unwrap_or(0);
    let all = if count == 0 { 0 } else { scale.count(count).max(1) };
    let live = scale.count(count.saturating_sub(freed.saturating_add(others))).min(all);
    let all_bytes = scale.bytes(bytes);
    AllocationCounts {
        count: all,
        bytes: all_bytes,
        freed_count: all - live,
        freed_bytes: scale.bytes(freed_bytes.saturating_add(others_bytes).min(bytes)).min(all_bytes),
        temporary_count: scale.count(entry.temporary_count.load(Relaxed)).min(all - live),
        peak_count: scale.count(not_negative(own_peak.0.wrapping_sub(others_peak.0))).min(all),
        peak_bytes: scale.bytes(not_negative(own_peak.1.wrapping_sub(others_peak.1))).min(all_bytes),
        kept_count: 0,
        kept_bytes: 0,
    }
}

/// The modules of a process, generation by generation.
struct Modules {
    /// The modules from a generation on, in order.
    spaces: Vec<(u32, AddressSpace)>,
    /// Path of the first module, which is the program.
    program: Arc<str>,
}

/// Most generations of modules that are distinguished.
const MOST_GENERATIONS: usize = 4096;

impl Modules {
    fn read(tables: &HeapTables, recorder: &mut Recorder) -> Modules {
        let used = (tables.page().module_words.load(Acquire) as usize).min(MODULE_WORDS);
        let words: Vec<u64> = (0..used).map(|index| tables.module_word(index).load(Relaxed)).collect();
        let mut modules = Modules { spaces: vec![(0, AddressSpace::default())], program: "".into() };
        heap::module_events(&words, |event| modules.apply(event, recorder));
        modules
    }

    fn apply(&mut self, event: &Event<'_>, recorder: &mut Recorder) {
        match *event {
            Event::ModuleLoad { module, at, bias, low, high, text, build_id_len, path_len } => {
                let (id, path) = (build_id_len as usize, path_len as usize);
                let bytes = |from: usize, n: usize| (from..from + n).map(|i| text_byte(text, i));
                let path: Vec<u8> = bytes(id, path.min(LONGEST_PATH)).collect();
                let build_id: Vec<u8> = bytes(0, id.min(LONGEST_BUILD_ID)).collect();
                let path: Arc<str> = String::from_utf8_lossy(&path).into();
                if self.program.is_empty() {
                    self.program = path.clone();
                }
                if let Some(index) = module_of(Module { path, build_id: build_id.into() }, recorder) {
                    self.space_of(at).load(module.0, index, MappedRange { low, high, bias });
                }
            }
            Event::ModuleUnload { module, at } => self.space_of(at).unload(module.0),
            _ => {}
        }
    }

    /// The modules of a generation, which begin as those of the one before.
    fn space_of(&mut self, generation: u64) -> &mut AddressSpace {
        let generation = u32::try_from(generation).unwrap_or(u32::MAX);
        if self.spaces.last().is_none_or(|(last, _)| *last < generation)
            && self.spaces.len() < MOST_GENERATIONS
        {
            let before = self.spaces.last().map(|(_, space)| space.clone()).unwrap_or_default();
            self.spaces.push((generation, before));
        }
        let last = self.spaces.len() - 1;
        &mut self.spaces[last].1
    }

    fn at(&self, generation: u32) -> &AddressSpace {
        let behind = self.spaces.partition_point(|(begin, _)| *begin <= generation);
        &self.spaces[behind.saturating_sub(1)].1
    }
}

/// The index of a module. The loader and the kernel may name the same file by different paths.
fn module_of(module: Module, recorder: &mut Recorder) -> Option<ModuleIndex> {
    let name = |path: &str| path.rsplit('/').next().map(str::to_owned);
    let same = |other: &Module| {
        !module.build_id.is_empty()
            && other.build_id == module.build_id
            && name(&other.path) == name(&module.path)
    };
    match recorder.recording().modules.iter().position(same) {
        Some(index) => Some(ModuleIndex(index as u32)),
        None => recorder.add_module(module),
    }
}

/// The recording's process for these tables: the latest image with this id that began before them.
fn process_of(pid: u32, begin: Nanos, modules: &Modules, recorder: &mut Recorder) -> Option<ProcessIndex> {
    let processes = &recorder.recording().processes;
    let images = processes.iter().enumerate().filter(|(_, image)| image.pid == pid);
    let known = images.filter(|(_, image)| image.start <= begin).max_by_key(|(_, image)| image.start);
    if let Some((index, _)) = known {
        return Some(ProcessIndex(index as u32));
    }
    recorder.add_process(Process { pid, exe: modules.program.clone(), start: begin, ..Process::default() })
}

/// The recording's threads by their number in the tables; 0 is unknown. Threads that it does not know yet are named like the program.
fn threads(
    tables: &HeapTables,
    process: ProcessIndex,
    program: &str,
    recorder: &mut Recorder,
) -> Vec<ThreadNumber> {
    let mut by_tid: HashMap<u32, Vec<(Nanos, ThreadNumber)>> = HashMap::default();
    for (thread, number) in recorder.recording().threads.iter().zip(1..) {
        if thread.process == process {
            by_tid.entry(thread.tid).or_default().push((thread.start, ThreadNumber(number)));
        }
    }
    let count = (tables.page().threads.load(Acquire) as usize).min(MAX_THREADS - 1) as u32;
    let mut numbers = vec![ThreadNumber(0)];
    for number in 1..=count {
        let entry = tables.thread(number);
        let (tid, first) = (entry.tid.load(Relaxed), Nanos(entry.first_ns.load(Relaxed)));
        // Ids are used again: the latest thread that began before its first allocation.
        let known = by_tid.get(&tid).map(Vec::as_slice).unwrap_or(&[]);
        let found = known
            .iter()
            .filter(|(start, _)| *start <= first)
            .max()
            .or(known.iter().min())
            .map(|(_, number)| *number);
        let found = found.or_else(|| {
            let new = Thread {
                process,
                tid,
                name: program.into(),
                start: first,
                end: None,
                cpu: Nanos(0),
                blocked_signal: false,
            };
            let number = recorder.add_thread(new)?;
            by_tid.entry(tid).or_default().push((first, number));
            Some(number)
        });
        numbers.push(found.unwrap_or_default());
    }
    numbers
}

/// The recording's stacks by node.
fn stacks(tables: &HeapTables, modules: &Modules, recorder: &mut Recorder) -> Vec<StackId> {
    let count = tables.page().nodes().load(Acquire).min(MAX_NODES as u32);
    let mut ids = vec![StackId(0)];
    let stacks = &mut recorder.recording_mut().stacks;
    for number in 1..count {
        let node = tables.node(number);
        let lookup = node.lookup.load(Acquire);
        let location = modules.at(node.generation.load(Relaxed) & !NODE_NOWHERE).locate(lookup);
        let caller = ids.get(node.parent.load(Relaxed) as usize).copied().unwrap_or_default();
        let location = stacks.intern_location(location);
        ids.push(stacks.extend(caller, location));
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The program stores numbers of classes; the recording reads them as its own.
    #[test]
    fn programs_and_recordings_have_the_same_size_classes() {
        let powers = (0..38).flat_map(|bits| (0..9).map(move |n| (1u64 << bits) + n * (1 << bits) / 9));
        for size in (0..2000).chain(powers).flat_map(|size| [size.saturating_sub(1), size, size + 1]) {
            assert_eq!(heap::size_class(size), u32::from(SizeClass::from_size(size).0), "{size}");
        }
    }
}
