//! The thread that takes snapshots of the tasks of a process.
//!
//! A snapshot stops the process for a millisecond or less, and what is needed is read meanwhile. Walking and naming take longer than
//! a recording loop may wait, so they have a thread of their own, which sends what it has seen.

use super::idle::RunTimes;
use super::named::{NamedTasks, Table};
use super::names::Names;
use super::program::WITHOUT_TYPES;
use super::rate::{Cost, SnapshotRate};
use super::snapshot::{SeenStack, TaskSnapshot};
use super::types::{Seen, Types};
use super::view::{Effort, View};
use super::weights::Weights;
use crate::core_image;
use stackglass_attach::frozen::{FreezeError, WorkingSet};
use stackglass_awaits::WrappedTask;
use stackglass_process_view::{ProcessView, Threads};
use stackglass_procfs::process::{self, ImageKey};
use stackglass_procfs::{Status, clock};
use stackglass_profile::{Module, Process};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Time until the first snapshot: a program has to start first.
const FIRST: Duration = Duration::from_millis(15);
/// Time after a snapshot in which threads go back to sleep.
const SETTLE: Duration = Duration::from_millis(1);
/// Of a process that does not run, a snapshot is taken this often all the same.
const IDLE: Duration = Duration::from_secs(1);
/// Time between two attempts to take a snapshot of a process that cannot be stopped.
const RETRY: Duration = Duration::from_millis(500);
/// Reading types takes at most this part of the time: some programs load libraries all the time.
const TYPES_SHARE: u32 = 5;
/// Attempts to meet one moment.
const MOST_ATTEMPTS: u32 = 5;
/// Most snapshots that wait for names.
const MOST_HELD: usize = 512;

/// What the recording wants of the thread.
pub enum Command {
    /// Take snapshots, or take none.
    Sample(bool),
    /// Send all that was seen.
    Flush,
    /// End.
    Stop,
}

/// What the thread sends.
pub enum Message {
    /// The process executes a program.
    Process(Process),
    /// Modules with the next numbers.
    Modules(Vec<Arc<Module>>),
    /// The threads at a moment, by kernel id, with their names.
    Threads {
        /// The moment, ns.
        at: u64,
        /// Kernel ids and names.
        threads: Vec<(u32, String)>,
    },
    /// Stacks at a moment, and the time since the last snapshot. They were taken, or are the same as the last ones.
    Stacks {
        /// The moment, ns.
        at: u64,
        /// The time for which they stand, ns.
        time: u64,
        /// Whether they were taken.
        taken: bool,
        /// All of them.
        stacks: Vec<SeenStack>,
    },
    /// A line for the user.
    Note(String),
    /// The answer to [`Command::Flush`].
    Flushed,
    /// The process has ended.
    Ended,
}

/// A snapshot whose names are not known yet.
struct Held {
    at: u64,
    time: u64,
    taken: bool,
    snapshot: TaskSnapshot,
}

/// The process has ended.
struct Ended;

/// The thread that takes snapshots of the tasks of a process.
pub struct TaskSampler {
    pid: u32,
    sender: Sender<Message>,
    names: Names,
    types: Option<Types>,
    named: Table,
    set: WorkingSet,
    /// When types may be read next.
    types_due: Instant,
    rate: SnapshotRate,
    held: VecDeque<Held>,
    /// The moment of the last snapshot.
    last: u64,
    weights: Weights,
    /// Time since then in which types were read, so that there was no snapshot.
    unseen: Duration,
    /// How much the threads had run before the last snapshot, and since then until this one.
    ran: (Option<RunTimes>, Option<u64>),
    image: Option<ImageKey>,
    sent_modules: usize,
    idle: Idle,
    /// The part of the time in which threads that could run had a CPU.
    cpu_share: f64,
    has_failed: bool,
    /// Whether a note has said that there are no types of tasks.
    has_told_lack: bool,
    /// Whether a snapshot has succeeded, once one was wanted.
    has_sampled: Option<bool>,
}

