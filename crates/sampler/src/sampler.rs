//! The loop of the sampler's thread: waits for the next tick, follows its orders, and looks at each thread that is due.

use crate::memory::Memory;
use crate::orders::Orders;
use crate::parts::{Parts, Shared};
use crate::periodic_checks::{self, PeriodicChecks};
use crate::poll::{Polled, poll};
use crate::signals::{receive, timers};
use crate::tasks::walltime;
use crate::threads::discovery;
use crate::threads::folder::ThreadFolder;
use crate::threads::own;
use crate::{off_cpu, privilege, run_state};
use core::sync::atomic::Ordering::*;
use stackglass_host::stream_memory::StreamMemory;
use stackglass_host::{Guest, peek, system};
use stackglass_sampling::PollInterval;
use stackglass_unwind::memory::read_own;
use stackglass_wire::{Counter, ImageFlags, ProcessState, SessionState};

/// A launcher whose heartbeat stands still for this long is gone, ns.
const HEARTBEAT_LIMIT: u64 = 5_000_000_000;
/// If the sampler wakes so long after the planned moment, ns, it was stopped itself.
const STOPPED: u64 = HEARTBEAT_LIMIT / 5;
/// A process image that is not older, or has not run longer, has only just begun, ns.
const JUST_BEGUN: u64 = 50_000_000;
/// How often orders are read while nothing is sampled, ns.
const WAITING: u64 = 5_000_000;
/// How long own threads that are being created are waited for at the beginning, ns.
const HELPERS_DUE: u64 = 5_000_000;
/// How long the last samples are waited for, ns.
const LAST_SAMPLES: u64 = 3_000_000;

/// Threads that are polled at each tick although all sleep. If there are more, sleepers are polled less often. Reading
/// the clock of a sleeping thread costs some 0.6 µs, nearly all of it cache misses.
const POLLS: usize = 24;
/// Most ticks between two polls of a sleeper, reached when it has slept for as many.
const LONGEST: u8 = 64;

/// The sampler.
pub(crate) struct Sampler {
    parts: Parts,
    checks: PeriodicChecks,
    orders: Orders,
    launcher: Launcher,
    /// CPU time that the main thread had used when the image began, if that is known.
    start_cpu: Option<u64>,
}

/// Whether the launcher lives.
#[derive(Default)]
struct Launcher {
    heartbeat: u64,
    /// When the heartbeat last changed, 0 before the first reading.
    changed_at: u64,
}

impl Launcher {
    /// Whether the launcher lives at `now`. The sampler meant to wake at `planned`.
    fn is_alive(&mut self, orders: &Orders, now: u64, planned: u64) -> bool {
        let Some(heartbeat) = orders.heartbeat() else { return true };
        // A sampler that was stopped gives the launcher, which was stopped as well, the full time again.
        let was_stopped = now.saturating_sub(planned) > STOPPED;
        if heartbeat != self.heartbeat || self.changed_at == 0 || was_stopped {
            (self.heartbeat, self.changed_at) = (heartbeat, now);
        }
        now.saturating_sub(self.changed_at) < HEARTBEAT_LIMIT
    }
}

impl Sampler {
    /// Prepares on the sampler's own thread. `None` if the stream's pages cannot be reserved.
    pub(crate) fn new(
        guest: &'static Guest,
        stream: &StreamMemory,
        memory: &'static mut Memory,
        orders: Orders,
        start_cpu: Option<u64>,
    ) -> Option<Sampler> {
        let control = stream.control;
        let shared = Shared { guest, control, tid: system::thread_id() };
        control.sampler_tid.store(shared.tid, Release);
        let folder = ThreadFolder::open_if(privilege::own_descriptors());
        if stream.reserve().is_err() {
            control.state.store(ProcessState::Unable as u32, Release);
            return None;
        }
        let mut granted = privilege::ask_for_punctuality();
        let parts = Parts::new(shared, stream, memory, folder, &orders);
        if parts.can_read_state {
            granted |= ImageFlags::SLEEP_LOOK;
        }
        granted |= match parts.timers.are_allowed() {
            true => ImageFlags::TIMERS,
            // A wall-time profile has none in any case.
            false if parts.walltime.is_on => 0,
            false => ImageFlags::NO_TIMERS,
        };
        if privilege::maps_can_be_queried() {
            granted |= ImageFlags::MAP_QUERY;
        }
        let mut probe = [0u8; 8];
        let at = (&raw const probe).addr() as u64;
        if read_own(at, &mut probe) == probe.len() {
            granted |= ImageFlags::VM_READ;
        }
        control.image.fetch_or(granted, AcqRel);
        let (checks, launcher) = (PeriodicChecks::default(), Launcher::default());
        Some(Sampler { parts, checks, orders, launcher, start_cpu })
    }

