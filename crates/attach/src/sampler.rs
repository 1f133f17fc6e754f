//! The loop of the thread that samples a process from outside: ticks, execs, modules, and the end.
//!
//! It writes the events that a sampler inside the program would write, so that every reader treats both alike.

use super::clock::{self, monotonic};
use super::perf_events::Dump;
use super::poll::poll;
use super::sampled_process::SampledProcess;
use super::stack_reader::StackReader;
use super::stream::Stream;
use super::{Driver, Orders, Stopped, access, detach_for_copy, leak_check, trace_reports, tracking};
use foldhash::HashSet;
use stackglass_procfs::process::{self, ImageKey};
use stackglass_procfs::{Status, threads};
use stackglass_sampling::{PollInterval, Random, TickSchedule};
use stackglass_wire::{Event, ThreadName};
use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;

/// Time between two readings of the task folder's link count, ns.
const LINKS_EVERY: u64 = 1_000_000;
/// Time between two checks for an exec and for changed modules, ns.
const CHECKS_EVERY: u64 = 50_000_000;
/// The same for modules if code outside of all of them runs, which is mostly code made at run time.
const MODULES_SOON: u64 = 10_000_000;
/// Time between two looks whether the process is to be copied, ns.
const COPIES_EVERY: u64 = 10_000_000;
/// Threads that may be looked at in each tick before sleeping threads are looked at less often.
const POLLS: usize = 64;
/// Most ticks between two observations of a sleeping thread.
const LONGEST: u8 = 32;
/// Ticks without any movement after which a process counts as idle.
const IDLE_AFTER: u64 = 100;
/// Ticks from one observation to the next while a process is idle, if it may be sampled less often then.
const IDLE_INTERVAL: u64 = 16;
/// Ticks between two readings of a name.
const NAMES_EVERY: u64 = 8;
/// After a check for modules, the pause is this multiple of the time that the check took.
const MODULES_SHARE: u64 = 20;

/// Samples one process.
pub(crate) struct Sampler {
    process: SampledProcess,
    image: ImageKey,
    links: u64,
    links_at: u64,
    checks_at: u64,
    copies_at: u64,
    modules_at: u64,
    next_name: usize,
    last_seen: u64,
}

impl Sampler {
    /// Ready to sample `pid`; `None` if it is gone or there is no memory.
    pub(crate) fn new(pid: u32, delay: u64, driver: Driver, orders: Arc<Orders>) -> Option<Sampler> {
        let now = monotonic();
        let image = ImageKey::read(pid)?;
        let stacks = StackReader::new(process::living_thread(pid)?)?;
        let stream = Stream::new(pid, now);
        orders.add(stream);
        let process = SampledProcess {
            pid,
            is_own_child: Status::read(pid).is_some_and(|status| status.parent == std::process::id()),
            delay,
            driver,
            orders,
            events: stream.events(),
            threads: Vec::new(),
            stacks,
            dump: Dump::default(),
            random: Random::new(now),
            tick: 0,
            moved_at: 0,
            has_execed: false,
            ending: Vec::new(),
            untracked: HashSet::default(),
            last_number: 0,
            must_list: true,
        };
        let mut sampler = Sampler {
            process,
            image,
            links: 0,
            links_at: 0,
            checks_at: now + CHECKS_EVERY,
            copies_at: now,
            modules_at: 0,
            next_name: 0,
            last_seen: now,
        };
        sampler.update_modules(now);
        Some(sampler)
    }

    /// Samples until a stop is requested, or the process has ended or cannot be sampled any more.
    pub(crate) fn run(mut self) {
        let mut schedule = TickSchedule::new(self.process.delay, monotonic());
        let mut next = 0;
        let stopped = loop {
            trace_reports::receive_until(&mut self.process, next);
            if self.process.orders.stop.load(Acquire) {
                break None;
            }
            let now = monotonic();
            if now >= self.copies_at {
                self.copies_at = now + COPIES_EVERY;
                if let Err(stopped) = detach_for_copy::if_wanted(&mut self.process) {
                    break Some(stopped);
                }
            }
            if let Err(stopped) = self.tick(now) {
                break Some(stopped);
            }
            let missed;
            (next, missed) = schedule.next(now);
            self.process.tick += 1 + missed;
            if self.process.orders.slow_when_idle && self.process.tick > self.process.moved_at + IDLE_AFTER {
                for _ in 1..IDLE_INTERVAL {
                    next = schedule.next(next).0;
                }
                self.process.tick += IDLE_INTERVAL - 1;
            }
        };
        self.finish_all();
        self.close();
        // The kernel releases the tracees when this thread ends, stopped or not.
        if let Some(stopped) = stopped {
            self.process.orders.ended(stopped);
        }
    }

