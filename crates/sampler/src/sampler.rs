//! The sampler's thread: its tick, its orders, and what it does besides looking at threads.

use crate::events::Events;
use crate::memory::Memory;
use crate::outlet::Outlet;
use crate::polled::Links;
use crate::walltime::Wall;
use crate::{privilege, run};
use core::sync::atomic::Ordering::*;
use stackglass_host::image::Image as ProcessImage;
use stackglass_host::{Guest, alternate, peek, signal, system};
use stackglass_sampling::TickSchedule;
use stackglass_wire::stream::Writer;
use stackglass_wire::{ControlPage, Counter, ImageFlags, ProcessState, SessionPage, SessionState};

/// The link count of the task folder is looked at this often, ns.
const LINKS_EVERY: u64 = 10_000_000;
/// Names, modules and our handler are looked after this often, ns.
const HOUSE_EVERY: u64 = 100_000_000;
/// All threads are listed at least this often, ns for each thread (and not more often than the house is kept).
/// It is a safeguard: whoever begins changes the link count, or takes the place of one who is found gone.
const SCAN_EVERY_PER_THREAD: u64 = 1_000_000;
/// A launcher whose beat stands still for this long is gone, ns.
const BEAT_LIMIT: u64 = 5_000_000_000;
/// Who wakes so long after the moment it meant to was stopped itself, ns.
const STOPPED: u64 = BEAT_LIMIT / 5;
/// An image that is no older, or has run no longer, than that has only just begun, ns.
const NOT_LONG_AGO: u64 = 50_000_000;
/// How often orders are looked at while nothing is sampled, ns.
const WAITING: u64 = 5_000_000;
/// How long the last letters are waited for, ns.
const LAST_LETTERS: u64 = 3_000_000;

/// Threads that are polled at each tick although all sleep; beyond that, sleepers are polled less often. Reading
/// the clock of a thread that sleeps costs some 0.6 us, nearly all of it cache misses.
const POLLS: usize = 24;
/// Most ticks between two polls of a sleeper, reached when it has slept for as many.
const LONGEST: usize = 64;

/// What a poll found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// The thread is gone.
    Gone,
    /// It sleeps where it slept.
    Unmoved,
    /// Anything else.
    Other,
}

#[derive(Default)]
struct Polled {
    all: u64,
    unmoved: u64,
}

/// From whom the sampler takes orders.
#[derive(Clone, Copy)]
pub enum Orders {
    /// From a launcher, by its session page.
    Session(&'static SessionPage),
    /// From this process: sample until told to stop.
    Own {
        /// Time between two ticks, ns.
        delay: u64,
        /// A wall-time profile.
        walltime: bool,
        /// The kernel is asked to tick threads.
        events: bool,
    },
}

impl Orders {
    fn state(&self) -> SessionState {
        match self {
            Orders::Session(page) => SessionState::from_number(page.state.load(Acquire)),
            Orders::Own { .. } => SessionState::Sampling,
        }
    }

    /// Time between two ticks, ns.
    pub fn delay(&self) -> u64 {
        let delay = match self {
            Orders::Session(page) => page.delay_ns.load(Relaxed),
            Orders::Own { delay, .. } => *delay,
        };
        delay.clamp(20_000, 10_000_000_000)
    }

    /// Whether this is a wall-time profile.
    fn walltime(&self) -> bool {
        match self {
            Orders::Session(page) => page.walltime.load(Relaxed) != 0,
            Orders::Own { walltime, .. } => *walltime,
        }
    }
}

/// The sampler and what it works with.
pub struct Sampler {
    pub(crate) guest: &'static Guest,
    pub(crate) control: &'static ControlPage,
    pub(crate) memory: &'static mut Memory,
    pub(crate) outlet: Outlet,
    pub(crate) delay: u64,
    /// CPU time that this thread itself used from the last tick to this one.
    pub(crate) own_turn: u64,
    own_cpu: u64,
    /// Number of the tick.
    pub(crate) tick: u64,
    /// The program has taken our signal away.
    pub(crate) signal_lost: bool,
    /// The `syscall` files can be read.
    pub(crate) can_look: bool,
    /// Something was seen that asks for a full scan.
    pub(crate) scan_soon: bool,
    /// The scan that finds the threads of before has been put off.
    pub(crate) first_scan_due: bool,
    /// A walk met an address in no module.
    pub(crate) modules_soon: bool,
    orders: Orders,
    start_cpu: Option<u64>,
    /// The sampler's own thread.
    pub(crate) tid: u32,
    links: u64,
    links_at: u64,
    house_at: u64,
    scan_at: u64,
    beat: (u64, u64),
    /// Whose name is read again next.
    pub(crate) next_name: usize,
    pub(crate) links_of_tasks: Links,
    pub(crate) wall: Wall,
    pub(crate) events: Events,
}

impl Sampler {
    /// Prepares on the sampler's own thread. `None` when the stream's pages cannot be had.
    pub fn new(
        guest: &'static Guest,
        image: &ProcessImage,
        memory: &'static mut Memory,
        orders: Orders,
        start_cpu: Option<u64>,
    ) -> Option<Sampler> {
        let control = image.control;
        let tid = system::thread_id();
        control.sampler_tid.store(tid, Release);
        let private = privilege::own_descriptors();
        if image.reserve().is_err() {
            control.state.store(ProcessState::Unable as u32, Release);
            return None;
        }
        let mut granted = privilege::ask_for_punctuality();
        memory.tasks.init(private);
        let can_look = memory.tasks.open(tid, b"syscall").is_some();
        if can_look {
            granted |= ImageFlags::SLEEP_LOOK;
        }
        if privilege::maps_can_be_queried() {
            granted |= ImageFlags::MAP_QUERY;
        }
        let mut probe = [0u8; 8];
        let at = (&raw const probe).addr() as u64;
        if stackglass_unwind::memory::read_own(at, &mut probe) == probe.len() {
            granted |= ImageFlags::VM_READ;
        }
        control.image.fetch_or(granted, AcqRel);
        Some(Sampler {
            guest,
            control,
            memory,
            outlet: Outlet::new(Writer::new(control, image.ring), orders.walltime()),
            delay: orders.delay(),
            own_turn: 0,
            own_cpu: 0,
            tick: 0,
            signal_lost: false,
            can_look,
            scan_soon: true,
            first_scan_due: false,
            modules_soon: true,
            orders,
            start_cpu,
            tid,
            links: 0,
            links_at: 0,
            house_at: 0,
            scan_at: 0,
            beat: (0, 0),
            next_name: 0,
            links_of_tasks: Links::default(),
            wall: Wall::new(orders.walltime()),
            events: Events::default(),
        })
    }

