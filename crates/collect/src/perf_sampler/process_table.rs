//! The table of all processes and threads of a recording, updated from the kernel's records.

mod lives;
mod lost;
mod running;
mod samples;
mod sleeping;

use super::alike::Alike;
use super::events::Source;
use super::files::Files;
use super::on_cpus::OnCpus;
use super::phase_shift::Threads;
use super::process::Process;
use super::system::System;
use super::thread::{Sink, Thread};
use super::time::{Phase, SwitchCost};
use super::walking::Walking;
use foldhash::{HashMap, HashSet};
use stackglass_perf::records::{self, Record, What};
use stackglass_perf::ring::Raw;
use stackglass_profile::Recorder;
use stackglass_wire::{Counter, Event, ThreadId, ThreadName};
use std::collections::BTreeMap;

/// Process id in records of a thread that has ended.
const NO_PROCESS: u32 = u32::MAX;

/// What an observed switch costs the program, ns. 5 to 16 µs were measured, most of it for the kernel's change of events.
const SWITCH: u64 = 8_000;
/// Fewer switches than this are no reason for a remark.
const MANY_SWITCHES: u64 = 500;

/// No clock shows a later moment, ns.
const LATEST: u64 = 1 << 62;

/// Drains over which the time between two is averaged.
const MEAN_OF: f64 = 32.0;

/// Threads that are read in one drain, for one purpose.
const READS: usize = 64;

/// The threads to read in this drain: if there are more than [`READS`], other ones in each.
fn some_of(tids: &[u32], drain: u64) -> impl Iterator<Item = u32> {
    let (later, first) = tids.split_at(drain as usize * READS % tids.len().max(1));
    first.iter().chain(later).take(READS).copied()
}

/// The table.
pub(super) struct ProcessTable {
    system: System,
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
    /// Mean time between two drains while threads go to sleep, ns.
    between_drains: f64,
    /// The recording process.
    own: u32,
    /// The events are of CPUs, and bring the records of all programs.
    of_cpus: bool,
    on_cpus: OnCpus,
    /// Threads that are ending, and still have a CPU.
    ending: Vec<u32>,
    /// Threads that have ended. The kernel may still report them, until their ids are used again.
    ended: HashSet<u32>,
    /// The recorded program before its exec, with events of CPUs.
    starting: Option<u32>,
    /// The program has been forked.
    has_started: bool,
    /// What a sample stands for, with events of CPUs, ns.
    period: Option<u64>,
    /// Short lives, by the program's file.
    alike: BTreeMap<Vec<u8>, Alike>,
    lost_samples: u64,
    lost: u64,
    /// Times that threads went to sleep while they were sampled.
    switches: u64,
    /// Records were lost in this drain.
    lost_now: bool,
    /// Threads and processes that have begun.
    forks: u64,
    /// A sleeping thread was read in the last drain.
    has_read_sleepers: bool,
    /// A stack that is deeper than a sample was seen in this drain.
    has_deep_stacks: bool,
    /// What one period of the kernel stands for.
    worth: f64,
    counters: BTreeMap<Counter, u64>,
}

