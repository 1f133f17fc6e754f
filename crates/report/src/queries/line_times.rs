//! The time of each source line, and the bytes that it allocated.

use crate::kinds;
use crate::order;
use crate::queries::allocations::allocator_frames::AllocatorFrames;
use crate::queries::line_owners::{LineOwners, has_line};
use crate::queries::weight::Weight;
use crate::state_filter::StateFilter;
use foldhash::HashMap;
use stackglass_profile::{AllocationKind, Recording, StackId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Time and stacks of a line or file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counted {
    /// Stacks that pass through it, each counted once.
    pub total: Weight,
    /// Stacks that end in it, or in code of libraries that it called.
    pub own: Weight,
    /// Bytes allocated in it, or in code of an allocator or standard library that it called.
    pub bytes: u64,
}

/// A line that was seen.
#[derive(Clone, Debug)]
pub(crate) struct SeenLine {
    pub counted: Counted,
    /// The function it was seen in, or the first of several.
    pub func: Arc<str>,
}

/// A source file that was seen.
#[derive(Clone, Debug)]
pub(crate) struct SeenFile {
    pub file: Arc<str>,
    pub counted: Counted,
    pub lines: BTreeMap<i64, SeenLine>,
}

/// The times of all lines and files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// Files, by own time, then by total time, largest first.
    pub files: Vec<SeenFile>,
    /// All time in the selected states, in code with or without lines.
    pub all: Weight,
    /// Stacks without any source line.
    pub without_lines: Weight,
    /// False for samples without times, which say only how often.
    pub timed: bool,
    /// All allocated bytes; `None` if there are no allocations.
    pub bytes: Option<u64>,
}

/// Times of a line or file, and the last stack counted for it.
#[derive(Clone, Copy, Default)]
struct Count {
    counted: Counted,
    last: u32,
}

impl Count {
    /// Adds a stack unless it was the last one added.
    fn add(&mut self, stack: u32, weight: Weight) {
        if self.last != stack {
            self.last = stack;
            self.counted.total += weight;
        }
    }
}

impl Counts {
    /// Counts the samples in these states.
    pub(crate) fn from_recording(recording: &Recording, states: StateFilter) -> Counts {
        let mut weights: HashMap<StackId, Weight> = HashMap::default();
        for sample in recording.samples.iter().filter(|sample| states.has_state(sample.state)) {
            let weight = Weight { time: sample.time.0, hits: u64::from(sample.hits) };
            *weights.entry(sample.stack).or_default() += weight;
        }
        let numbering = Numbering::from_recording(recording);
        let mut lines = vec![Count::default(); numbering.lines.len()];
        let mut files = vec![Count::default(); numbering.files.len()];
        let mut counts = Counts::default();
        let owners = LineOwners::new(recording);
        for (index, (stack, weight)) in weights.into_iter().enumerate() {
            counts.all += weight;
            let number = index as u32 + 1;
            let owner = owners.of(stack).and_then(|(file, line)| numbering.line_of(&file, line));
            for location in recording.stacks.walk(stack) {
                for frame in recording.symbols.frame_indices(location) {
                    if let Some(line) = numbering.frames[*frame as usize].line {
                        lines[line as usize].add(number, weight);
                        files[numbering.lines[line as usize].file as usize].add(number, weight);
                    }
                }
            }
            match owner {
                Some(line) => {
                    lines[line as usize].counted.own += weight;
                    files[numbering.lines[line as usize].file as usize].counted.own += weight;
                }
                None => counts.without_lines += weight,
            }
        }
        counts.timed = counts.all.time > 0;
        counts.bytes = (!recording.allocations.groups.is_empty()).then(|| {
            numbering.allocated(recording, |line, bytes| {
                let file = &mut files[numbering.lines[line as usize].file as usize].counted.bytes;
                for sum in [&mut lines[line as usize].counted.bytes, file] {
                    *sum = sum.saturating_add(bytes);
                }
            })
        });
        let file = |(file, count): (&Arc<str>, &Count)| SeenFile {
            file: file.clone(),
            counted: count.counted,
            lines: BTreeMap::new(),
        };
        counts.files = numbering.files.iter().zip(&files).map(file).collect();
        for (NumberedLine { file, line, func }, count) in numbering.lines.into_iter().zip(lines) {
            if count.last > 0 || count.counted.bytes > 0 {
                let seen = SeenLine { counted: count.counted, func };
                counts.files[file as usize].lines.insert(line, seen);
            }
        }
        counts.files.retain(|file| !file.lines.is_empty());
        let amounts =
            |file: &SeenFile| (counts.measure(file.counted.own), counts.measure(file.counted.total));
        let mut order: Vec<usize> = (0..counts.files.len()).collect();
        order.sort_by(|a, b| {
            let (a, b) = (&counts.files[*a], &counts.files[*b]);
            order::largest_first((amounts(a), &a.file), (amounts(b), &b.file))
        });
        counts.files = order.into_iter().map(|index| counts.files[index].clone()).collect();
        counts
    }

