//! The thread that looks at a process from outside: ticks, threads and modules that come and go, the end.
//!
//! It tells what it sees in the events of a sampler inside the program, so nobody downstream knows the
//! difference. What is done about one thread is in `look`; how a running thread is made to show its stack,
//! in `ptrace`.

use super::clock::{self, monotonic};
use super::images::Images;
use super::look::{Known, PutBack};
use super::modules::Modules;
use super::perf_events::{Dump, Event as PerfEvent};
use super::sleep_stacks::SleepStacks;
use super::stream::{Outlet, Stream};
use super::{Driver, Orders, Stopped};
use foldhash::HashSet;
use stackglass_procfs::Status;
use stackglass_procfs::process::{self, ImageKey};
use stackglass_procfs::threads::{self, Files};
use stackglass_sampling::{CpuAccount, SchedStat, TickSchedule};
use stackglass_unwind::Scratch;
use stackglass_wire::{Counter, Event, MAX_FRAMES, ThreadId};
use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;

/// Time between two looks for threads that came or went, ns.
const LINKS_EVERY: u64 = 1_000_000;
/// Time between two looks for an exec and for changed modules, ns.
const HOUSE_EVERY: u64 = 50_000_000;
/// The same for modules where code outside of all of them runs (made at run time, mostly), ns.
const MODULES_SOON: u64 = 10_000_000;
/// Threads that may be looked at in each tick before sleepers are looked at less often.
const POLLS: usize = 64;
/// A sleeper is looked at in every so many ticks at least.
const LONGEST: u64 = 32;
/// Ticks without any movement after which a process rests, where it may, and ticks from one look to the next then.
const REST_AFTER: u64 = 100;
const RESTS: u64 = 16;
/// Ticks between two readings of a name.
const NAMES_EVERY: u64 = 8;

/// Bytes of a stack that are fetched at once.
pub(super) const FETCH: usize = 8 << 10;

/// One thread that is followed.
pub(super) struct Thread {
    pub tid: u32,
    pub number: u32,
    pub name: [u8; 16],
    pub files: Files,
    pub account: CpuAccount,
    /// The kernel's account when it was last read.
    pub stat: SchedStat,
    pub known: Known,
    /// Of the frames last told.
    pub hash: u64,
    /// It is traced by us.
    pub seized: bool,
    /// When it was asked to stand, which it has not done yet.
    pub asked: Option<u64>,
    /// Where it slept when it was asked.
    pub asked_asleep: Option<(u64, u64)>,
    /// Its interrupted call was put back when it last stood.
    pub put_back: Option<PutBack>,
    /// It cannot be traced.
    pub refused: bool,
    /// Its samples, and what it had run when they began, ns.
    pub event: Option<(PerfEvent, u64)>,
    /// Perf events do not do for it: they were refused, or its stack is deeper than what they copy.
    pub by_stop: bool,
    /// Tick of the next look.
    pub due: u64,
    /// Ticks between two looks.
    pub interval: u64,
}

/// Looks at one process.
pub(super) struct Sampler {
    pub pid: u32,
    /// The thread by whose files and id its memory is read: not always the main one, which may have ended.
    pub living: u32,
    /// We have started it: somebody here will ask for its exit status.
    pub own_child: bool,
    pub delay: u64,
    pub driver: Driver,
    pub orders: Arc<Orders>,
    pub outlet: Outlet,
    pub threads: Vec<Thread>,
    pub modules: Modules,
    pub images: Images,
    pub sleep_stacks: SleepStacks,
    pub scratch: Box<Scratch>,
    pub frames: Vec<u64>,
    pub stack: Vec<u8>,
    pub dump: Dump,
    /// Code outside of all modules was met.
    pub modules_soon: bool,
    pub tick: u64,
    key: ImageKey,
    /// It has exec'ed: threads may be traced by us already, and may stand.
    has_execed: bool,
    /// Traced threads that are no longer sampled and not yet reaped. An exec of the program waits for that.
    pub ending: Vec<u32>,
    /// Threads that are listed and not followed: they have ended, or serve a profiler inside the program.
    passed_over: HashSet<u32>,
    last_number: u32,
    links: (u64, u64),
    house_at: u64,
    modules_at: u64,
    next_name: usize,
    last_seen: u64,
    /// Tick at which a thread was last seen to have moved.
    pub moved_at: u64,
}

