//! The kernel's own ticks: one `SW_CPU_CLOCK` event for each thread, which signals that thread after each delay it has run.
//!
//! A look from our own thread comes tens of microseconds late, and a thread that works in short bursts sleeps again by
//! then. The kernel's timer runs on the thread's own clock and finds it in the middle of what it does. Only time in
//! user mode is counted: that needs no privilege, and such a signal never ends a system call. So each signal stands for one delay of user
//! code; what the thread's clock has beyond that was spent in calls, and goes to the calls the thread is
//! found in (`look`). Where events are refused (containers, `perf_event_paranoid` 3) threads are signalled as they are found.
//!
//! Descriptors lie in our own table (see `privilege`); without one there are no events, as the program would find them.

use crate::sampler::Sampler;
use stackglass_host::events::{EVENTS, Event};
use stackglass_host::system::Fd;
use stackglass_host::{SlotIndex, Ticket, signal, system};

/// struct perf_event_attr, first version (include/uapi/linux/perf_event.h).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample: u64,
    read: u64,
    flags: u64,
    wake: u32,
    breakpoint: u32,
    config1: u64,
}

const SOFTWARE: u32 = 1;
const CPU_CLOCK: u64 = 0;
const DISABLED: u64 = 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const CLOSE_ON_EXEC: u64 = 1 << 3;
const ENABLE: u64 = 0x2400;
const F_SETSIG: i32 = 10;
const F_SETOWN_EX: i32 = 15;
const F_OWNER_TID: i32 = 0;

/// The shortest time between two ticks of a thread, ns: a handler may take some ten microseconds of it on a deep stack.
const SHORTEST: u64 = 100_000;

/// Mailboxes that wait for signals of events at the most: the rest is for threads that are signalled.
const WAITING: usize = 48;

/// How many events there may be, and how many mailboxes wait for them.
#[derive(Default)]
pub(crate) struct Events {
    /// Descriptors of events are below this, 0 for no events: others are needed to look at threads.
    below: i32,
    waiting: usize,
}

/// What is kept of a thread's event. All zeros is none.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Ticking {
    /// Its descriptor + 1, 0 for none.
    descriptor: i32,
    /// The mailbox that waits for the next stack, and its generation.
    waits: Option<(u8, u32)>,
    /// It was tried to have one: not again.
    tried: bool,
    /// Signals that are not yet counted.
    pub(crate) hits: u64,
}

impl Ticking {
    /// Whether there is an event.
    pub(crate) fn is_on(self) -> bool {
        self.descriptor != 0
    }

    fn event(self, sampler: &Sampler) -> Option<&'static Event> {
        sampler.guest.events.get(usize::try_from(self.descriptor - 1).ok()?)
    }
}

/// Opens an event of one thread, which signals it; not yet enabled.
fn open(tid: u32, period: u64) -> Option<Fd> {
    let attributes = Attributes {
        kind: SOFTWARE,
        size: size_of::<Attributes>() as u32,
        config: CPU_CLOCK,
        period,
        flags: DISABLED | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
        wake: 1,
        ..Attributes::default()
    };
    let owner = [F_OWNER_TID, tid as i32];
    // SAFETY: the kernel reads as many bytes of `attributes` as its `size` says, and two words of `owner`; the descriptor is
    // new and closed with `fd`.
    unsafe {
        let raw = libc::syscall(libc::SYS_perf_event_open, &raw const attributes, tid, -1, -1, CLOSE_ON_EXEC);
        let fd = Fd::from_raw(raw as i32)?;
        let ready = libc::fcntl(fd.raw(), F_SETOWN_EX, owner.as_ptr()) == 0
            && libc::fcntl(fd.raw(), F_SETSIG, signal::installed()?) == 0
            && libc::fcntl(fd.raw(), libc::F_SETFL, libc::O_ASYNC) == 0;
        ready.then_some(fd)
    }
}

impl Sampler {
    /// Finds out whether the kernel gives us events at all, by one for our own thread.
    pub(crate) fn ask_for_events(&mut self) {
        if !self.memory.tasks.keeps_open() || open(self.tid, self.period()).is_none() {
            return;
        }
        // SAFETY: an all-zero limit is a value, which the kernel fills.
        let limit = unsafe {
            let mut limit: libc::rlimit = core::mem::zeroed();
            libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
            limit.rlim_cur
        };
        self.events.below = (limit / 2).min(EVENTS as u64) as i32;
    }

