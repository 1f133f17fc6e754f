//! The recording as it grows: interned, run-length encoded, bounded by `n` words.
//!
//! A stack node counts as one word, a location as two, a sample as five; a thread, module or process counts with its
//! texts. When the bound is reached, nothing more is added.

use crate::{
    AwaitLocation, Location, LocationId, Module, ModuleIndex, Process, ProcessIndex, Recording,
    RecordingInfo, Sample, Stacks, State, Task, Thread, ThreadNumber,
};
use foldhash::HashMap;

/// Words of a sample, a thread, a process and a task, without texts.
const SAMPLE_WORDS: u64 = 5;
const THREAD_WORDS: u64 = 12;
const PROCESS_WORDS: u64 = 32;
const TASK_WORDS: u64 = 12;

/// A growing [`Recording`].
pub struct Recorder {
    recording: Recording,
    modules: HashMap<Module, ModuleIndex>,
    /// By thread number from 1: one more than the index of its last sample that may still grow.
    growing: Vec<u32>,
    /// Samples before this one are written and do not change any more.
    settled: usize,
    /// Words of everything but stacks and samples.
    other_words: u64,
    full: bool,
    totals: Totals,
    /// Threads count as tasks, in a profile by wall time.
    threads_as_tasks: bool,
}

/// Sums over all samples so far.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Number of stacks that were taken.
    pub hits: u64,
    /// Time of running threads, ns.
    pub awake: u64,
    /// Time of threads that slept or waited for a CPU, ns.
    pub asleep: u64,
    /// Number of stacks of running threads that are cut.
    pub cut: u64,
    /// Number of threads that have not ended.
    pub threads: u64,
}

impl Recorder {
    /// An empty recording. `about.capacity` is the bound in words; 0: no bound.
    pub fn new(info: RecordingInfo) -> Recorder {
        Recorder {
            recording: Recording { info, ..Recording::default() },
            modules: HashMap::default(),
            growing: Vec::new(),
            settled: 0,
            other_words: 0,
            full: false,
            totals: Totals::default(),
            threads_as_tasks: false,
        }
    }

    /// Makes this a profile by wall time, in which each thread counts as a task of its own: running, ready or asleep.
    pub fn count_threads_as_tasks(&mut self) {
        self.threads_as_tasks = true;
    }

    /// The recording so far.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Facts about the recording as a whole.
    pub fn info_mut(&mut self) -> &mut RecordingInfo {
        &mut self.recording.info
    }

    /// Ends the growth and returns the recording.
    pub fn into_recording(self) -> Recording {
        self.recording
    }

    /// Sums over all samples.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Number of words that are stored now.
    pub fn words(&self) -> u64 {
        let recording = &self.recording;
        recording.stacks.nodes().len() as u64
            + recording.stacks.locations().len() as u64 * 2
            + recording.samples.len() as u64 * SAMPLE_WORDS
            + self.other_words
    }

    /// Whether the bound was reached: nothing more is added.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// All samples so far were written: they do not change any more.
    pub fn settle(&mut self) {
        self.settled = self.recording.samples.len();
        self.recording.allocations.slices.settle();
    }

    /// Adds a remark for the user, once.
    pub fn remark(&mut self, line: impl Into<String>) {
        let line = line.into();
        let remarks = &mut self.recording.info.remarks;
        if remarks.len() < 64 && !remarks.contains(&line) {
            remarks.push(line);
        }
    }

    /// Forgets samples, stacks and their totals; processes, threads and modules stay. Returns the old stacks, from
    /// which each image must carry over the current stacks of its threads.
    #[must_use = "threads that sleep are still on one of these stacks"]
    pub fn clear_samples(&mut self) -> Stacks {
        self.recording.samples.clear();
        let before = std::mem::take(&mut self.recording.stacks);
        self.recording.symbols = Default::default();
        self.growing.iter_mut().for_each(|last| *last = 0);
        self.settled = 0;
        self.full = false;
        self.recording.info.full = false;
        let threads = self.totals.threads;
        self.totals = Totals { threads, ..Totals::default() };
        for thread in &mut self.recording.threads {
            thread.cpu.0 = 0;
        }
        before
    }

    /// The recording, for changes that the methods here do not make. Who adds stacks calls [`Recorder::check_bound`] then.
    pub fn recording_mut(&mut self) -> &mut Recording {
        &mut self.recording
    }

    /// Changes the bound; with a larger one, sampling may continue.
    pub fn set_capacity(&mut self, words: u64) {
        self.recording.info.capacity = words;
        self.full = false;
        self.recording.info.full = false;
        self.check_bound();
    }

    /// Adds a process; `None` if the recording is full.
    pub fn add_process(&mut self, process: Process) -> Option<ProcessIndex> {
        let texts = process.exe.len() + process.arguments.iter().map(|a| a.len() + 24).sum::<usize>();
        self.reserve(PROCESS_WORDS + texts as u64 / 8)?;
        self.recording.processes.push(process);
        Some(ProcessIndex(self.recording.processes.len() as u32 - 1))
    }

    /// A process.
    ///
    /// # Panics
    /// If the recording does not have it.
    pub fn process_mut(&mut self, index: ProcessIndex) -> &mut Process {
        &mut self.recording.processes[index.0 as usize]
    }

    /// Sets a counter that belongs to all processes; it is stored with the first one.
    pub fn set_counter(&mut self, label: &str, n: u64) {
        if let Some(process) = self.recording.processes.first_mut() {
            process.counters.insert(label.to_owned(), n);
        }
    }

