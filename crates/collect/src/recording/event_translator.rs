//! Translates the events of one process image into interned samples.
//!
//! A known stack costs one hash of its addresses and one lookup. A new stack is translated frame by frame: address to
//! module to location to trie node. Both caches are cleared when a module is mapped or unmapped, because an address
//! may then belong to another function.

use super::waits::{HeldSample, HeldSamples, WaitAnswers};
use foldhash::HashMap;
use foldhash::fast::RandomState;
use stackglass_inspect::task_stacks::AwaitStack;
use stackglass_procfs::clock;
use stackglass_profile::address_space::{AddressSpace, MappedRange};
use stackglass_profile::{
    Cut, Location, LocationId, Module, Nanos, Process, ProcessIndex, Recorder, Sample, StackId, Stacks,
    State, TASKS_MODULE, Task, TaskId, Thread, ThreadNumber,
};
use stackglass_wire::{
    ControlPage, Counter, Event, ImageFlags, ModuleId, TEXT_BYTES, ThreadId, ThreadName, text_byte,
};
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Largest number of cached stacks and addresses of one image. Programs that generate code at run time could
/// otherwise fill the memory.
const MOST_REMEMBERED: usize = 1 << 18;
/// Longest path and build id that are stored, bytes.
const LONGEST_PATH: usize = 4096;
const LONGEST_BUILD_ID: usize = 64;

/// Translates the events of one process image into samples of a [`Recorder`].
pub struct EventTranslator {
    index: ProcessIndex,
    /// The executable, if the recording names it by the link by which it was started: its own path, and that of the link.
    link: Option<(Arc<str>, Arc<str>)>,
    space: AddressSpace,
    threads: HashMap<u32, ThreadSoFar>,
    /// Named tasks: their index in the recording, by the id in the process.
    tasks: HashMap<u64, usize>,
    /// The first task of each name and place.
    kinds: HashMap<(Arc<str>, Arc<str>, u32), TaskId>,
    stack_hashers: [RandomState; 2],
    /// Keyed by 128 bits of hash instead of the frames: an accidental collision is less likely than a memory error.
    stacks: HashMap<u128, StackId>,
    locations: HashMap<u64, LocationId>,
    scratch: Vec<LocationId>,
    /// Samples of tasks whose await stacks are to come.
    held: HeldSamples,
    /// When samples were forgotten the last time, CLOCK_MONOTONIC: what a sample stands for before that is no part of the recording.
    cleared_at: Nanos,
}

/// The last stack of a thread, which repeats stand for.
#[derive(Clone, Copy)]
struct LastStack {
    stack: StackId,
    task: u64,
    cut: Option<Cut>,
}

/// State of a thread between two events.
#[derive(Clone, Copy)]
struct ThreadSoFar {
    number: ThreadNumber,
    ended: bool,
    last: Option<LastStack>,
    /// Time that it was given since samples were forgotten, ns.
    given: u64,
}

impl EventTranslator {
    /// Adds the image that `control` describes; `None` if the recording is full.
    pub fn new(control: &ControlPage, recorder: &mut Recorder) -> Option<EventTranslator> {
        let process = process_of(control);
        let link = link_of(&process);
        EventTranslator::from_process(process, link, recorder)
    }

    /// Adds the image of a process that was started by `link`, if not by its own path; `None` if the recording is full.
    pub(crate) fn from_process(
        mut process: Process,
        link: Option<Arc<str>>,
        recorder: &mut Recorder,
    ) -> Option<EventTranslator> {
        let link = link.map(|link| (std::mem::replace(&mut process.exe, Arc::clone(&link)), link));
        let index = recorder.add_process(process)?;
        Some(EventTranslator {
            index,
            link,
            space: AddressSpace::default(),
            threads: HashMap::default(),
            tasks: HashMap::default(),
            kinds: HashMap::default(),
            stack_hashers: Default::default(),
            stacks: HashMap::default(),
            locations: HashMap::default(),
            scratch: Vec::new(),
            held: HeldSamples::default(),
            cleared_at: Nanos(0),
        })
    }