    /// Samples until it is told to stop, or its launcher is gone.
    pub fn run(&mut self) {
        self.control.state.store(ProcessState::Running as u32, Release);
        let mut sampling = false;
        let mut schedule = TickSchedule::new(self.delay, system::now());
        let mut next = system::now();
        loop {
            let call = self.guest.call.load(Acquire);
            if run::asked_to_stop() {
                break;
            }
            system::sleep_until(&self.guest.call, call, next);
            let now = system::now();
            if run::asked_to_stop() || !self.launcher_lives(now, next) {
                break;
            }
            // Also those that came before this thread did.
            self.control.peeks.store(peek::requests(), Release);
            match self.orders.state() {
                // A session that is ready has no samplers.
                SessionState::Stopped | SessionState::Ready => break,
                SessionState::Waiting => {
                    // Whoever comes and goes before sampling begins is nobody's concern.
                    self.start_cpu = None;
                    while self.guest.arrivals.pop().is_some() {}
                    next = now + WAITING;
                    continue;
                }
                SessionState::Sampling if !sampling => {
                    sampling = true;
                    self.begin(now);
                    schedule = TickSchedule::new(self.delay, now);
                    next = schedule.next(now).0;
                    continue;
                }
                SessionState::Sampling => {}
            }
            if self.orders.delay() != self.delay {
                self.delay = self.orders.delay();
                schedule = TickSchedule::new(self.delay, now);
                next = schedule.next(now).0;
                continue;
            }
            if now < next {
                continue;
            }
            let late = now - next;
            let missed;
            (next, missed) = schedule.next(now);
            let counters = &self.control.counters;
            counters.add(Counter::Ticks, 1);
            // Whoever comes later than that was stopped, with all the program: there was nothing to see.
            if late > self.delay / 2 && late < STOPPED {
                counters.add(Counter::LateTicks, 1);
                counters.add(Counter::MissedTicks, missed);
            }
            self.tick += 1 + missed;
            self.take(now);
        }
        if sampling {
            self.finish();
        }
        self.control.sampler_cpu_ns.store(system::own_cpu(), Relaxed);
        self.control.state.store(ProcessState::Stopped as u32, Release);
    }

    /// Finds modules and threads; their time begins now.
    fn begin(&mut self, now: u64) {
        let _ = stackglass_host::UNWINDER.refresh();
        self.memory.told.update(self.control, &mut self.outlet, now);
        let start = self.control.start_ns.load(Relaxed);
        if let Orders::Own { events: true, .. } = self.orders {
            self.ask_for_events();
        }
        // The main thread is number 1, whoever has told of itself before.
        let main = self.control.pid.load(Relaxed);
        let cpu = system::thread_cpu(main);
        // What ran before the first look belongs to nobody, unless the image has only just begun. What its main thread
        // ran since then goes to the first stack that is taken of it: a process of a few milliseconds has no other.
        let before = self.start_cpu.filter(|before| cpu.is_some_and(|cpu| cpu < before + NOT_LONG_AGO));
        let recent = before.is_some() || now.saturating_sub(start) < NOT_LONG_AGO;
        let begin = if recent { start } else { now };
        if let Some(cpu) = cpu {
            self.take_up(main, begin, before.unwrap_or(cpu));
        }
        self.scan(begin, true);
        self.begin_wall(now);
        self.link_tasks();
        self.look_for_handlers();
        (self.links_at, self.house_at) = (now + LINKS_EVERY, now + HOUSE_EVERY);
        self.scan_at = self.house_at;
        self.tick = 1;
    }