    /// One observation of all threads that are due.
    fn tick(&mut self, now: u64) -> Result<(), Stopped> {
        self.check(now)?;
        self.last_seen = now;
        let process = &mut self.process;
        process.events.tick(now);
        let longest = PollInterval::longest(process.threads.len(), POLLS, LONGEST);
        let mut i = 0;
        while i < process.threads.len() {
            if process.threads[i].due > process.tick || poll(process, i, now, longest) {
                i += 1;
            } else {
                tracking::untrack(process, i);
            }
        }
        trace_reports::receive_at_once(process);
        if process.tick.is_multiple_of(NAMES_EVERY) {
            self.read_name(now);
        }
        Ok(())
    }

    /// Makes the checks that are due: for an exec, for modules, and for threads.
    fn check(&mut self, now: u64) -> Result<(), Stopped> {
        // Code of no module may be that of another program, after an exec.
        let is_unknown =
            self.process.stacks.met_unknown_code() && now + CHECKS_EVERY >= self.checks_at + MODULES_SOON;
        if now >= self.checks_at || is_unknown {
            self.checks_at = now + CHECKS_EVERY;
            match ImageKey::read(self.process.pid) {
                None => return Err(Stopped::Gone),
                Some(image) if image != self.image => self.begin_image(image, now)?,
                Some(_) => tracking::find_living(&mut self.process),
            }
        }
        let soon = if self.process.stacks.take_unknown_code() { MODULES_SOON } else { CHECKS_EVERY };
        if now >= self.modules_at + soon {
            self.update_modules(now);
        }
        if now >= self.links_at || self.process.threads.is_empty() {
            self.links_at = now + LINKS_EVERY;
            let links = threads::links(self.process.pid);
            let must_list = std::mem::take(&mut self.process.must_list) || links != self.links;
            self.links = links;
            if must_list || self.process.threads.is_empty() {
                tracking::list(&mut self.process, now)?;
            }
        }
        Ok(())
    }

    fn update_modules(&mut self, now: u64) {
        let process = &mut self.process;
        let has_changed = process.stacks.update_modules(&mut process.events, now);
        // A check that takes long, because of very many mappings, is not made often. But where modules come, more may come.
        let took = monotonic() - now;
        self.modules_at = if has_changed { now } else { now + took * MODULES_SHARE };
    }

    fn read_name(&mut self, now: u64) {
        self.next_name = (self.next_name + 1) % self.process.threads.len().max(1);
        let Some(thread) = self.process.threads.get(self.next_name) else { return };
        if let Some(name) = thread.files.name()
            && name != thread.name
        {
            self.rename(name, now);
        }
    }

    fn rename(&mut self, name: ThreadName, now: u64) {
        // An exec changes the name as well, and is found later: the stacks so far are of the program before.
        if ImageKey::read(self.process.pid) != Some(self.image) {
            self.checks_at = 0;
            return;
        }
        let Some(thread) = self.process.threads.get_mut(self.next_name) else { return };
        if self.process.events.push(&Event::ThreadRename { thread: thread.number, at: now, name }) {
            thread.name = name;
        }
    }

    /// The process has exec'ed: a new image, with nothing of the old one.
    fn begin_image(&mut self, image: ImageKey, now: u64) -> Result<(), Stopped> {
        self.close();
        let process = &mut self.process;
        process.threads.clear();
        process.has_execed = true;
        let seizing = &process.orders.seizing;
        access::check_while_tracing(process.pid, process.driver, seizing).map_err(Stopped::from)?;
        // A user who names a process accepts this; a program in a recorded tree must not fail.
        if process.orders.slow_when_idle
            && let Some(obstacle) = leak_check::obstacle(process.pid)
        {
            return Err(Stopped::Locked(obstacle));
        }
        let stream = Stream::new(process.pid, now);
        process.orders.add(stream);
        process.events = stream.events();
        let living = process::living_thread(process.pid).ok_or(Stopped::Gone)?;
        process.stacks = StackReader::new(living).ok_or(Stopped::Gone)?;
        process.untracked.clear();
        (process.last_number, process.must_list) = (0, true);
        (self.image, self.links_at) = (image, 0);
        self.update_modules(now);
        Ok(())
    }

    fn finish_all(&mut self) {
        let now = monotonic();
        for index in 0..self.process.threads.len() {
            match self.process.threads[index].files.stat() {
                Some(stat) => {
                    self.process.finish(index, now, stat);
                    self.last_seen = now;
                }
                None => self.process.finish_ended(index),
            }
        }
    }

    fn close(&self) {
        self.process.events.close(self.last_seen, clock::thread_cpu());
    }
}