/// What is known of a process that does not run.
#[derive(Default)]
struct Idle {
    /// The last snapshot, and when it was taken.
    snapshot: Option<(TaskSnapshot, Instant)>,
    /// How much the threads had run after it.
    after: Option<RunTimes>,
    /// It had not run before that snapshot either, nor during it.
    is_quiet: bool,
}

impl TaskSampler {
    /// A thread that takes snapshots of process `pid`, not more often than every `delay`.
    pub fn new(pid: u32, delay: Duration, sender: Sender<Message>) -> TaskSampler {
        let now = clock::monotonic();
        TaskSampler {
            pid,
            sender,
            names: Names::new(),
            types: None,
            named: Table::new(),
            set: WorkingSet::default(),
            types_due: Instant::now(),
            rate: SnapshotRate::new(delay, now ^ u64::from(pid) << 32),
            held: VecDeque::new(),
            last: now,
            weights: Weights::new(),
            unseen: Duration::ZERO,
            ran: (RunTimes::read(pid), None),
            image: None,
            sent_modules: 0,
            idle: Idle::default(),
            cpu_share: 1.0,
            has_failed: false,
            has_told_lack: false,
            has_sampled: None,
        }
    }

    /// Takes snapshots until the command to stop, or the end of the process. `samples`: from the beginning on, not only after a command.
    pub fn run(mut self, commands: &Receiver<Command>, mut samples: bool) {
        let mut next = Instant::now() + FIRST;
        loop {
            let pause = next.saturating_duration_since(Instant::now());
            match commands.recv_timeout(pause) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Command::Sample(on)) => {
                    samples = on;
                    self.last = clock::monotonic();
                    (self.weights, self.unseen) = (Weights::new(), Duration::ZERO);
                    self.ran = (RunTimes::read(self.pid), None);
                    self.idle = Idle::default();
                    next = Instant::now();
                    continue;
                }
                Ok(Command::Flush) => {
                    self.flush();
                    self.send(Message::Flushed);
                    continue;
                }
                Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => return self.end(),
            }
            // Snapshots take longer while the program runs, which must not move the next one.
            let begun = Instant::now();
            let result = match samples {
                true => self.tick(),
                false => self.prepare(),
            };
            let Ok(pause) = result else {
                self.end();
                return self.send(Message::Ended);
            };
            next = begun + pause;
        }
    }

    /// Sends what was not sent yet.
    fn end(&mut self) {
        self.flush();
        if self.has_sampled == Some(false) {
            self.send(Message::Note(
                "the tasks were never seen: their types are read first, which takes a second or more; then a thread that \
                 computes and blocks all signals can prevent it. Record for longer"
                    .to_owned(),
            ));
        }
    }

    fn send(&self, message: Message) {
        // Without a receiver, the next wait for a command ends the thread.
        let _ = self.sender.send(message);
    }

    /// Reads types, so that the first snapshot that is wanted is taken at once. Returns the time until the next attempt.
    fn prepare(&mut self) -> Result<Duration, Ended> {
        let is_known = self.types.is_some() && ImageKey::read(self.pid) == self.image;
        // The first snapshot that is wanted reports a failure.
        let has_failed = !is_known && self.sample(Effort::Search).is_err();
        match process::is_alive(self.pid) {
            true if has_failed => Ok(RETRY),
            true => Ok(IDLE),
            false => Err(Ended),
        }
    }

    /// One snapshot. Returns the time until the next.
    fn tick(&mut self) -> Result<Duration, Ended> {
        self.has_sampled.get_or_insert(false);
        let before = RunTimes::read(self.pid);
        self.add_ran(&before);
        if let (Some(before), Some(after)) = (&before, &self.idle.after) {
            self.cpu_share = before.cpu_share(after);
        }
        let is_idle = before.is_some() && before == self.idle.after;
        if is_idle
            && self.idle.is_quiet
            && let Some((snapshot, taken)) = &self.idle.snapshot
            && taken.elapsed() < IDLE
        {
            let snapshot = snapshot.clone();
            self.hold(clock::monotonic(), false, 0, snapshot);
            return Ok(self.rate.next());
        }
        let has_all = self.types.as_ref().is_some_and(|types| !types.wants_search());
        let mut effort = if has_all { Effort::Least } else { Effort::Search };
        let mut attempts = 1..MOST_ATTEMPTS;
        let snapshot = loop {
            effort = match self.sample(effort) {
                Ok(Err(Some(next))) if attempts.next().is_some() => next,
                Err(FreezeError::Gone { .. }) if process::is_alive(self.pid) && attempts.next().is_some() => {
                    Effort::WorkingSet
                }
                Ok(snapshot) => break Ok(snapshot.ok()),
                Err(error) => break Err(error),
            };
            // Reading types takes seconds.
            self.add_ran(&RunTimes::read(self.pid));
        };
        match snapshot {
            Ok(Some(snapshot)) => {
                self.has_failed = false;
                std::thread::sleep(SETTLE);
                let after = RunTimes::read(self.pid);
                // If it has run since the snapshot began, the snapshot may not be what it is now.
                let is_quiet = is_idle && after == before;
                self.idle = Idle { snapshot: Some((snapshot, Instant::now())), after, is_quiet };
                Ok(self.rate.next())
            }
            Ok(None) => Ok(self.rate.next().max(RETRY)),
            Err(_) if !process::is_alive(self.pid) => Err(Ended),
            // It has executed another program, or ends.
            Err(FreezeError::Gone { .. }) => Ok(FIRST),
            Err(error) => {
                if !std::mem::replace(&mut self.has_failed, true) {
                    self.send(Message::Note(format!("the tasks cannot be read now: {error}")));
                }
                Ok(self.rate.next().max(RETRY))
            }
        }
    }

    /// Takes a snapshot. If that was not one moment, returns with which effort it succeeds, if with any.
    fn sample(&mut self, effort: Effort) -> Result<Result<TaskSnapshot, Option<Effort>>, FreezeError> {
        let before = clock::thread_cpu();
        let cost =
            |pause| Cost { pause, own: Duration::from_nanos(clock::thread_cpu().saturating_sub(before)) };
        // What ends before the stop is in the table before it, what begins before the stop in the table after it.
        let mut named = NamedTasks::new();
        self.named.read_into(self.pid, &mut named);
        let start = Instant::now();
        let view = View::take(self.pid, effort, &self.set).inspect_err(|error| {
            // The other threads stood still meanwhile.
            if matches!(error, FreezeError::BlocksSignals { .. } | FreezeError::NotStopped { .. }) {
                self.rate.count(cost(start.elapsed()));
            }
        })?;
        // On a busy machine, the stop has come many milliseconds after it was wanted.
        let at = clock::monotonic();
        self.named.read_into(self.pid, &mut named);
        let wrapped: Vec<WrappedTask> = named.into_values().collect();
        let is_new = self.is_new_image()?;
        let image = core_image::from_frozen(&view.process);
        let opened = ProcessView::open(&image);
        let known = self.types.take().filter(|types| !is_new && types.are_of(&opened.modules));
        if effort != Effort::Search && known.is_none() {
            return Ok(Err(Some(Effort::Search)));
        }
        let Threads { frames, tids, .. } = opened.threads();
        let seen = Seen { view: &opened, frames: &frames, tids: &tids, wrapped: &wrapped };
        let mut types = match known {
            Some(types) if effort != Effort::Search => types,
            known => return Ok(Err(self.search(&seen, known).then_some(effort.next()))),
        };
        let rate = &mut self.rate;
        let snapshot = TaskSnapshot::take(&seen, &mut types, &mut |end| rate.below(end));
        let is_whole = view.is_whole();
        // Threads that wait for a CPU stop late, and would not have run meanwhile.
        let pause = view.pause().mul_f64(self.cpu_share);
        let running = view.running();
        drop(view);
        self.types = Some(types);
        self.rate.count(cost(pause));
        if !is_whole {
            return Ok(Err(Some(effort.next())));
        }
        let threads = image.threads.iter().map(|thread| (thread.tid, thread.name.clone())).collect();
        self.send(Message::Threads { at, threads });
        self.hold(at, true, running, snapshot.clone());
        Ok(Ok(snapshot))
    }

    /// Reads types, or searches what is due. `false` if that has to wait.
    fn search(&mut self, seen: &Seen<'_>, known: Option<Types>) -> bool {
        let start = Instant::now();
        self.types = match known {
            Some(mut types) => {
                types.search(seen);
                Some(types)
            }
            None if start < self.types_due => return false,
            None => {
                let types = Types::read(seen, &mut self.names);
                if !types.has_tasks() && !std::mem::replace(&mut self.has_told_lack, true) {
                    self.send(Message::Note(WITHOUT_TYPES.to_owned()));
                }
                self.types_due = Instant::now() + start.elapsed() * TYPES_SHARE;
                Some(types)
            }
        };
        self.unseen += start.elapsed();
        true
    }

    /// Whether the process executes another program than at the last snapshot. If so, it is sent.
    ///
    /// # Errors
    /// If the process has no image any more: it ends.
    fn is_new_image(&mut self) -> Result<bool, FreezeError> {
        let image = ImageKey::read(self.pid).ok_or(FreezeError::Gone { pid: self.pid })?;
        if self.image == Some(image) {
            return Ok(false);
        }
        self.image = Some(image);
        (self.named, self.set) = (Table::new(), WorkingSet::default());
        self.send(Message::Process(Process {
            pid: self.pid,
            parent: Status::read(self.pid).map_or(0, |status| status.parent),
            exe: process::executable(self.pid).display().to_string().into(),
            arguments: process::arguments(self.pid),
            start: stackglass_profile::Nanos(self.last),
            ..Process::default()
        }));
        Ok(true)
    }

    /// Adds how long threads have run since this was called last.
    fn add_ran(&mut self, now: &Option<RunTimes>) {
        let since = now.as_ref().zip(self.ran.0.as_ref()).map(|(now, before)| now.ran_since(before));
        // Snapshots that failed are between this one and the last.
        let sum = self.ran.1.map_or(since, |sum| since.map(|since| since.saturating_add(sum)));
        self.ran = (now.clone(), sum);
    }

    /// Adds a snapshot that found some threads running, and sends all whose names are known.
    fn hold(&mut self, at: u64, taken: bool, running: usize, snapshot: TaskSnapshot) {
        let since = at.saturating_sub(self.last);
        self.last = at;
        self.has_sampled = Some(true);
        let unseen = std::mem::take(&mut self.unseen).as_nanos() as u64;
        let time = self.weights.of_snapshot(since, unseen, self.ran.1.take(), running);
        snapshot.want(&mut self.names);
        self.held.push_back(Held { at, time, taken, snapshot });
        if self.names.is_due() || self.held.len() >= MOST_HELD {
            self.names.find();
        }
        while self.held.front().is_some_and(|held| held.snapshot.want(&mut self.names)) {
            self.send_first();
        }
    }

    fn send_first(&mut self) {
        let Some(Held { at, time, taken, snapshot }) = self.held.pop_front() else { return };
        let modules = self.names.modules();
        let new = modules[self.sent_modules..].to_vec();
        self.sent_modules = modules.len();
        if !new.is_empty() {
            self.send(Message::Modules(new));
        }
        self.send(Message::Stacks { at, time, taken, stacks: snapshot.stacks(&self.names) });
    }

    /// Sends all snapshots.
    fn flush(&mut self) {
        let snapshot = self.idle.snapshot.as_ref().map(|(snapshot, _)| snapshot.clone());
        if let Some(snapshot) = snapshot
            && let time @ 1.. = self.weights.rest()
        {
            self.held.push_back(Held { at: self.last, time, taken: false, snapshot });
        }
        if !self.held.is_empty() {
            self.names.find();
        }
        while !self.held.is_empty() {
            self.send_first();
        }
    }
}