    /// Nanoseconds, or hits if times are unknown.
    pub(crate) fn measure(&self, weight: Weight) -> u64 {
        if self.timed { weight.time } else { weight.hits }
    }
}

/// The files and lines of a recording, numbered.
#[derive(Default)]
struct Numbering {
    files: Vec<Arc<str>>,
    /// By path.
    file_numbers: HashMap<Arc<str>, u32>,
    lines: Vec<NumberedLine>,
    /// By file and line.
    numbers: HashMap<(u32, i64), u32>,
    /// By frame index.
    frames: Vec<NumberedFrame>,
}

struct NumberedLine {
    file: u32,
    line: i64,
    func: Arc<str>,
}

struct NumberedFrame {
    line: Option<u32>,
    /// Neither in an allocator nor in a standard library.
    allocates: bool,
}

impl Numbering {
    fn from_recording(recording: &Recording) -> Numbering {
        let mut numbering = Numbering::default();
        let mut lines: HashMap<(u32, i64), u32> = HashMap::default();
        let rust = recording.has_rust();
        for frame in recording.symbols.frames() {
            let number = has_line(frame).then(|| {
                let file = *numbering.file_numbers.entry(frame.file.clone()).or_insert_with(|| {
                    numbering.files.push(frame.file.clone());
                    numbering.files.len() as u32 - 1
                });
                *lines.entry((file, frame.line)).or_insert_with(|| {
                    numbering.lines.push(NumberedLine { file, line: frame.line, func: frame.func.clone() });
                    numbering.lines.len() as u32 - 1
                })
            });
            let allocates = kinds::is_allocation_site(frame, rust);
            numbering.frames.push(NumberedFrame { line: number, allocates });
        }
        numbering.numbers = lines;
        numbering
    }

    /// The number of a line.
    fn line_of(&self, file: &Arc<str>, line: i64) -> Option<u32> {
        let file = self.file_numbers.get(file)?;
        self.numbers.get(&(*file, line)).copied()
    }

    /// Calls `add` with the line and the bytes of each group of allocated blocks, if the line is known. Returns all bytes.
    fn allocated(&self, recording: &Recording, mut add: impl FnMut(u32, u64)) -> u64 {
        let mut known: HashMap<StackId, Option<u32>> = HashMap::default();
        let allocators = AllocatorFrames::from_recording(recording);
        let mut all = 0u64;
        for group in recording.allocations.groups.iter().filter(|group| group.kind == AllocationKind::Block) {
            all = all.saturating_add(group.counts.bytes);
            let line = known
                .entry(group.stack)
                .or_insert_with(|| self.allocating(allocators.outside(recording, group.stack)));
            if let Some(line) = line {
                add(*line, group.counts.bytes);
            }
        }
        all
    }