impl Sampler {
    /// Ready to look at `pid`; `None` when it is gone or there is no memory.
    pub fn new(pid: u32, delay: u64, driver: Driver, orders: Arc<Orders>) -> Option<Sampler> {
        let now = monotonic();
        let key = ImageKey::read(pid)?;
        let living = process::living_thread(pid)?;
        let stream = Stream::new(pid, now);
        orders.add(stream);
        let mut sampler = Sampler {
            pid,
            living,
            own_child: Status::read(pid).is_some_and(|status| status.parent == std::process::id()),
            delay,
            driver,
            orders,
            outlet: stream.outlet(),
            threads: Vec::new(),
            modules: Modules::new(living)?,
            images: Images::new(living),
            sleep_stacks: SleepStacks::default(),
            scratch: Box::default(),
            frames: vec![0; MAX_FRAMES],
            stack: vec![0; FETCH],
            dump: Dump::default(),
            modules_soon: false,
            tick: 0,
            key,
            has_execed: false,
            ending: Vec::new(),
            passed_over: HashSet::default(),
            last_number: 0,
            links: (0, 0),
            house_at: now + HOUSE_EVERY,
            modules_at: 0,
            next_name: 0,
            last_seen: now,
            moved_at: 0,
        };
        sampler.look_for_modules(now);
        Some(sampler)
    }

    /// Looks until it is told to stop or there is nothing more to see.
    pub fn run(mut self) {
        let mut schedule = TickSchedule::new(self.delay, monotonic());
        let mut next = 0;
        let why = loop {
            self.hear_until(next);
            if self.orders.stop.load(Acquire) {
                break None;
            }
            let now = monotonic();
            if let Err(why) = self.take(now) {
                break Some(why);
            }
            let missed;
            (next, missed) = schedule.next(now);
            self.tick += 1 + missed;
            if self.orders.rests && self.tick > self.moved_at + REST_AFTER {
                for _ in 1..RESTS {
                    next = schedule.next(next).0;
                }
                self.tick += RESTS - 1;
            }
        };
        self.end_all();
        self.close();
        // Tracees are let go by the kernel when this thread ends, whether they stand or run.
        if let Some(why) = why {
            self.orders.ended(why);
        }
    }

    /// One look at all threads that are due.
    fn take(&mut self, now: u64) -> Result<(), Stopped> {
        self.keep_house(now)?;
        self.last_seen = now;
        self.outlet.tick(now);
        let longest = (self.threads.len() as u64 / POLLS as u64).next_power_of_two().min(LONGEST);
        let mut i = 0;
        while i < self.threads.len() {
            if self.threads[i].due > self.tick || self.look(i, now, longest) {
                i += 1;
            } else {
                self.let_go(i);
            }
        }
        self.hear_at_once();
        if self.tick.is_multiple_of(NAMES_EVERY) {
            self.read_a_name(now);
        }
        Ok(())
    }

    /// What is not done at every tick.
    fn keep_house(&mut self, now: u64) -> Result<(), Stopped> {
        // Code of no module may be that of another program: it has exec'ed.
        let strange = self.modules_soon && now + HOUSE_EVERY >= self.house_at + MODULES_SOON;
        if now >= self.house_at || strange {
            self.house_at = now + HOUSE_EVERY;
            match ImageKey::read(self.pid) {
                None => return Err(Stopped::Gone),
                Some(key) if key != self.key => self.begin_anew(key, now)?,
                Some(_) => self.find_living(),
            }
        }
        let soon = if std::mem::take(&mut self.modules_soon) { MODULES_SOON } else { HOUSE_EVERY };
        if now >= self.modules_at + soon {
            self.look_for_modules(now);
        }
        if now >= self.links.1 || self.threads.is_empty() {
            let links = threads::links(self.pid);
            if links != self.links.0 || self.threads.is_empty() {
                self.look_for_threads(now)?;
            }
            self.links = (links, now + LINKS_EVERY);
        }
        Ok(())
    }

    /// Reads memory by another thread where the one so far has ended.
    fn find_living(&mut self) {
        if let Some(living) = process::living_thread(self.pid)
            && living != self.living
        {
            self.living = living;
            self.modules.read_through(living);
            self.images.read_through(living);
        }
    }

    fn look_for_modules(&mut self, now: u64) {
        let changed = self.modules.refresh(&mut self.images, &mut self.outlet, now);
        if changed {
            self.sleep_stacks.clear();
        }
        // What takes long (very many mappings) is not done often; but where modules come, more of them may.
        let took = monotonic() - now;
        self.modules_at = if changed { now } else { now + took * 20 };
    }