    /// Names its program, which was not known before, and the link by which it was started.
    #[cfg(feature = "launch")]
    pub(crate) fn set_program(&mut self, exe: Arc<str>, link: Option<Arc<str>>, recorder: &mut Recorder) {
        recorder.process_mut(self.index).exe = link.clone().unwrap_or_else(|| Arc::clone(&exe));
        self.link = link.map(|link| (exe, link));
    }

    /// Its index in the recording's list of processes.
    pub fn index(&self) -> ProcessIndex {
        self.index
    }

    /// Forgets which stacks were interned `before`, after [`Recorder::clear_samples`]. The current stacks of threads
    /// stay: a sleeping thread only adds time to its stack.
    pub fn forget_stacks(&mut self, before: &Stacks, recorder: &mut Recorder) {
        self.cleared_at = Nanos(clock::monotonic());
        self.threads.values_mut().for_each(|thread| thread.given = 0);
        self.held.forget();
        self.stacks.clear();
        self.locations.clear();
        let now = &mut recorder.recording_mut().stacks;
        for LastStack { stack, .. } in
            self.threads.values_mut().filter(|thread| !thread.ended).filter_map(|thread| thread.last.as_mut())
        {
            let leaf_first: Vec<LocationId> =
                before.walk(*stack).map(|location| now.intern_location(before.location(location))).collect();
            *stack = now.intern(&leaf_first);
        }
        self.threads.values_mut().filter(|thread| thread.ended).for_each(|thread| thread.last = None);
    }

    /// Adds one event to the recording.
    pub fn apply(&mut self, event: &Event<'_>, recorder: &mut Recorder) {
        match *event {
            Event::Sample { thread, at, time, task, state, cut, hits, frames } => {
                let Some(number) = self.number(thread, at, recorder) else { return };
                let state = state_of(state);
                let (clock, time) = (Nanos(at), self.since_cleared(thread, at, time, state));
                if let ([waited, rest @ ..], stackglass_wire::cut::WAITS) = (frames, cut) {
                    self.note_wait(task, *waited, recorder);
                    let id = self.task_id(task);
                    let (stack, cut) = (StackId::default(), None);
                    let sample = Sample {
                        stack,
                        thread: number,
                        task: id,
                        clock,
                        state,
                        cut,
                        hits,
                        time,
                        spread: Nanos(0),
                    };
                    let question = rest.first().copied().unwrap_or(0);
                    if let Some(HeldSample { sample, .. }) =
                        self.held.hold(HeldSample { question, task, sample })
                    {
                        self.add_wait(sample, task, recorder);
                    }
                    return;
                }
                let Some(stack) = self.stack(frames, recorder) else { return };
                let cut = (cut != 0 && cut != stackglass_wire::cut::WAITS).then_some(Cut(cut));
                let task = self.task_id(task);
                if let Some(so_far) = self.threads.get_mut(&thread.0) {
                    so_far.last = Some(LastStack { stack, task, cut });
                }
                recorder.add_sample(Sample {
                    stack,
                    thread: number,
                    task,
                    clock,
                    state,
                    cut,
                    hits,
                    time,
                    spread: Nanos(0),
                });
            }
            Event::Repeat { thread, at, time, state } => {
                // Time without a stack: the event with the stack was lost.
                let Some(&ThreadSoFar { number, last: Some(LastStack { stack, task, cut }), .. }) =
                    self.threads.get(&thread.0)
                else {
                    return;
                };
                let state = state_of(state);
                let (clock, time) = (Nanos(at), self.since_cleared(thread, at, time, state));
                recorder.add_sample(Sample {
                    stack,
                    thread: number,
                    task,
                    clock,
                    state,
                    cut,
                    hits: 0,
                    time,
                    spread: Nanos(0),
                });
            }
            Event::ThreadStart { thread, tid, at, name } => {
                self.thread_start(thread, tid, at, &name, recorder)
            }
            Event::ThreadRename { thread, name, .. } => {
                if let Some(so_far) = self.threads.get(&thread.0) {
                    recorder.thread_mut(so_far.number).name = name_of(&name);
                }
            }
            Event::ThreadEnd { thread, at, flags, .. } => {
                if let Some(so_far) = self.threads.get_mut(&thread.0)
                    && !so_far.ended
                {
                    so_far.ended = true;
                    recorder.thread_ended();
                    let thread = recorder.thread_mut(so_far.number);
                    thread.blocked_signal = flags & 1 != 0;
                    thread.end = Some(Nanos(at));
                }
            }
            Event::TaskStart { task, line, text, name_len, file_len, .. } => {
                let (name, file) = (usize::from(name_len), usize::from(file_len));
                let text_of = |from: usize, n: usize| -> Arc<str> {
                    let bytes: Vec<u8> = (from..from + n).map(|i| text_byte(text, i)).collect();
                    String::from_utf8_lossy(&bytes).into()
                };
                let (id, process) = (TaskId(self.task_id(task)), self.index);
                // A repeated announcement is ignored: an id is used once.
                if self.tasks.len() < MOST_REMEMBERED && !self.tasks.contains_key(&task) {
                    let (name, file) = (text_of(0, name), text_of(name, file));
                    let new = Task { id, process, name, file, line, waited: Nanos(0) };
                    if let Some(index) = recorder.add_task(new) {
                        self.tasks.insert(task, index);
                    }
                }
            }
            Event::ModuleLoad { module, bias, low, high, text, build_id_len, path_len, .. } => {
                let (id, path) = (build_id_len as usize, path_len as usize);
                let bytes = |from: usize, n: usize| (from..from + n).map(|i| text_byte(text, i));
                let path: Vec<u8> = bytes(id, path.min(LONGEST_PATH)).collect();
                let build_id: Vec<u8> = bytes(0, id.min(LONGEST_BUILD_ID)).collect();
                self.module_load(module, MappedRange { low, high, bias }, &path, &build_id, recorder);
            }
            Event::ModuleUnload { module, .. } => self.module_unload(module),
        }
    }

