//! Samples processes that run already (`record --pid`), or a program that was started and is traced by ptrace, with their
//! descendants.
//!
//! Each process is attached to by itself, so static programs and all languages work alike. The kernel does not
//! report new processes here, so the lists of children in `/proc` are read repeatedly. A process that starts and ends
//! between two readings is missed, and so are its surviving children. The recording says how much CPU time is
//! missing.

use super::Attached;
use stackglass_attach::frozen::is_own_copy;
use stackglass_attach::{AttachMode, Driver, Refusal, Stopped, leak_check};
use stackglass_procfs::process::{CpuUsage, children};
use stackglass_procfs::{ImageKey, Status, clock};
use stackglass_profile::Recorder;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

/// Time between two readings of the lists while processes start and end.
const BUSY: Duration = Duration::from_millis(2);
/// Longest time between two readings while no process starts or ends.
const IDLE: Duration = Duration::from_millis(20);
/// The pause between two readings is at least this multiple of the time that a reading takes.
const SHARE: u32 = 50;

/// Whether a child process is this command, started by the shell that is sampled, or a copy of its parent that is read.
fn is_ours(pid: u32) -> bool {
    let is_copy = |usage: CpuUsage| is_own_copy(pid, clock::since_boot(usage.started));
    pid == std::process::id() || CpuUsage::read(pid).is_some_and(is_copy)
}

/// Processes and their descendants.
pub(crate) struct Descendants {
    delay: Duration,
    /// How stacks of running threads are taken; `None`: the better way that is allowed.
    driver: Option<Driver>,
    follow_children: bool,
    sampling: bool,
    /// The processes; `None` for those that cannot be sampled.
    processes: BTreeMap<u32, Option<Attached>>,
    /// Processes that have ended. They may still be listed until their parents read their exit status.
    ended: BTreeSet<u32>,
    pause: Duration,
    read_at: Option<Instant>,
    refused: u64,
    /// Why processes are not sampled, for the user.
    obstacles: BTreeSet<String>,
    /// The processes that the user named, and for those that are no longer sampled, why.
    named: BTreeMap<u32, Option<Stopped>>,
}

impl Descendants {
    /// No process yet.
    pub(crate) fn new(
        delay: Duration,
        driver: Option<Driver>,
        follow_children: bool,
        sampling: bool,
    ) -> Descendants {
        Descendants {
            delay,
            driver,
            follow_children,
            sampling,
            processes: BTreeMap::new(),
            ended: BTreeSet::new(),
            pause: BUSY,
            read_at: None,
            refused: 0,
            obstacles: BTreeSet::new(),
            named: BTreeMap::new(),
        }
    }

    /// Attaches to a process that the user has named. Returns the driver and the reason for it.
    pub(crate) fn attach(&mut self, pid: u32) -> Result<String, Refusal> {
        let attached = Attached::begin(pid, self.delay, self.driver, AttachMode::Long)?;
        let why = attached.choice().why.clone();
        self.processes.insert(pid, Some(attached));
        self.named.insert(pid, None);
        Ok(why)
    }

    /// The processes that the user named, once none of them is sampled any more, with the reasons.
    pub(crate) fn have_ended(&self) -> Option<Vec<(u32, Stopped)>> {
        self.named.iter().map(|(pid, stopped)| Some((*pid, stopped.clone()?))).collect()
    }

    /// The program has been started. It may not have called exec yet.
    pub(crate) fn started(&mut self, pid: u32, program: &Path) {
        self.processes.insert(pid, None);
        match leak_check::obstacle_of(program) {
            Some(obstacle) => drop(self.obstacles.insert(obstacle)),
            None => self.try_attach(pid),
        }
    }

    /// Time to wait before the next [`Descendants::read`]. Bounded, see [`Attached::drain`].
    pub(crate) fn pause(&self) -> Duration {
        self.pause.min(IDLE)
    }

    /// Number of sampled processes.
    pub(crate) fn processes(&self) -> usize {
        self.processes.values().flatten().count()
    }

    /// Starts or stops the sampling.
    pub(crate) fn set_sampling(&mut self, on: bool) {
        self.sampling = on;
        let pids: Vec<u32> = self.processes.keys().copied().collect();
        for pid in pids {
            match self.processes.get_mut(&pid) {
                Some(Some(attached)) if on => attached.resume(),
                Some(Some(attached)) => attached.stop(),
                Some(None) if on => self.try_attach(pid),
                _ => {}
            }
        }
    }