    /// Adds a thread that lives; `None` if the recording is full.
    pub fn add_thread(&mut self, thread: Thread) -> Option<ThreadNumber> {
        self.reserve(THREAD_WORDS)?;
        self.recording.threads.push(thread);
        self.growing.push(0);
        self.totals.threads += 1;
        Some(ThreadNumber(self.recording.threads.len() as u32))
    }

    /// A thread.
    ///
    /// # Panics
    /// If the recording does not have it.
    pub fn thread_mut(&mut self, number: ThreadNumber) -> &mut Thread {
        &mut self.recording.threads[number.0 as usize - 1]
    }

    /// A thread has ended: one fewer lives.
    pub fn thread_ended(&mut self) {
        self.totals.threads = self.totals.threads.saturating_sub(1);
    }

    /// Adds a task and returns its index; `None` if the recording is full.
    pub fn add_task(&mut self, task: Task) -> Option<usize> {
        self.reserve(TASK_WORDS + (task.name.len() + task.file.len()) as u64 / 8)?;
        self.recording.tasks.push(task);
        Some(self.recording.tasks.len() - 1)
    }

    /// A task, by its index.
    ///
    /// # Panics
    /// If the recording does not have it.
    pub fn task_mut(&mut self, index: usize) -> &mut Task {
        &mut self.recording.tasks[index]
    }

    /// The location of a frame without an address; `None` if the recording is full.
    pub fn add_await_frame(&mut self, frame: &AwaitLocation) -> Option<LocationId> {
        let module = Some(self.add_module(frame.module())?);
        Some(self.recording.stacks.intern_location(Location { module, offset: frame.line.into() }))
    }

    /// The index of a module, which is added if it is new; `None` if the recording is full.
    pub fn add_module(&mut self, module: Module) -> Option<ModuleIndex> {
        if let Some(known) = self.modules.get(&module) {
            return Some(*known);
        }
        // Path and build id are shared between this map and the recording.
        self.reserve(16 + (module.path.len() + module.build_id.len()) as u64 / 8)?;
        let index = ModuleIndex(self.recording.modules.len() as u32);
        self.recording.modules.push(module.clone());
        self.modules.insert(module, index);
        Some(index)
    }

    /// Adds a sample. It is merged with the thread's last sample if it [continues](Sample::is_continued_by) that and that one was not
    /// written yet.
    ///
    /// # Panics
    /// If the recording does not have its thread.
    pub fn add_sample(&mut self, sample: Sample) {
        self.add(sample, Sample::is_continued_by);
    }

    /// Adds a sample of a task snapshot. It is merged with another one of the same snapshot only: the errors of shares come from
    /// single snapshots.
    ///
    /// # Panics
    /// If the recording does not have its thread.
    pub fn add_snapshot_sample(&mut self, sample: Sample) {
        self.add(sample, |last, sample| last.clock == sample.clock);
    }

    fn add(&mut self, mut sample: Sample, may_merge: impl FnOnce(&Sample, &Sample) -> bool) {
        if self.full {
            return;
        }
        let state = sample.state;
        if self.threads_as_tasks {
            self.make_task(&mut sample);
        }
        self.count(&sample, state);
        let growing = &mut self.growing[sample.thread.0 as usize - 1];
        let samples = &mut self.recording.samples;
        if let Some(index) = (*growing as usize).checked_sub(1)
            && index >= self.settled
            && let Some(last) = samples.get_mut(index)
            && may_merge(last, &sample)
            && last.merge(&sample)
        {
            return;
        }
        samples.push(sample);
        *growing = samples.len() as u32;
        self.check_bound();
    }

    /// Makes a sample of a thread one of a task. A thread that does not run stands where it stood: each tick of that time is a
    /// hit, although nothing was read then.
    fn make_task(&self, sample: &mut Sample) {
        if !sample.state.uses_cpu() {
            let delay = self.recording.info.delay.0.max(1);
            let ticks = (sample.time.0.saturating_add(delay / 2)) / delay;
            sample.hits = ticks.min(u32::MAX.into()) as u32;
        }
        sample.state = State::Task;
    }

    /// `state` is that of the thread.
    fn count(&mut self, sample: &Sample, state: State) {
        let totals = &mut self.totals;
        totals.hits = totals.hits.saturating_add(u64::from(sample.hits));
        let time = sample.time.0;
        if !state.uses_cpu() {
            totals.asleep = totals.asleep.saturating_add(time);
        } else {
            totals.awake = totals.awake.saturating_add(time);
            if state == State::Awake {
                let cpu = &mut self.recording.threads[sample.thread.0 as usize - 1].cpu.0;
                *cpu = cpu.saturating_add(time);
            }
        }
        if sample.cut.is_some() {
            totals.cut = totals.cut.saturating_add(u64::from(sample.hits));
        }
    }

    fn reserve(&mut self, words: u64) -> Option<()> {
        if self.full {
            return None;
        }
        self.other_words += words;
        self.check_bound();
        Some(())
    }

    /// Ends the growth if the bound is reached.
    pub fn check_bound(&mut self) {
        let capacity = self.recording.info.capacity;
        // Ids have 32 bits, whatever the bound.
        let ids = self.recording.stacks.nodes().len().max(self.recording.samples.len());
        if (capacity != 0 && self.words() >= capacity) || ids >= u32::MAX as usize - 8192 {
            self.full = true;
            self.recording.info.full = true;
        }
    }
}