    /// A module was mapped.
    pub(crate) fn module_load(
        &mut self,
        id: ModuleId,
        mapping: MappedRange,
        path: &[u8],
        build_id: &[u8],
        recorder: &mut Recorder,
    ) {
        let path = Arc::from(String::from_utf8_lossy(&path[..path.len().min(LONGEST_PATH)]));
        let path = match &self.link {
            Some((exe, link)) if *exe == path => Arc::clone(link),
            _ => path,
        };
        let build_id = Arc::from(&build_id[..build_id.len().min(LONGEST_BUILD_ID)]);
        if let Some(index) = recorder.add_module(Module { path, build_id }) {
            self.space.load(id.0, index, mapping);
            self.modules_changed();
        }
    }

    /// A module was unmapped.
    pub(crate) fn module_unload(&mut self, id: ModuleId) {
        self.space.unload(id.0);
        self.modules_changed();
    }

    /// Interns a stack of lookup addresses, leaf first; `None` if the recording is full.
    #[cfg(feature = "launch")]
    pub(crate) fn intern(&mut self, frames: &[u64], recorder: &mut Recorder) -> Option<StackId> {
        self.stack(frames, recorder)
    }

    /// The part of `time`, which ends `at`, that the recording counts. A late observation finds time of before samples were forgotten, and
    /// does not tell whether the thread ran or waited then: all that the thread is given together lies between that moment and `at`. A
    /// wall-time profile counts tasks, of which a thread has many.
    fn since_cleared(&mut self, thread: ThreadId, at: u64, time: u64, state: State) -> Nanos {
        let passed = at.saturating_sub(self.cleared_at.0);
        let is_bounded = self.cleared_at.0 != 0 && state != State::Task;
        let Some(so_far) = self.threads.get_mut(&thread.0).filter(|_| is_bounded) else {
            return Nanos(time.min(passed));
        };
        let time = time.min(passed.saturating_sub(so_far.given));
        so_far.given += time;
        Nanos(time)
    }

    /// The number of a thread that was announced.
    #[cfg(feature = "launch")]
    pub(crate) fn thread(&self, id: ThreadId) -> Option<ThreadNumber> {
        self.threads.get(&id.0).map(|so_far| so_far.number)
    }