    /// Reads the samples of all processes, and looks for new processes.
    pub(crate) fn read(&mut self, recorder: &mut Recorder) {
        let mut stopped = Vec::new();
        for (pid, attached) in &mut self.processes {
            let Some(attached) = attached else { continue };
            attached.drain(recorder);
            if let Some(why) = attached.stopped() {
                attached.stop();
                attached.drain(recorder);
                stopped.push((*pid, why));
            }
        }
        let changed = !stopped.is_empty();
        for (pid, why) in stopped {
            if let Some(of_named) = self.named.get_mut(&pid) {
                *of_named = Some(why.clone());
            }
            match why {
                Stopped::Gone => {
                    self.processes.remove(&pid);
                    self.ended.insert(pid);
                }
                // Its children may still be sampled.
                Stopped::Locked(why) => {
                    self.obstacles.insert(why);
                    self.processes.insert(pid, None);
                }
            }
        }
        if self.follow_children && self.read_at.is_none_or(|at| at.elapsed() >= self.pause) {
            let (found, cost) = self.find_children();
            let cost = cost * SHARE;
            let idle = if changed || found { BUSY } else { (self.pause * 2).min(IDLE) };
            self.pause = idle.max(cost).min(Duration::from_secs(1));
            self.read_at = Some(Instant::now());
        }
    }

    /// Reads the children of all known processes. Returns whether there are new ones, and the time that the search took. The time
    /// to attach to them does not count: it is spent once for each, and a pause after it would miss the next ones.
    fn find_children(&mut self) -> (bool, Duration) {
        let (before, mut attaching) = (Instant::now(), Duration::ZERO);
        let mut found = false;
        let mut parents: Vec<u32> = self.processes.keys().copied().collect();
        let mut listed = BTreeSet::new();
        while let Some(parent) = parents.pop() {
            for child in children(parent) {
                listed.insert(child);
                if self.ended.contains(&child) || self.processes.contains_key(&child) {
                    continue;
                }
                if Status::read(child).is_none_or(|status| status.has_ended()) || is_ours(child) {
                    self.ended.insert(child);
                    continue;
                }
                found = true;
                self.processes.insert(child, None);
                let begin = Instant::now();
                self.try_attach(child);
                attaching += begin.elapsed();
                parents.push(child);
            }
        }
        // A process id that no parent lists any more may be reused.
        self.ended.retain(|pid| listed.contains(pid));
        // Nothing reports the end of a process that is not sampled.
        self.processes.retain(|pid, attached| attached.is_some() || ImageKey::read(*pid).is_some());
        (found, before.elapsed().saturating_sub(attaching))
    }

    fn try_attach(&mut self, pid: u32) {
        if !self.sampling {
            return;
        }
        if self.driver == Some(Driver::Ptrace)
            && let Some(obstacle) = leak_check::obstacle(pid)
        {
            self.obstacles.insert(obstacle);
            return;
        }
        match Attached::begin_as(pid, self.delay, self.driver, AttachMode::Long, true) {
            Ok(attached) => drop(self.processes.insert(pid, Some(attached))),
            Err(_) => self.refused += 1,
        }
    }

    /// Forgets all samples.
    pub(crate) fn forget_samples(&mut self, recorder: &mut Recorder) {
        let before = recorder.clear_samples();
        for attached in self.processes.values_mut().flatten() {
            attached.forget_stacks(&before, recorder);
        }
    }

    /// Detaches from all processes, calls `stand`, which stops this process until it is continued, and samples again. Otherwise
    /// a thread that is stopped for its stack would stay stopped as well.
    pub(crate) fn interrupt_for(&mut self, recorder: &mut Recorder, stand: impl FnOnce()) {
        for attached in self.processes.values_mut().flatten() {
            attached.stop();
            attached.drain(recorder);
        }
        stand();
        self.processes.values_mut().flatten().for_each(Attached::resume);
    }

    /// Detaches from all processes and reads their last samples. Returns whether all that the user named have ended.
    pub(crate) fn close(mut self, recorder: &mut Recorder) -> bool {
        for attached in self.processes.values_mut().flatten() {
            attached.stop();
            attached.drain(recorder);
        }
        super::remark_calls_cut_short(recorder);
        for obstacle in std::mem::take(&mut self.obstacles) {
            recorder.remark(obstacle);
        }
        if self.refused > 0 {
            let (refused, they) = match self.refused {
                1 => ("1 process".to_owned(), "it has more privileges, or is traced"),
                more => (format!("{more} processes"), "they have more privileges, or are traced"),
            };
            recorder.remark(format!("{refused} could not be sampled: {they}"));
        }
        let has_ended = |(pid, stopped): (&u32, &Option<Stopped>)| {
            let attached = self.processes.get(pid).and_then(Option::as_ref);
            stopped.clone().or_else(|| attached?.stopped()) == Some(Stopped::Gone)
        };
        self.named.iter().all(has_ended)
    }
}
