//! The table of all processes and threads of a recording, updated from the kernel's records.

mod lost;
mod samples;
mod sleeping;

use super::files::Files;
use super::phase_shift::Threads;
use super::process::Process;
use super::thread::{Sink, Thread};
use super::time::{Phase, SwitchCost};
use super::walking::Walking;
use crate::recording::recorder::Recorder;
use foldhash::HashMap;
use stackglass_perf::records::{Record, What};
use stackglass_procfs::clock::monotonic;
use stackglass_wire::{Counter, Event, ThreadId, ThreadName};
use std::collections::BTreeMap;

/// Process id in records of a thread that has ended.
const NO_PROCESS: u32 = u32::MAX;

/// What an observed switch costs the program, ns. 5 to 16 µs were measured, most of it for the kernel's change of events.
const SWITCH: u64 = 8_000;
/// Fewer switches than this are no reason for a remark.
const MANY_SWITCHES: u64 = 500;

/// The table.
pub(super) struct ProcessTable {
    processes: HashMap<u32, Process>,
    threads: HashMap<u32, Thread>,
    /// Ids of threads that ran since they were settled.
    moved: Vec<u32>,
    /// Threads that went to sleep, or were asleep, in this drain.
    sleepers: Vec<u32>,
    files: Files,
    walking: Walking,
    cost: SwitchCost,
    /// Time in the kernel is not sampled.
    user_only: bool,
    /// Stacks are being taken.
    sampling: bool,
    follow_children: bool,
    /// The only process, if children are not followed.
    only: Option<u32>,
    /// Number of this drain.
    drain: u64,
    /// The moment up to which this drain reads.
    until: u64,
    /// The recording process.
    own: u32,
    lost: u64,
    /// Times that threads went to sleep.
    switches: u64,
    /// Records were lost in this drain.
    lost_now: bool,
    /// Threads and processes that have begun.
    forks: u64,
    /// A sleeping thread was read in the last drain.
    has_looked: bool,
    /// What one period of the kernel stands for.
    worth: f64,
    counters: BTreeMap<Counter, u64>,
}

impl ProcessTable {
    /// Nothing known yet.
    pub(super) fn new(user_only: bool, sampling: bool, follow_children: bool) -> ProcessTable {
        ProcessTable {
            processes: HashMap::default(),
            threads: HashMap::default(),
            moved: Vec::new(),
            sleepers: Vec::new(),
            files: Files::default(),
            walking: Walking::default(),
            cost: SwitchCost::default(),
            user_only,
            sampling,
            follow_children,
            only: None,
            drain: 0,
            until: 0,
            own: std::process::id(),
            lost: 0,
            switches: 0,
            lost_now: false,
            forks: 0,
            has_looked: false,
            worth: 1.0,
            counters: BTreeMap::new(),
        }
    }

    /// Processes that have not ended.
    pub(super) fn processes(&self) -> usize {
        self.processes.len()
    }

    /// Whether threads went to sleep lately, so that a drain soon can see where.
    pub(super) fn has_new_sleepers(&self) -> bool {
        self.has_looked
    }

    /// The live threads. While sampling is off, none counts as running.
    pub(super) fn live_threads(&self) -> Threads {
        let running = if self.sampling { self.moved.len() } else { 0 };
        Threads { all: self.threads.len(), running, some_slept: self.has_looked, sampled: self.sampling }
    }

    /// Sets what one period of the kernel stands for.
    pub(super) fn set_period_worth(&mut self, of_period: f64) {
        self.worth = of_period;
    }

    /// Threads and processes that have begun so far.
    pub(super) fn forks(&self) -> u64 {
        self.forks
    }

    /// Begins a drain of all records up to this moment.
    pub(super) fn begin_drain(&mut self, until: u64) {
        self.drain += 1;
        self.until = until;
    }

    /// Applies one record.
    pub(super) fn apply(&mut self, record: &Record<'_>, recorder: &mut Recorder) {
        let Record { pid, tid, at, .. } = *record;
        if let What::Lost(n) = record.what {
            self.lost += n;
            self.lost_now = true;
            return;
        }
        if pid == self.own || pid == 0 || pid == NO_PROCESS || tid == 0 || tid == NO_PROCESS {
            return;
        }
        // The first process that execs is the program.
        if !self.follow_children && *self.only.get_or_insert(pid) != pid {
            return;
        }
        match &record.what {
            What::SwitchIn => self.enter(pid, tid, Phase::Running, at),
            What::SwitchOut { preempted } => {
                let phase = if *preempted { Phase::Ready } else { Phase::Asleep };
                self.enter(pid, tid, phase, at);
            }
            What::Sample(sample) => self.sample(pid, tid, at, sample, recorder),
            What::Fork { parent } => self.fork(pid, tid, *parent, at),
            What::Exit => self.exit(tid, at, recorder),
            What::Comm { exec: true, name } => self.exec(pid, tid, at, name_of(name), recorder),
            What::Comm { exec: false, name } => self.rename(pid, tid, at, name_of(name), recorder),
            What::Mmap(map) => {
                let process = self.processes.entry(pid).or_insert_with(|| Process::new(pid, 0, at));
                process.insert(map, &mut self.files);
            }
            What::Lost(_) | What::Other => {}
        }
    }