    fn look_for_threads(&mut self, now: u64) -> Result<(), Stopped> {
        let list = threads::list(self.pid);
        self.passed_over.retain(|tid| list.contains(tid));
        let followed: HashSet<u32> = self.threads.iter().map(|thread| thread.tid).collect();
        for &tid in &list {
            if !followed.contains(&tid) && !self.passed_over.contains(&tid) {
                self.take_up(tid, now);
            }
        }
        if self.threads.is_empty() {
            return Err(Stopped::Gone);
        }
        Ok(())
    }

    fn take_up(&mut self, tid: u32, now: u64) {
        let mut files = Files::new(self.pid, tid);
        let Some(stat) = files.stat() else { return };
        let name = files.name().unwrap_or_default();
        let has_ended = tid == self.pid && self.living != tid;
        if has_ended || threads::is_our_name(self.pid, tid, &name) {
            self.passed_over.insert(tid);
            return;
        }
        self.last_number += 1;
        let number = self.last_number;
        let event = Event::ThreadStart { thread: ThreadId(number), tid, at: now, name };
        if !self.outlet.push(&event) {
            return;
        }
        self.outlet.count(Counter::Threads);
        self.threads.push(Thread {
            tid,
            number,
            name,
            files,
            account: CpuAccount::open_with(now, stat),
            stat,
            known: Known::Nothing,
            hash: 0,
            seized: self.has_execed && super::access::is_traced_by_us(tid),
            asked: None,
            asked_asleep: None,
            put_back: None,
            refused: false,
            event: None,
            by_stop: false,
            due: self.tick,
            interval: 1,
        });
    }

    /// A thread that is followed has ended.
    pub fn let_go(&mut self, index: usize) {
        self.end(index);
        let thread = self.threads.swap_remove(index);
        if thread.seized {
            self.ending.push(thread.tid);
        }
        if Status::read(thread.tid).is_some_and(|status| status.process == self.pid) {
            self.passed_over.insert(thread.tid);
        }
        if thread.tid == self.living {
            self.find_living();
        }
        // Its link is gone soon; a full look finds out whether it was the last.
        self.links.0 = 0;
    }

    fn read_a_name(&mut self, now: u64) {
        self.next_name = (self.next_name + 1) % self.threads.len().max(1);
        let Some(thread) = self.threads.get_mut(self.next_name) else { return };
        if let Some(name) = thread.files.name()
            && name != thread.name
        {
            self.rename(name, now);
        }
    }

    fn rename(&mut self, name: [u8; 16], now: u64) {
        // An exec changes the name as well, and is seen later: the stacks so far are of the program before.
        if ImageKey::read(self.pid) != Some(self.key) {
            self.house_at = 0;
            return;
        }
        let Some(thread) = self.threads.get_mut(self.next_name) else { return };
        if self.outlet.push(&Event::ThreadRename { thread: ThreadId(thread.number), at: now, name }) {
            thread.name = name;
        }
    }

    /// The process has exec'ed: a new image, with nothing of the old one.
    fn begin_anew(&mut self, key: ImageKey, now: u64) -> Result<(), Stopped> {
        self.close();
        self.threads.clear();
        self.has_execed = true;
        super::access::check(self.pid, self.driver).map_err(Stopped::from)?;
        // A user who names a process accepts this; a program in a recorded tree must not fail.
        if self.orders.rests
            && let Some(obstacle) = super::leak_check::obstacle(self.pid)
        {
            return Err(Stopped::Locked(obstacle));
        }
        let stream = Stream::new(self.pid, now);
        self.orders.add(stream);
        self.outlet = stream.outlet();
        self.living = process::living_thread(self.pid).ok_or(Stopped::Gone)?;
        self.modules = Modules::new(self.living).ok_or(Stopped::Gone)?;
        self.images = Images::new(self.living);
        self.sleep_stacks.clear();
        self.passed_over.clear();
        (self.key, self.last_number, self.links) = (key, 0, (0, 0));
        self.look_for_modules(now);
        Ok(())
    }

    fn end_all(&mut self) {
        let now = monotonic();
        for index in 0..self.threads.len() {
            let thread = &mut self.threads[index];
            if let Some(stat) = thread.files.stat() {
                thread.account.update_with(now, stat);
                self.last_seen = now;
            }
            self.settle(index);
        }
    }

    fn close(&mut self) {
        self.outlet.close(self.last_seen, clock::thread_cpu());
    }
}