    /// Samples until a stop is requested, or the launcher is gone.
    pub(crate) fn run(&mut self) {
        let Shared { guest, control, .. } = self.parts.shared;
        control.state.store(ProcessState::Running as u32, Release);
        let mut is_sampling = false;
        loop {
            let wakeups = guest.wakeups.load(Acquire);
            if run_state::is_stopping() {
                break;
            }
            let planned = self.parts.schedule.next;
            system::sleep_until(&guest.wakeups, wakeups, planned);
            let now = system::now();
            if run_state::is_stopping() || !self.launcher.is_alive(&self.orders, now, planned) {
                break;
            }
            // Also the requests that came before this thread started.
            control.peeks.store(peek::requests(), Release);
            match self.orders.state() {
                // A session that is ready has no samplers.
                SessionState::Stopped | SessionState::Ready => break,
                SessionState::Waiting => self.wait(now),
                SessionState::Sampling if !is_sampling => {
                    is_sampling = true;
                    self.begin(now);
                    self.parts.schedule.restart(self.parts.schedule.delay, now);
                }
                SessionState::Sampling if self.orders.delay() != self.parts.schedule.delay => {
                    self.parts.schedule.restart(self.orders.delay(), now);
                }
                SessionState::Sampling if now < planned => {}
                SessionState::Sampling => self.tick(now),
            }
        }
        if is_sampling {
            self.finish();
        }
        control.sampler_cpu_ns.store(system::own_cpu(), Relaxed);
        if run_state::expects_own_rights() {
            control.image.fetch_or(ImageFlags::OWN_RIGHTS, AcqRel);
        }
        control.state.store(ProcessState::Stopped as u32, Release);
    }

    /// Sampling has not begun: threads that start and end now are no part of the recording.
    fn wait(&mut self, now: u64) {
        self.start_cpu = None;
        while self.parts.shared.guest.thread_events.pop().is_some() {}
        self.parts.schedule.next = now + WAITING;
    }

    /// Finds modules and threads. Their time begins now.
    fn begin(&mut self, now: u64) {
        let parts = &mut self.parts;
        let _ = stackglass_host::UNWINDER.refresh();
        periodic_checks::update_modules(parts, now);
        own::wait_for_helpers(now + HELPERS_DUE);
        let start = parts.shared.control.start_ns.load(Relaxed);
        // The main thread is number 1, even if others have reported before.
        let main = parts.shared.control.pid.load(Relaxed);
        let cpu = system::thread_cpu(main);
        // CPU time before the first observation is no part of the recording, unless the image has only just begun. Then the main
        // thread's time goes to its first stack: a process of a few milliseconds has no other.
        let before = self.start_cpu.filter(|before| cpu.is_some_and(|cpu| cpu < before + JUST_BEGUN));
        let is_recent = before.is_some() || now.saturating_sub(start) < JUST_BEGUN;
        let begin = if is_recent { start } else { now };
        if let Some(cpu) = cpu {
            discovery::track(parts, main, begin, before.unwrap_or(cpu));
        }
        discovery::scan(parts, begin, true);
        walltime::begin(parts, now);
        parts.task_names.link(parts.shared.guest, parts.threads);
        self.checks.begin(&self.orders, now);
        parts.schedule.tick = 1;
        if parts.timers.are_allowed() {
            timers::prepare_mailboxes(parts);
        }
    }

    /// One tick.
    fn tick(&mut self, now: u64) {
        let parts = &mut self.parts;
        let counters = &parts.shared.control.counters;
        let lateness = parts.schedule.advance(now);
        counters.add(Counter::Ticks, 1);
        // A later tick means that the sampler was stopped with the whole program: nothing was missed.
        if lateness.late > parts.schedule.delay / 2 && lateness.late < STOPPED {
            counters.add(Counter::LateTicks, 1);
            counters.add(Counter::MissedTicks, lateness.missed);
        }
        receive::collect(parts);
        if parts.timers.are_allowed() {
            timers::prepare_mailboxes(parts);
        }
        discovery::read_events(parts, now);
        self.checks.run(parts, &self.orders, now);
        parts.task_names.link(parts.shared.guest, parts.threads);
        if parts.walltime.is_on {
            walltime::tick(parts, now);
        } else {
            poll_due_threads(parts, now);
        }
        let control = parts.shared.control;
        control.last_tick_ns.store(now, Release);
        if parts.schedule.tick.is_multiple_of(16) {
            control.sampler_cpu_ns.store(system::own_cpu(), Relaxed);
        }
    }

    /// The last observation: samples that are still to come, time that is not assigned yet, the end of every thread.
    fn finish(&mut self) {
        let parts = &mut self.parts;
        let guest = parts.shared.guest;
        let until = system::now() + LAST_SAMPLES;
        loop {
            receive::collect(parts);
            if parts.signals.is_empty() || system::now() >= until {
                break;
            }
            system::sleep_until(&guest.wakeups, guest.wakeups.load(Acquire), system::now() + 200_000);
        }
        let now = system::now();
        discovery::read_events(parts, now);
        walltime::finish(parts);
        while parts.threads.len() > 0 {
            let index = parts.threads.nth(0);
            let thread = parts.threads.get(index);
            if let Some(cpu) = system::thread_cpu(thread.header.tid) {
                thread.time.account.update(now, cpu);
                off_cpu::assign_last_waits(parts, index, now);
            }
            discovery::untrack(parts, index);
        }
        parts.shared.control.last_tick_ns.store(now, Release);
    }
}

fn poll_due_threads(parts: &mut Parts, now: u64) {
    let longest = PollInterval::longest(parts.threads.len(), POLLS, LONGEST);
    let (mut polls, mut unmoved) = (0, 0);
    let mut i = 0;
    while i < parts.threads.len() {
        let index = parts.threads.nth(i);
        if parts.threads.is_due(index, parts.schedule.tick) {
            match poll(parts, index, now, longest) {
                // Another thread has moved to its position.
                Polled::Gone => continue,
                Polled::Unmoved => unmoved += 1,
                Polled::Moved => {}
            }
            polls += 1;
        }
        i += 1;
    }
    let counters = &parts.shared.control.counters;
    counters.add(Counter::Polls, polls);
    counters.add(Counter::Unmoved, unmoved);
}
