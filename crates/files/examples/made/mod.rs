//! A recording that is made up but shaped like a real one: eight threads at 1 kHz of which five
//! mostly sleep, 20 000 distinct stacks of depth 5 to 60 that are met as words are in a language
//! (a few very often), times and clocks with a jitter of some microseconds.

use stackglass_profile::{
    AllocationCounts, AllocationGroup, AllocationKind, Frame, Location, LocationId, Module, ModuleIndex,
    Nanos, Process, ProcessIndex, Recording, RecordingInfo, Sample, SizeClass, StackId, State, Thread,
    ThreadNumber,
};

/// The made-up program.
pub struct Made {
    random: u64,
    stacks: Vec<StackId>,
    clock: u64,
    asleep: [Option<StackId>; 8],
    last: [u64; 8],
}

impl Made {
    /// No stacks yet.
    pub fn new() -> Made {
        Made { random: 1, stacks: Vec::new(), clock: 1_000_000_000, asleep: [None; 8], last: [0; 8] }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    /// Threads and stacks.
    pub fn beginning(&mut self) -> Recording {
        let mut recording = Recording {
            info: RecordingInfo {
                command: vec!["made-up".into()],
                delay: Nanos(1_000_000),
                ..RecordingInfo::default()
            },
            processes: vec![Process::default()],
            modules: vec![Module { path: "/bin/made-up".into(), build_id: [7; 20].into() }],
            ..Recording::default()
        };
        for tid in 0..8 {
            let (name, start, cpu) = (format!("worker-{tid}").into(), Nanos(0), Nanos(0));
            recording.threads.push(Thread {
                process: ProcessIndex(0),
                tid,
                name,
                start,
                end: None,
                cpu,
                blocked_signal: false,
            });
        }
        // Stacks grow from earlier ones, as calls do.
        while self.stacks.len() < 20_000 {
            let mut stack = match self.stacks.len() {
                0 => StackId(0),
                n => {
                    let caller = self.random(n as u64);
                    self.stacks[caller as usize]
                }
            };
            for _ in 0..1 + self.random(5) {
                let offset = 0x1000 + self.random(50_000) * 37;
                let location = Location { module: Some(ModuleIndex(0)), offset };
                let location = recording.stacks.intern_location(location);
                stack = recording.stacks.extend(stack, location);
            }
            self.stacks.push(stack);
        }
        recording
    }

    /// Sample number `n`, of thread `n % 8`.
    pub fn sample(&mut self, recording: &mut Recording, n: u64) {
        let thread = (n % 8) as usize;
        if thread == 0 {
            self.clock += 1_000_000 + self.random(4_000) - 2_000;
        }
        self.clock += 300 + self.random(200);
        let sleeps = thread >= 3 && self.random(50) != 0;
        let kept = self.asleep[thread].filter(|_| sleeps);
        let stack = kept.unwrap_or_else(|| {
            // Zipf: rank r is met as often as 1/r.
            let rank = (20_000f64.powf(self.random(1 << 30) as f64 / f64::from(1 << 30))) as usize;
            self.stacks[rank.min(19_999)]
        });
        self.asleep[thread] = sleeps.then_some(stack);
        let (state, hits) = if sleeps { (State::Asleep, 0) } else { (State::Awake, 1) };
        let elapsed = self.clock - self.last[thread];
        self.last[thread] = self.clock;
        // A running thread loses a little time to other threads.
        let elsewhere = if sleeps { 0 } else { self.random(20_000) };
        recording.push(Sample {
            stack,
            thread: ThreadNumber(thread as u32 + 1),
            task: 0,
            clock: Nanos(self.clock),
            state,
            cut: None,
            hits,
            time: Nanos(elapsed - elsewhere),
            spread: Nanos(0),
        });
    }

    /// Allocations in about `groups` groups: a fifth of the stacks allocate, most of them blocks of one size, which are mostly
    /// freed. One in four stacks allocates vectors, whose sizes double.
    #[allow(dead_code)] // Not every example needs them.
    pub fn allocate(&mut self, recording: &mut Recording, groups: usize) {
        let kind = AllocationKind::Block;
        let process = ProcessIndex(0);
        while recording.allocations.groups.len() < groups {
            let place = self.random(4_000) as usize * 5;
            let stack = self.stacks[place];
            let thread = ThreadNumber(self.random(8) as u32 + 1);
            let task = if thread.0 == 8 { 1 + self.random(500) } else { 0 };
            let sizes = if stack.0.is_multiple_of(4) { 1 + self.random(8) } else { 1 };
            for step in 0..sizes {
                let size = (8 + 8 * u64::from(stack.0 % 20)) << step;
                let magnitude = self.random(16);
                let count = 1 + self.random(1 << magnitude);
                let live = if self.random(5) == 0 { self.random(count + 1) } else { 0 };
                let peak = if self.random(4) == 0 { self.random(count + 1) } else { live };
                let counts = AllocationCounts {
                    count,
                    bytes: count * size,
                    freed_count: count - live,
                    freed_bytes: (count - live) * size,
                    temporary_count: if self.random(3) == 0 { self.random(count + 1 - live) } else { 0 },
                    peak_count: peak,
                    peak_bytes: peak * size,
                    ..AllocationCounts::default()
                };
                let size_class = SizeClass::from_size(size);
                recording.allocations.groups.push(AllocationGroup {
                    stack,
                    thread,
                    process,
                    task,
                    kind,
                    size_class,
                    counts,
                });
            }
            recording.symbols.set_allocated_type(stack, format!("made::Type{}", stack.0 % 700).into());
        }
    }

    /// Names for all of its code: 3000 functions in 200 files, every fourth place inlined into another.
    #[allow(dead_code)] // Not every example needs them.
    pub fn name(&mut self, recording: &mut Recording) {
        for id in 0..recording.stacks.locations().len() as u32 {
            let function = self.random(3000);
            let frame = |function: u64, inlined| Frame {
                func: format!("made::part{}::function{function}", function % 40).into(),
                file: format!("/src/part{}.rs", function % 200).into(),
                line: (function % 900) as i64 + 1,
                foreign: false,
                inlined,
                module: "/bin/made-up".into(),
                ..Frame::unknown(0)
            };
            let frames = match id % 4 {
                0 => vec![frame(function / 2, true), frame(function, false)],
                _ => vec![frame(function, false)],
            };
            recording.symbols.set(LocationId(id), frames);
        }
    }
}