    /// Copies counters into the recording.
    pub fn refresh(&self, control: &ControlPage, recorder: &mut Recorder) {
        let process = recorder.process_mut(self.index);
        for which in Counter::ALL {
            let n = control.counters.get(*which);
            if n != 0 {
                process.counters.insert(which.label().to_string(), n);
            }
        }
    }

    /// The image has ended at `at` (CLOCK_MONOTONIC): ends it and its threads.
    pub fn ended(&mut self, at: Nanos, recorder: &mut Recorder) {
        let process = recorder.process_mut(self.index);
        let at = at.max(process.start);
        process.end.get_or_insert(at);
        for so_far in self.threads.values_mut().filter(|thread| !thread.ended) {
            so_far.ended = true;
            recorder.thread_ended();
            recorder.thread_mut(so_far.number).end = Some(at);
        }
    }

    fn thread_start(&mut self, id: ThreadId, tid: u32, at: u64, name: &ThreadName, recorder: &mut Recorder) {
        if let Some(so_far) = self.threads.get(&id.0) {
            // Announced twice, or after its first sample: the later announcement is better.
            let thread = recorder.thread_mut(so_far.number);
            (thread.tid, thread.name) = (tid, name_of(name));
            return;
        }
        let thread = Thread {
            process: self.index,
            tid,
            name: name_of(name),
            start: Nanos(at),
            end: None,
            cpu: Nanos(0),
            blocked_signal: false,
        };
        if let Some(number) = recorder.add_thread(thread) {
            self.threads.insert(id.0, ThreadSoFar { number, ended: false, last: None, given: 0 });
        }
    }

    /// The id of a task of this process in the recording.
    fn task_id(&self, own: u64) -> u64 {
        if own == 0 { 0 } else { TaskId::in_process(self.index, own).0 }
    }

    /// A task has been waiting for so long.
    fn note_wait(&mut self, own: u64, waited: u64, recorder: &mut Recorder) {
        if let Some(index) = self.tasks.get(&own) {
            let task = recorder.task_mut(*index);
            task.waited = task.waited.max(Nanos(waited));
        }
    }

    /// Adds the sample of a task that waits, whose await stack is not known.
    fn add_wait(&mut self, sample: Sample, own: u64, recorder: &mut Recorder) {
        if let Some(stack) = self.waiting(own, recorder) {
            recorder.add_sample(Sample { stack, ..sample });
        }
    }

    /// Adds the sample of a task that waits, with its await stacks, which share its time.
    fn add_await_stacks(&mut self, sample: Sample, stacks: &[AwaitStack], recorder: &mut Recorder) {
        let (mut share, mut given) = (0.0, 0);
        for (place, stack) in stacks.iter().enumerate() {
            // What does not fit into whole nanoseconds is not lost.
            share += stack.share;
            let until = match place + 1 == stacks.len() {
                true => sample.time.0,
                false => ((sample.time.0 as f64 * share) as u64).clamp(given, sample.time.0),
            };
            let Some(stack) = await_stack(stack, recorder) else { return };
            recorder.add_sample(Sample { stack, time: Nanos(until - given), ..sample });
            given = until;
        }
    }

    /// Await stacks come later, as answers to the sampler's questions.
    pub(crate) fn await_answers(&mut self, answers: Arc<WaitAnswers>) {
        self.held.await_answers(answers);
    }

    /// Adds the samples of waiting tasks whose questions are answered.
    pub(crate) fn add_answered(&mut self, recorder: &mut Recorder) {
        while let Some((HeldSample { task, sample, .. }, stacks)) = self.held.next() {
            match stacks {
                Some(stacks) => self.add_await_stacks(sample, &stacks, recorder),
                None => self.add_wait(sample, task, recorder),
            }
        }
    }

    /// The stack of a task that waits, without its await stack.
    fn waiting(&mut self, own: u64, recorder: &mut Recorder) -> Option<StackId> {
        let mut kind = TaskId(u64::MAX >> 2);
        if let Some(index) = self.tasks.get(&own) {
            let task = recorder.task_mut(*index);
            let place = (task.name.clone(), task.file.clone(), task.line);
            kind = *self.kinds.entry(place).or_insert(task.id);
        }
        let module = Module { path: TASKS_MODULE.into(), build_id: [].into() };
        let module = Some(recorder.add_module(module)?);
        let stacks = &mut recorder.recording_mut().stacks;
        let task = Location { module, offset: kind.0 };
        let leaf_first =
            [stacks.intern_location(Location { module, offset: 0 }), stacks.intern_location(task)];
        let stack = stacks.intern(&leaf_first);
        recorder.check_bound();
        Some(stack)
    }

