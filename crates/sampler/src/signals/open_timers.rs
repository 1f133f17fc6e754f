//! Which threads have open timers: there is room for some, and those that run have their turn.

use crate::signals::thread_timers::close;
use crate::threads::folder::ThreadFolder;
use crate::threads::table::ThreadTable;
use core::sync::atomic::{AtomicU8, Ordering::*};
use stackglass_host::user_timer::{self, SHORTEST};
use stackglass_host::{Guest, SlotIndex, call_timer, signal, system};
use stackglass_sampling::Random;

/// Threads whose timers may be open. A timer makes each switch to a thread that runs some microseconds longer.
const THREADS: usize = 256;
/// A thread that has not run for so many ticks lends its timers to another one.
const IDLE: u64 = 16;
/// Period of the frequent timer of a thread that gets CPUs often, ns. Where the timer is the next to fire, each switch programs the
/// hardware, which costs microseconds in virtual machines. With more than a tick of the kernel to go, that is rare.
pub(super) const RESTLESS_PERIOD: u64 = 20_000_000;

/// Timers that are not to be used, for tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forbidden {
    /// All may be used.
    None,
    /// The frequent ones, as where perf events are refused.
    Frequent,
    /// All of them, as under a filter.
    All,
}

static FORBIDDEN: AtomicU8 = AtomicU8::new(Forbidden::None as u8);

/// Forbids timers in the next runs. For tests.
pub fn forbid_timers(which: Forbidden) {
    FORBIDDEN.store(which as u8, Relaxed);
}

/// Which threads have timers. All zeros is none, and none is allowed.
pub struct Timers {
    are_allowed: bool,
    /// Also frequent ones.
    pub(super) has_frequent: bool,
    pub(super) random: Random,
    /// Index + 1 of each thread.
    pub(super) threads: [u32; THREADS],
    /// Where the search for room goes on.
    next: usize,
    /// The tick at which a thread that runs has lost its timers to another one.
    taken_at: u64,
    /// Mailboxes that handlers may use: the first so many.
    pub(crate) mailboxes: usize,
}

impl Timers {
    /// Finds out whether timers work. To be called on the sampler's thread, which blocks all signals.
    pub(crate) fn begin(&mut self, folder: &ThreadFolder, own_tid: u32, is_walltime: bool) {
        // A filter may end the process at a call that it does not expect.
        let is_free = || folder.confinement(own_tid).is_some_and(|own| own.is_free());
        self.random = Random::new(system::now());
        let forbidden = FORBIDDEN.load(Relaxed);
        let signal = signal::installed();
        self.are_allowed = !is_walltime
            && forbidden != Forbidden::All as u8
            && is_free()
            && call_timer::spare_calls()
            && signal.is_some_and(|signal| call_timer::can_start(own_tid, signal));
        self.has_frequent = self.are_allowed
            && forbidden != Forbidden::Frequent as u8
            && folder.keeps_open()
            && signal.is_some_and(user_timer::work_here);
    }

    /// Whether stacks of running threads come by timers.
    pub(crate) fn are_allowed(&self) -> bool {
        self.are_allowed
    }

    /// A period of a frequent timer: never in step with the program for long, nor with other threads. With the rare timer's, there
    /// is about one stack for each delay.
    pub(super) fn period(&mut self, delay: u64, is_restless: bool) -> u64 {
        let delay = if is_restless { delay.max(RESTLESS_PERIOD) } else { delay };
        (delay + self.random.below(delay * 2 / 3)).max(SHORTEST)
    }

    /// A place for a thread's timers. If there is none, a thread that has not run lately loses its own, or else one that has: one
    /// each tick, so that all have their turn.
    pub(super) fn make_room(&mut self, threads: &mut ThreadTable, guest: &Guest, tick: u64) -> Option<usize> {
        for turn in 0..=THREADS {
            let place = self.next;
            self.next = (self.next + 1) % THREADS;
            let Some(holder) = self.threads[place].checked_sub(1) else { return Some(place) };
            let timers = &mut threads.get(SlotIndex(holder as u16)).timers;
            let is_in_use = timers.is_some_and(|timers| timers.ran_at + IDLE > tick);
            if is_in_use && turn == THREADS && self.taken_at != tick {
                self.taken_at = tick;
            } else if is_in_use {
                continue;
            }
            close(timers, guest);
            return Some(place);
        }
        None
    }
}