    /// One tick.
    fn take(&mut self, now: u64) {
        let own_cpu = system::own_cpu();
        self.own_turn = own_cpu.saturating_sub(self.own_cpu);
        self.own_cpu = own_cpu;
        self.collect();
        self.hear_news(now);
        self.keep_house(now);
        self.link_tasks();
        if self.wall.on {
            self.take_one(now);
            return self.tick_done(now);
        }
        let n = self.memory.roster.len();
        let longest = (n / POLLS).next_power_of_two().clamp(1, LONGEST) as u8;
        let mut polled = Polled::default();
        let mut i = 0;
        while i < self.memory.roster.len() {
            let index = self.memory.roster.nth(i);
            if self.memory.roster.is_due(index, self.tick) {
                match self.poll(index, now, longest) {
                    // Another one has taken its place in the list.
                    Found::Gone => continue,
                    Found::Unmoved => polled.unmoved += 1,
                    Found::Other => {}
                }
                polled.all += 1;
            }
            i += 1;
        }
        self.control.counters.add(Counter::Polls, polled.all);
        self.control.counters.add(Counter::Unmoved, polled.unmoved);
        self.tick_done(now);
    }

    fn tick_done(&self, now: u64) {
        self.control.last_tick_ns.store(now, Release);
        if self.tick.is_multiple_of(16) {
            self.control.sampler_cpu_ns.store(system::own_cpu(), Relaxed);
        }
    }

    /// What is not done at every tick: threads, modules, names, whether our handler is still there.
    fn keep_house(&mut self, now: u64) {
        let mut scan = core::mem::take(&mut self.scan_soon);
        if now >= self.links_at {
            self.links_at = now + LINKS_EVERY;
            let links = self.memory.tasks.links().unwrap_or(0);
            scan |= links != self.links;
            self.links = links;
        }
        let closed = self.guest.modules_changed.swap(0, AcqRel) != 0;
        if closed || core::mem::take(&mut self.modules_soon) {
            self.memory.told.update(self.control, &mut self.outlet, now);
        }
        if now >= self.scan_at {
            self.scan_at = now + HOUSE_EVERY.max(self.memory.roster.len() as u64 * SCAN_EVERY_PER_THREAD);
            scan = true;
        }
        if now >= self.house_at {
            self.house_at = now + HOUSE_EVERY;
            self.memory.told.update(self.control, &mut self.outlet, now);
            self.look_for_handlers();
            if !signal::is_ours() && !self.signal_lost {
                self.signal_lost = true;
                self.control.image.fetch_or(ImageFlags::SIGNAL_LOST, AcqRel);
            }
            self.read_names(now);
        }
        if scan {
            self.scan(now, false);
        }
    }

    /// Under a launcher the preload library's hooks see to handlers on alternate stacks.
    fn look_for_handlers(&self) {
        if let Orders::Own { .. } = self.orders {
            alternate::look_for_handlers();
        }
    }

    /// The last look: letters that are still out, time that is not yet told, the end of every thread.
    fn finish(&mut self) {
        for i in 0..self.memory.roster.len() {
            let index = self.memory.roster.nth(i);
            let thread = self.memory.roster.get(index);
            if thread.ticking.is_on()
                && let Some(cpu) = system::thread_cpu(thread.tid)
            {
                let now = system::now();
                thread.account.update(now, cpu);
                self.take_tick(index, now);
                self.end_ticking(index);
            }
        }
        let until = system::now() + LAST_LETTERS;
        loop {
            self.collect();
            if self.memory.holders.iter().all(|h| *h == 0) || system::now() >= until {
                break;
            }
            system::sleep_until(&self.guest.call, self.guest.call.load(Acquire), system::now() + 200_000);
        }
        let now = system::now();
        self.hear_news(now);
        self.finish_wall();
        while self.memory.roster.len() > 0 {
            let index = self.memory.roster.nth(0);
            let thread = self.memory.roster.get(index);
            if let Some(cpu) = system::thread_cpu(thread.tid) {
                thread.account.update(now, cpu);
            }
            self.dismiss(index);
        }
        self.control.last_tick_ns.store(now, Release);
    }

    /// Whether whoever gives the orders is still there; this thread meant to wake at `planned`.
    fn launcher_lives(&mut self, now: u64, planned: u64) -> bool {
        let Orders::Session(page) = self.orders else { return true };
        let beat = page.beat.load(Relaxed);
        // Who was stopped itself gives the launcher, which was stopped as well, the full time again.
        let stopped = now.saturating_sub(planned) > STOPPED;
        if beat != self.beat.0 || self.beat.1 == 0 || stopped {
            self.beat = (beat, now);
        }
        now.saturating_sub(self.beat.1) < BEAT_LIMIT
    }
}