    fn enter(&mut self, pid: u32, tid: u32, phase: Phase, at: u64) {
        let Some(thread) = self.thread(pid, tid, phase, at) else { return };
        let falls_asleep = phase == Phase::Asleep && thread.time.phase() != phase;
        thread.enter(phase, at);
        let new = !std::mem::replace(&mut thread.moved, true);
        if new {
            self.moved.push(tid);
        }
        self.switches += u64::from(falls_asleep);
        if phase == Phase::Asleep && self.sleepers.last() != Some(&tid) {
            self.sleepers.push(tid);
        }
    }

    /// The thread with this id. A thread without a start record is added as it is.
    fn thread(&mut self, pid: u32, tid: u32, phase: Phase, at: u64) -> Option<&mut Thread> {
        if self.threads.get(&tid).is_none_or(|thread| thread.pid != pid) {
            self.threads.remove(&tid);
            self.begin(pid, tid, phase, at);
        }
        self.threads.get_mut(&tid)
    }

    fn begin(&mut self, pid: u32, tid: u32, phase: Phase, at: u64) {
        let process = self.processes.entry(pid).or_insert_with(|| {
            let mut process = Process::new(pid, 0, at);
            // Its records were lost.
            process.scan(monotonic(), &mut self.files);
            process
        });
        process.threads += 1;
        let number = ThreadId(process.next_number());
        let mut thread = Thread::new(pid, tid, number, at, phase);
        thread.name = process.name;
        self.threads.insert(tid, thread);
    }

    fn fork(&mut self, pid: u32, tid: u32, parent: u32, at: u64) {
        if pid != parent {
            let process = match self.processes.get(&parent) {
                Some(parent) => parent.forked(pid, at),
                None => Process::new(pid, parent, at),
            };
            self.processes.insert(pid, process);
        }
        self.forks += 1;
        self.threads.remove(&tid);
        self.begin(pid, tid, Phase::Ready, at);
    }

    fn exit(&mut self, tid: u32, at: u64, recorder: &mut Recorder) {
        let Some(mut thread) = self.threads.remove(&tid) else { return };
        self.end(&mut thread, at, recorder);
        let Some(process) = self.processes.get_mut(&thread.pid) else { return };
        process.threads = process.threads.saturating_sub(1);
        if process.threads == 0 {
            process.end(at, recorder);
            self.processes.remove(&thread.pid);
        }
    }

    /// Ends a thread.
    fn end(&mut self, thread: &mut Thread, at: u64, recorder: &mut Recorder) {
        let ProcessTable { processes, cost, user_only, sampling, .. } = self;
        let Some(process) = processes.get_mut(&thread.pid) else { return };
        if !*sampling {
            return;
        }
        settle(thread, process, at, true, cost, *user_only, recorder);
        let (thread_id, at, cpu) = (thread.number, thread.time.until(), thread.time.assigned());
        if let Some(image) = process.recorded_image() {
            image.apply(&Event::ThreadEnd { thread: thread_id, at, cpu, flags: 0 }, recorder);
        }
    }

    fn exec(&mut self, pid: u32, tid: u32, at: u64, name: ThreadName, recorder: &mut Recorder) {
        let others: Vec<u32> = self.threads.values().filter(|t| t.pid == pid).map(|t| t.tid).collect();
        let mut carried = None;
        for other in others {
            let Some(mut thread) = self.threads.remove(&other) else { continue };
            let is_recorded = self.processes.get(&pid).is_some_and(Process::is_recorded);
            if other == tid && !is_recorded && !thread.has_hits() {
                // The image before is not in the recording: its time belongs to this one.
                carried = Some(thread);
            } else {
                self.end(&mut thread, at, recorder);
            }
        }
        let start = carried.as_ref().map_or(at, |thread| thread.began);
        let process = match self.processes.get_mut(&pid) {
            Some(before) => {
                before.end(at, recorder);
                before.forget_arguments_since(at, recorder);
                before.exec(start, name)
            }
            None => Process::new(pid, parent_of(pid), at).exec(at, name),
        };
        self.processes.insert(pid, process);
        self.begin(pid, tid, Phase::Running, start);
        if let (Some(new), Some(before)) = (self.threads.get_mut(&tid), carried) {
            new.time = before.time;
        }
        self.enter(pid, tid, Phase::Running, at);
    }

    fn rename(&mut self, pid: u32, tid: u32, at: u64, name: ThreadName, recorder: &mut Recorder) {
        let Some(thread) = self.thread(pid, tid, Phase::Running, at) else { return };
        thread.name = name;
        let (number, announced) = (thread.number, thread.announced);
        let Some(process) = self.processes.get_mut(&pid) else { return };
        if pid == tid {
            process.name = name;
        }
        if announced && let Some(image) = process.recorded_image() {
            image.apply(&Event::ThreadRename { thread: number, at, name }, recorder);
        }
    }