    /// The line that allocates at a stack: that of the innermost frame outside of allocators and standard libraries.
    fn allocating(&self, mut frames: impl Iterator<Item = u32>) -> Option<u32> {
        frames.find_map(|frame| Some(&self.frames[frame as usize]).filter(|frame| frame.allocates))?.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_profile::{
        AllocatingProcess, AllocationCounts, AllocationGroup, AllocationSampling, Frame, Location,
        LocationId, Nanos, ProcessIndex, Sample, SizeClass, State, ThreadNumber,
    };

    /// main (a.rs:1) calls f (a.rs:2), which calls itself there, then the C library.
    fn recording() -> Recording {
        let mut recording = Recording::default();
        let mut add = |offset, func: &str, line| -> LocationId {
            let location = recording.stacks.intern_location(Location { module: None, offset });
            let frame =
                Frame { func: func.into(), file: "a.rs".into(), line, foreign: false, ..Frame::unknown(0) };
            let library = Frame { module: "libc.so.6".into(), ..Frame::unknown(0) };
            let frame = if line < 0 { library } else { frame };
            recording.symbols.set(location, [frame]);
            location
        };
        let (main, f, g, c) = (add(1, "demo::main", 1), add(2, "f", 2), add(3, "f", 2), add(4, "", -1));
        for (leaf_first, state, time) in [
            (vec![main], State::Awake, 1),
            (vec![c, g, f, main], State::Awake, 10),
            (vec![f, main], State::Asleep, 100),
            (vec![c], State::Awake, 1000),
        ] {
            let stack = recording.stacks.intern(&leaf_first);
            recording.push(Sample {
                stack,
                thread: ThreadNumber(1),
                task: 0,
                clock: Nanos(1),
                state,
                cut: None,
                hits: 1,
                time: Nanos(time),
                spread: Nanos(0),
            });
        }
        recording
    }

    #[test]
    fn stacks_count_once_and_end_where_lines_end() {
        let counts = Counts::from_recording(&recording(), StateFilter::Awake);
        let times = |line: i64| {
            let counted = counts.files[0].lines[&line].counted;
            (counted.total.time, counted.own.time)
        };
        assert_eq!((times(1), times(2)), ((11, 1), (10, 10)));
        assert_eq!((counts.all.time, counts.without_lines.time), (1011, 1000), "c alone has no line");
        assert_eq!(counts.files[0].counted.total.time, 11);
        let asleep = Counts::from_recording(&recording(), StateFilter::Asleep);
        assert_eq!((asleep.all.time, asleep.files[0].lines[&2].counted.own.time), (100, 100));
    }

    #[test]
    fn bytes_belong_to_the_line_that_called_the_allocator() {
        let mut recording = recording();
        let idle = recording.stacks.intern_location(Location { module: None, offset: 9 });
        let frame = Frame { func: "idle".into(), file: "b.rs".into(), line: 9, ..Frame::unknown(0) };
        recording.symbols.set(idle, [frame]);
        let stacks: Vec<StackId> = recording.samples.iter().map(|sample| sample.stack).collect();
        let idle = recording.stacks.intern(&[idle]);
        assert_eq!(Counts::from_recording(&recording, StateFilter::Awake).bytes, None);
        recording.allocations.processes.push(AllocatingProcess {
            process: ProcessIndex(0),
            begin: Nanos(0),
            end: Nanos(1),
            sampling: AllocationSampling::Every,
            peak_at: Nanos(0),
            lost: 0,
            without_stack: 0,
            memory: Vec::new(),
        });
        for (stack, bytes) in
            [(stacks[0], 1), (stacks[1], 20), (stacks[3], 300), (StackId(0), 4000), (idle, 5)]
        {
            let (thread, task, process) = (ThreadNumber(1), 0, ProcessIndex(0));
            let counts = AllocationCounts { count: 1, bytes, ..AllocationCounts::default() };
            for kind in [AllocationKind::Block, AllocationKind::Mapping] {
                let size_class = SizeClass::from_size(bytes);
                let group = AllocationGroup { stack, thread, process, task, kind, size_class, counts };
                recording.allocations.groups.push(group);
            }
        }
        let counts = Counts::from_recording(&recording, StateFilter::Awake);
        assert_eq!(counts.bytes, Some(4326));
        let bytes = |file: usize, line: i64| counts.files[file].lines[&line].counted.bytes;
        assert_eq!((bytes(0, 1), bytes(0, 2)), (1, 20));
        assert_eq!((&*counts.files[1].file, bytes(1, 9)), ("b.rs", 5), "a line without samples");
        assert_eq!((counts.files[0].counted.bytes, counts.files[1].counted.total.time), (21, 0));
    }

    #[test]
    fn samples_without_times_are_counted() {
        let mut recording = recording();
        recording.samples.iter_mut().for_each(|sample| sample.time = Nanos(0));
        let counts = Counts::from_recording(&recording, StateFilter::Awake);
        assert!(!counts.timed);
        assert_eq!(counts.measure(counts.files[0].lines[&1].counted.total), 2);
    }
}