    /// The thread's number. A thread whose announcement was lost is added now.
    fn number(&mut self, id: ThreadId, at: u64, recorder: &mut Recorder) -> Option<ThreadNumber> {
        if !self.threads.contains_key(&id.0) {
            self.thread_start(id, 0, at, &[0; 16], recorder);
        }
        self.threads.get(&id.0).map(|so_far| so_far.number)
    }

    fn stack(&mut self, frames: &[u64], recorder: &mut Recorder) -> Option<StackId> {
        let [high, low] = self.stack_hashers.each_ref().map(|hasher| hasher.hash_one(frames));
        let hash = u128::from(high) << 64 | u128::from(low);
        if let Some(known) = self.stacks.get(&hash) {
            return Some(*known);
        }
        if recorder.is_full() {
            return None;
        }
        let stacks = &mut recorder.recording_mut().stacks;
        self.scratch.clear();
        for address in frames {
            let location = *self
                .locations
                .entry(*address)
                .or_insert_with(|| stacks.intern_location(self.space.locate(*address)));
            self.scratch.push(location);
        }
        let stack = stacks.intern(&self.scratch);
        recorder.check_bound();
        if self.stacks.len() >= MOST_REMEMBERED || self.locations.len() >= MOST_REMEMBERED {
            self.modules_changed();
        }
        self.stacks.insert(hash, stack);
        Some(stack)
    }

    fn modules_changed(&mut self) {
        self.stacks.clear();
        self.locations.clear();
    }
}

/// Interns an await stack; `None` if the recording is full.
fn await_stack(stack: &AwaitStack, recorder: &mut Recorder) -> Option<StackId> {
    let mut locations = Vec::with_capacity(stack.frames.len());
    for frame in &stack.frames {
        locations.push(recorder.add_await_frame(frame)?);
    }
    let stack = recorder.recording_mut().stacks.intern(&locations);
    recorder.check_bound();
    Some(stack)
}

fn process_of(control: &ControlPage) -> Process {
    let mut text = [0u8; TEXT_BYTES];
    let exe = String::from_utf8_lossy(ControlPage::text(&control.exe, &control.exe_len, &mut text)).into();
    let line = ControlPage::text(&control.cmdline, &control.cmdline_len, &mut text);
    let line = line.strip_suffix(&[0]).unwrap_or(line);
    let arguments = match line {
        [] => Vec::new(),
        line => line.split(|b| *b == 0).map(|a| String::from_utf8_lossy(a).into_owned()).collect(),
    };
    Process {
        pid: control.pid.load(Relaxed),
        parent: control.ppid.load(Relaxed),
        exe,
        arguments,
        start: Nanos(control.start_ns.load(Relaxed)),
        end: None,
        forked: control.image.load(Relaxed) & ImageFlags::FORKED != 0,
        counters: Default::default(),
    }
}

/// The link by which a process was started.
#[cfg(feature = "launch")]
fn link_of(process: &Process) -> Option<Arc<str>> {
    let name = stackglass_procfs::Status::read(process.pid)?.name;
    stackglass_procfs::process::started_as(&process.exe, &name)
}

/// The crate's own process is named by its file.
#[cfg(not(feature = "launch"))]
fn link_of(_: &Process) -> Option<Arc<str>> {
    None
}

fn name_of(name: &ThreadName) -> Arc<str> {
    let len = name.iter().position(|b| *b == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..len]).into()
}

fn state_of(state: stackglass_wire::State) -> State {
    match state {
        stackglass_wire::State::Awake => State::Awake,
        stackglass_wire::State::Asleep => State::Asleep,
        stackglass_wire::State::Task => State::Task,
        stackglass_wire::State::Waiting => State::Waiting,
    }
}