    /// Gives all time so far to stacks, for threads that have moved or for `all`.
    pub(super) fn settle(&mut self, all: bool, recorder: &mut Recorder) {
        let until = self.until;
        let ProcessTable { processes, threads, moved, cost, user_only, sampling, .. } = self;
        if !*sampling {
            return;
        }
        let mut one = |thread: &mut Thread| {
            if let Some(process) = processes.get_mut(&thread.pid)
                && (all || thread.has_moved())
            {
                settle(thread, process, until, false, cost, *user_only, recorder);
            }
        };
        if all {
            threads.values_mut().for_each(&mut one);
        } else {
            moved.iter().filter_map(|tid| threads.get_mut(tid).map(&mut one)).count();
        }
        moved.clear();
        self.refresh(recorder);
    }

    /// Starts or stops taking stacks.
    pub(super) fn set_sampling(&mut self, on: bool, now: u64, recorder: &mut Recorder) {
        if on && !self.sampling {
            self.threads.values_mut().for_each(|thread| thread.begin_anew(now, &self.cost));
        } else if !on {
            self.settle(true, recorder);
        }
        self.sampling = on;
    }

    /// Forgets all samples, here and in the recorder.
    pub(super) fn forget_samples(&mut self, recorder: &mut Recorder) {
        let before = recorder.clear_samples();
        for process in self.processes.values_mut() {
            if let Some(image) = process.recorded_image() {
                image.forget_stacks(&before, recorder);
            }
        }
        let until = self.until;
        let tids: Vec<u32> = self.threads.keys().copied().collect();
        for thread in self.threads.values_mut() {
            thread.begin_anew(until, &self.cost);
        }
        // The stacks of sleeping threads are read again.
        self.sleepers = tids;
    }

    /// Ends the recording. Threads that live on have no end.
    pub(super) fn close(&mut self, recorder: &mut Recorder) {
        let tids: Vec<u32> = self.threads.keys().copied().collect();
        let now = monotonic();
        for tid in tids {
            if let Some(mut thread) = self.threads.remove(&tid)
                && self.sampling
                && let Some(process) = self.processes.get_mut(&thread.pid)
            {
                settle(&mut thread, process, now, true, &self.cost, self.user_only, recorder);
            }
        }
        self.refresh(recorder);
        let (switches, ran) = (self.switches, recorder.totals().awake);
        if switches * SWITCH > ran / 20 && switches > MANY_SWITCHES {
            let ran = ran as f64 * 1e-6;
            recorder.remark(format!(
                "the program's threads went to sleep {switches} times in {ran:.1} ms of CPU time; observing each takes \
                 the kernel some microseconds, so the program may have run several percent longer"
            ));
        }
        if self.lost > 0 {
            let lost = self.lost;
            recorder.remark(format!(
                "{lost} records were lost because this machine was too busy to read them in time; shares are less \
                 certain, but each thread's time is the kernel's own count; a longer --delay helps"
            ));
        }
    }

    fn count(&mut self, what: Counter, n: u64) {
        *self.counters.entry(what).or_default() += n;
    }

    /// Copies counters into the recording.
    fn refresh(&mut self, recorder: &mut Recorder) {
        let how = match self.user_only {
            false => "sampler: perf events on every thread, in the program and in the kernel",
            true => {
                "sampler: perf events on every thread, in the program only: the kernel may not be sampled here"
            }
        };
        recorder.set_counter(how, 1);
        self.counters.iter().for_each(|(what, n)| recorder.set_counter(what.label(), *n));
    }
}

/// Adds a thread to the recording, before its first sample.
fn announce(thread: &mut Thread, image: &mut crate::ProcessImage, recorder: &mut Recorder) {
    if !std::mem::replace(&mut thread.announced, true) {
        let Thread { number, tid, began, name, .. } = *thread;
        image.apply(&Event::ThreadStart { thread: number, tid, at: began, name }, recorder);
    }
}

fn settle(
    thread: &mut Thread,
    process: &mut Process,
    at: u64,
    last: bool,
    cost: &SwitchCost,
    user_only: bool,
    recorder: &mut Recorder,
) {
    // Most forked children exec at once. What they ran before belongs to the next image.
    if process.forked && !process.is_recorded() && !thread.has_hits() && !last {
        return;
    }
    let Some(image) = process.image(recorder) else { return };
    announce(thread, image, recorder);
    let Some(no_stack) = image.intern(&[], recorder) else { return };
    if let Some(number) = image.thread(thread.number) {
        thread.settle(at, last, cost, &mut Sink { recorder, thread: number, no_stack, user_only });
    }
}

fn name_of(text: &[u8]) -> ThreadName {
    let mut name = [0; 16];
    let len = text.len().min(15);
    name[..len].copy_from_slice(&text[..len]);
    name
}

fn parent_of(pid: u32) -> u32 {
    stackglass_procfs::Status::read(pid).map_or(0, |status| status.parent)
}