    /// What a tick of the kernel's stands for, ns.
    pub(crate) fn period(&self) -> u64 {
        self.delay.max(SHORTEST)
    }

    /// The kernel ticks this thread from now on, if it can be had. To be called once a first stack of it was taken: a thread that
    /// lives for a moment only is gone before its first tick.
    pub(crate) fn begin_ticking(&mut self, index: SlotIndex) {
        if core::mem::replace(&mut self.memory.roster.get(index).ticking.tried, true) {
            return;
        }
        if self.events.below == 0 || self.wall.on || !self.stands_a_signal(index, system::now()) {
            return;
        }
        let tid = self.memory.roster.get(index).tid;
        // We come here at a random moment of the thread's life, so its ticks are at random moments of what it does.
        let Some(fd) = open(tid, self.period()) else { return };
        if fd.raw() >= self.events.below {
            return;
        }
        let ticking = Ticking { descriptor: fd.raw() + 1, tried: true, ..Ticking::default() };
        let Some(event) = ticking.event(self) else { return };
        event.open(tid, index);
        // SAFETY: a call on a descriptor of ours, no pointers.
        unsafe { libc::ioctl(fd.raw(), ENABLE, 0) };
        core::mem::forget(fd);
        self.memory.roster.get(index).ticking = ticking;
        self.wait_for_stack(index);
    }

    /// A mailbox for the thread's next stack, if one is free.
    pub(crate) fn wait_for_stack(&mut self, index: SlotIndex) {
        let ticking = self.memory.roster.get(index).ticking;
        if !ticking.is_on() || ticking.waits.is_some() || self.events.waiting >= WAITING {
            return;
        }
        let Some(event) = ticking.event(self) else { return };
        let Some((mailbox, generation)) = self.memory.hand_out(&self.guest.mailboxes) else { return };
        self.memory.holders[mailbox] = index.0 as u32 + 1;
        self.memory.roster.get(index).ticking.waits = Some((mailbox as u8, generation));
        self.events.waiting += 1;
        event.arm(Ticket { mailbox: mailbox as u8, slot: index, generation });
    }

    /// The mailbox whose stack has come, and its generation; it waits no longer.
    pub(crate) fn stack_has_come(&mut self, index: SlotIndex) -> Option<(usize, u32)> {
        let ticking = &mut self.memory.roster.get(index).ticking;
        let (mailbox, generation) = ticking.waits?;
        self.guest.mailboxes[mailbox as usize].read(generation)?;
        ticking.waits = None;
        self.events.waiting -= 1;
        Some((mailbox as usize, generation))
    }

    /// Takes the mailbox back: the thread sleeps for long, or is gone.
    pub(crate) fn wait_no_longer(&mut self, index: SlotIndex) {
        let ticking = self.memory.roster.get(index).ticking;
        let (Some((mailbox, generation)), Some(event)) = (ticking.waits, ticking.event(self)) else { return };
        event.disarm();
        // Where the handler is at work just now, the mailbox is handed out again once it is done.
        self.guest.mailboxes[mailbox as usize].take_back(generation);
        self.memory.holders[mailbox as usize] = 0;
        self.memory.roster.get(index).ticking.waits = None;
        self.events.waiting -= 1;
    }

    /// Counts the signals that have come since the last time.
    pub(crate) fn count_hits(&mut self, index: SlotIndex) -> u64 {
        let ticking = self.memory.roster.get(index).ticking;
        let new = ticking.event(self).map_or(0, Event::take_hits);
        let ticking = &mut self.memory.roster.get(index).ticking;
        ticking.hits += u64::from(new);
        ticking.hits
    }

    /// The kernel ticks this thread no more.
    pub(crate) fn end_ticking(&mut self, index: SlotIndex) {
        self.wait_no_longer(index);
        let ticking = self.memory.roster.get(index).ticking;
        if ticking.is_on() {
            // SAFETY: the descriptor is open, ours, and forgotten with this.
            unsafe { libc::close(ticking.descriptor - 1) };
        }
        self.memory.roster.get(index).ticking = Ticking { tried: true, ..Ticking::default() };
    }
}