impl ProcessTable {
    /// Nothing known yet.
    pub(super) fn new(
        system: System,
        user_only: bool,
        sampling: bool,
        follow_children: bool,
        of_cpus: bool,
    ) -> ProcessTable {
        ProcessTable {
            processes: HashMap::default(),
            threads: HashMap::default(),
            moved: Vec::new(),
            sleepers: Vec::new(),
            files: Files::new(system.clone()),
            walking: Walking::default(),
            cost: SwitchCost::default(),
            user_only,
            sampling,
            follow_children,
            only: None,
            drain: 0,
            until: 0,
            between_drains: super::SLEEPS.as_nanos() as f64,
            own: system.own_id(),
            system,
            of_cpus,
            on_cpus: OnCpus::default(),
            ending: Vec::new(),
            ended: HashSet::default(),
            starting: None,
            has_started: false,
            period: None,
            alike: BTreeMap::new(),
            lost_samples: 0,
            lost: 0,
            switches: 0,
            lost_now: false,
            forks: 0,
            has_read_sleepers: false,
            has_deep_stacks: false,
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
        self.has_read_sleepers
    }

    /// Whether stacks are deeper than samples, so that a drain soon can read the rest.
    pub(super) fn has_deep_stacks(&self) -> bool {
        self.has_deep_stacks
    }

    /// The live threads. While sampling is off, none counts as running.
    pub(super) fn live_threads(&self) -> Threads {
        let running = if self.sampling { self.moved.len() } else { 0 };
        Threads {
            all: self.threads.len(),
            running,
            some_slept: self.has_read_sleepers,
            sampled: self.sampling,
        }
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
        self.has_deep_stacks = false;
        if until != u64::MAX && self.until != 0 && self.has_read_sleepers {
            let passed = until.saturating_sub(self.until) as f64;
            self.between_drains += (passed - self.between_drains) / MEAN_OF;
        }
        self.until = until;
    }

    /// Sets what the next sample stands for, ns.
    pub(super) fn set_period(&mut self, period: u64) {
        self.period = Some(period);
    }

    /// Whether a record may be about the program. Events of CPUs bring those of all programs.
    pub(super) fn wants(&mut self, source: Source, raw: Raw<'_>) -> bool {
        if !self.of_cpus {
            return true;
        }
        let pid = records::process_of(raw);
        let ours = pid.is_none_or(|pid| pid == self.own || self.processes.contains_key(&pid));
        let wanted = ours || (!source.is_sample && self.on_cpus.thread_on(source.cpu).is_some());
        if !wanted && !source.is_sample {
            self.on_cpus.saw(source.cpu, source.at);
        }
        wanted
    }

    /// Applies one record.
    pub(super) fn apply(&mut self, source: Source, record: &Record<'_>, recorder: &mut Recorder) {
        let Record { pid, tid, .. } = *record;
        let at = record.at.min(LATEST);
        if let What::Lost(n) = record.what {
            return self.lose(source, at, n);
        }
        if let What::Fork { parent } = record.what
            && self.of_cpus
            && parent == self.own
            && pid != self.own
        {
            // The first is the program. Others stop programs, and are none of its own.
            if !std::mem::replace(&mut self.has_started, true) {
                self.starting = Some(pid);
            }
        } else if pid == self.own {
            return;
        }
        let switch = match record.what {
            What::SwitchIn => Some(Phase::Running),
            What::SwitchOut { preempted: true } => Some(Phase::Ready),
            What::SwitchOut { preempted: false } => Some(Phase::Asleep),
            _ => None,
        };
        if let Some(phase) = switch {
            return self.switch(source.cpu, pid, tid, phase, at, recorder);
        }
        if !source.is_sample {
            self.on_cpus.saw(source.cpu, at);
        }
        if !has_id(pid, tid) {
            return;
        }
        // The first process that execs is the program.
        if !self.follow_children && *self.only.get_or_insert(pid) != pid {
            return;
        }
        let is_started = |parent| parent == self.own && (!self.of_cpus || self.starting == Some(pid));
        let is_new =
            matches!(record.what, What::Fork { parent } if self.is_ours(parent) || is_started(parent));
        // A thread that calls exec gets the id of the first one, which has ended by then.
        if let What::Comm { exec: true, .. } = record.what {
            self.ended.remove(&tid);
        }
        if !is_new && (!self.is_ours(pid) || self.ended.contains(&tid)) {
            return;
        }
        match &record.what {
            What::Sample(sample) => self.sample(source.cpu, pid, tid, at, sample, recorder),
            What::Fork { parent } => self.fork(pid, tid, *parent, at),
            What::Exit if self.of_cpus && self.on_cpus.cpu_of(tid).is_some() => self.ending.push(tid),
            What::Exit => self.exit(tid, at, recorder),
            What::Comm { exec: true, name } => {
                self.exec((pid, tid), Some(source.cpu), Phase::Running, at, name_of(name), recorder);
                self.runs_on(source.cpu, tid, at);
            }
            What::Comm { exec: false, name } => self.rename(pid, tid, at, name_of(name), recorder),
            What::Mmap(map) => {
                let process = self.processes.entry(pid).or_insert_with(|| Process::new(pid, 0, at));
                process.insert(map, &mut self.files);
            }
            What::Lost(_) | What::Other | What::SwitchIn | What::SwitchOut { .. } => {}
        }
    }

    /// Whether a process belongs to the program. Inherited events have no others.
    fn is_ours(&self, pid: u32) -> bool {
        !self.of_cpus || self.processes.contains_key(&pid)
    }

    fn enter(&mut self, pid: u32, tid: u32, phase: Phase, at: u64) {
        let Some(thread) = self.thread(pid, tid, phase, at) else { return };
        let falls_asleep = phase == Phase::Asleep && thread.time.phase() != phase;
        thread.enter(phase, at);
        let new = !std::mem::replace(&mut thread.moved, true);
        if new {
            self.moved.push(tid);
        }
        self.switches += u64::from(falls_asleep && self.sampling);
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
            process.scan(&self.system, &mut self.files);
            process
        });
        process.threads += 1;
        let number = ThreadId(process.next_number());
        let mut thread = Thread::new((pid, tid), number, at, phase, self.of_cpus);
        thread.name = process.name;
        self.threads.insert(tid, thread);
    }

    /// Processes and threads, and what settling needs besides them.
    fn settled(&mut self) -> Settled<'_> {
        let settling = Settling {
            system: &self.system,
            cost: &self.cost,
            user_only: self.user_only,
            lost: self.lost_samples > 0,
            between_drains: self.between_drains as u64,
            alike: self.of_cpus.then_some(&mut self.alike),
        };
        Settled {
            processes: &mut self.processes,
            threads: &mut self.threads,
            moved: &mut self.moved,
            settling,
        }
    }

    /// Gives all time so far to stacks, for threads that have moved or for `all`.
    pub(super) fn settle(&mut self, all: bool, recorder: &mut Recorder) {
        let until = self.until;
        if !self.sampling {
            return;
        }
        self.check_accounts(until);
        let Settled { processes, threads, moved, mut settling } = self.settled();
        let mut one = |thread: &mut Thread| {
            if let Some(process) = processes.get_mut(&thread.pid)
                && (all || thread.has_moved())
            {
                settling.settle(thread, process, until, false, recorder);
            }
        };
        // In the order of their ids, so that the same records give the same recording.
        let mut settled = std::mem::take(moved);
        if all {
            settled.clear();
            settled.extend(threads.keys().copied());
            settled.sort_unstable();
        }
        settled.iter().filter_map(|tid| threads.get_mut(tid).map(&mut one)).count();
        settled.clear();
        *moved = settled;
        self.alike.values_mut().for_each(|alike| alike.settle(false, recorder));
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
        self.alike.clear();
        for process in self.processes.values_mut() {
            if let Some(translator) = process.existing_translator() {
                translator.forget_stacks(&before, recorder);
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
        let now = self.system.now();
        for tid in std::mem::take(&mut self.ending) {
            self.exit(tid, self.until.min(now), recorder);
        }
        self.end_unseen(now, recorder);
        if self.sampling {
            self.check_accounts(now);
        }
        let sampling = self.sampling;
        let Settled { processes, threads, mut settling, .. } = self.settled();
        let mut threads: Vec<Thread> = std::mem::take(threads).into_values().collect();
        threads.sort_unstable_by_key(|thread| thread.tid);
        for mut thread in threads.into_iter().filter(|_| sampling) {
            if let Some(process) = processes.get_mut(&thread.pid) {
                settling.settle(&mut thread, process, now, true, recorder);
            }
        }
        self.alike.values_mut().for_each(|alike| alike.settle(true, recorder));
        self.refresh(recorder);
        let (switches, ran) = (self.switches, recorder.totals().awake);
        if switches * SWITCH > ran / 20 && switches > MANY_SWITCHES {
            let ran = ran as f64 * 1e-6;
            recorder.remark(format!(
                "the program's threads went to sleep {switches} times in {ran:.1} ms of CPU time; observing each takes \
                 the kernel some microseconds, so the program may have run several percent longer"
            ));
        }
        if self.lost_samples > 0 {
            let lost = self.lost_samples;
            recorder.remark(format!(
                "{lost} stacks were lost because this machine was too busy to read them in time: shares are less \
                 certain, CPU times are not affected; a longer --delay helps"
            ));
        }
        if self.lost > 0 {
            let lost = self.lost;
            recorder.remark(format!(
                "{lost} records of what threads did were lost because this machine was too busy to read them in time: \
                 CPU time that no thread can be shown to have used is [unaccounted]"
            ));
        }
    }

    fn count(&mut self, what: Counter, n: u64) {
        *self.counters.entry(what).or_default() += n;
    }

    /// Copies counters into the recording.
    fn refresh(&mut self, recorder: &mut Recorder) {
        let how = match self.user_only {
            false if self.of_cpus => "sampler: perf events on every CPU, in the program and in the kernel",
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
fn announce(thread: &mut Thread, translator: &mut crate::EventTranslator, recorder: &mut Recorder) {
    if !std::mem::replace(&mut thread.announced, true) {
        let Thread { number, tid, began, name, .. } = *thread;
        translator.apply(&Event::ThreadStart { thread: number, tid, at: began, name }, recorder);
    }
}

/// The parts of the table that settling changes.
struct Settled<'a> {
    processes: &'a mut HashMap<u32, Process>,
    threads: &'a mut HashMap<u32, Thread>,
    moved: &'a mut Vec<u32>,
    settling: Settling<'a>,
}

/// What settling a thread needs besides the thread.
struct Settling<'a> {
    system: &'a System,
    cost: &'a SwitchCost,
    user_only: bool,
    lost: bool,
    between_drains: u64,
    /// Short lives, if each moment of CPU time has the same chance of a stack.
    alike: Option<&'a mut BTreeMap<Vec<u8>, Alike>>,
}

impl Settling<'_> {
    fn settle(
        &mut self,
        thread: &mut Thread,
        process: &mut Process,
        at: u64,
        last: bool,
        recorder: &mut Recorder,
    ) {
        // Most forked children exec at once. What they ran before belongs to the next image.
        if process.forked && !process.is_recorded() && !thread.has_hits() && !last {
            return;
        }
        let Some(translator) = process.translator(self.system, recorder) else { return };
        announce(thread, translator, recorder);
        let Some(no_stack) = translator.intern(&[], recorder) else { return };
        let Some(number) = translator.thread(thread.number) else { return };
        let alike =
            self.alike.as_mut().filter(|_| last).map(|alike| alike.entry(process.kind()).or_default());
        let Settling { user_only, lost, between_drains, .. } = *self;
        let mut sink = Sink { recorder, thread: number, no_stack, user_only, alike, lost, between_drains };
        thread.settle(at, last, self.cost, &mut sink);
    }
}

/// Whether a record is about a thread that still has an id.
fn has_id(pid: u32, tid: u32) -> bool {
    ![0, NO_PROCESS].contains(&pid) && ![0, NO_PROCESS].contains(&tid)
}

fn name_of(text: &[u8]) -> ThreadName {
    let mut name = [0; 16];
    let len = text.len().min(15);
    name[..len].copy_from_slice(&text[..len]);
    name
}
