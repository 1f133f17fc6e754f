//! Requests by timers: a running thread gets the sampling signal while it runs its own code, never inside a system call.
//!
//! A request starts the thread's timer ([`UserTimer`]), which fires at the first end of a period, in CPU time of the thread, at
//! which the thread runs its own code. So each period's end tells what the thread did at a random moment. If the timer fires at
//! the first one, the time since the last stack belongs to the stack. Otherwise only the last period belongs to it, and the time
//! before was spent in system calls and has no stack. A timer also interrupts the kernel at each period's end, at some cost, so
//! that the periods of a thread that is mostly in calls are as long as the delay.
//!
//! Timers lie in the sampler's own descriptor table, so that the program neither sees nor closes them. Without such a table, and
//! where perf events are refused or a filter might not allow them, running threads are signalled by queued signals.

use crate::parts::Parts;
use crate::signals::pending::TimerRequest;
use crate::threads::folder::ThreadFolder;
use crate::threads::table::ThreadTable;
use core::sync::atomic::{AtomicBool, Ordering::*};
use stackglass_host::user_timer::{self, UserTimer};
use stackglass_host::{Guest, SignalToken, SlotIndex, signal, system};

/// Threads whose timers may be open. An open timer makes each switch to the thread some microseconds longer.
const THREADS: usize = 256;
/// Period of a timer: long enough that the lateness of timers, up to 50 µs in virtual machines, is rarely a second period, ns.
const LONGEST_PERIOD: u64 = 125_000;
/// Period at the shortest delays, ns.
const SHORTEST_PERIOD: u64 = 40_000;
/// Period for looks of wall-time profiles, which ask what a thread does at this moment, ns.
const LOOK_PERIOD: u64 = 10_000;
/// How much later than one period a look may be answered, ns.
const LOOK_LATENESS: u64 = 50_000;
/// After so many periods without an answer, the timer is not just late.
const PERIODS_IN_CALL: u64 = 16;
/// Two clocks are never read at the same moment, ns.
const INACCURACY: u64 = 1_000;

static FORBIDDEN: AtomicBool = AtomicBool::new(false);

/// Forbids timers in the next runs, as kernels and containers do that refuse perf events. For tests.
pub fn forbid_timers(on: bool) {
    FORBIDDEN.store(on, Relaxed);
}

/// The timer of one thread.
#[derive(Clone, Copy, Debug)]
pub struct ThreadTimer {
    timer: UserTimer,
    period: u64,
    /// What it had counted when it last stood still, ns.
    ran: u64,
}

impl ThreadTimer {
    fn set_period(&mut self, period: u64) {
        if self.period != period {
            self.timer.set_period(period);
            self.period = period;
        }
    }
}

/// Which threads have timers. All zeros is none, and none is allowed.
pub struct Timers {
    are_allowed: bool,
    is_walltime: bool,
    /// Index + 1 of the thread, oldest at `next`.
    threads: [u32; THREADS],
    next: usize,
}

impl Timers {
    /// Finds out whether timers work. To be called on the sampler's thread, which blocks all signals.
    pub(crate) fn begin(&mut self, folder: &ThreadFolder, own_tid: u32, is_walltime: bool) -> bool {
        // A filter may end the process at a call that it does not expect.
        let is_free = || folder.confinement(own_tid).is_some_and(|own| own.is_free());
        self.is_walltime = is_walltime;
        self.are_allowed = !FORBIDDEN.load(Relaxed)
            && folder.keeps_open()
            && is_free()
            && signal::installed().is_some_and(user_timer::work_here);
        self.are_allowed
    }

    /// Whether running threads are signalled by timers.
    pub(crate) fn are_allowed(&self) -> bool {
        self.are_allowed
    }

    fn period(&self, delay: u64, is_mostly_in_calls: bool) -> u64 {
        match is_mostly_in_calls {
            true => delay.max(LONGEST_PERIOD),
            false if self.is_walltime => LOOK_PERIOD,
            false => (delay / 4).clamp(SHORTEST_PERIOD, LONGEST_PERIOD),
        }
    }

    /// A thread has a timer; the oldest one without a request loses its own.
    fn insert(&mut self, threads: &mut ThreadTable, guest: &Guest, index: SlotIndex) {
        self.make_room(threads, guest);
        self.threads[self.next] = u32::from(index.0) + 1;
        self.next = (self.next + 1) % THREADS;
    }

    /// Closes the oldest timer without a request. False if there is none.
    fn make_room(&mut self, threads: &mut ThreadTable, guest: &Guest) -> bool {
        for _ in 0..THREADS {
            let Some(oldest) = self.threads[self.next].checked_sub(1) else { return false };
            let thread = threads.get(SlotIndex(oldest as u16));
            if thread.pending.is_none_or(|pending| pending.timer.is_none()) {
                let was_open = thread.timer.is_some();
                close(&mut thread.timer, guest);
                self.threads[self.next] = 0;
                if was_open {
                    return true;
                }
            }
            self.next = (self.next + 1) % THREADS;
        }
        false
    }
}

/// Closes a thread's timer, if it has one.
pub(crate) fn close(timer: &mut Option<ThreadTimer>, guest: &Guest) {
    if let Some(ThreadTimer { timer, .. }) = timer.take() {
        guest.timers.close(timer.number());
        timer.close();
    }
}

/// Starts a thread's timer for one signal with this token.
///
/// # Errors
/// The errno: ESRCH if the thread has ended.
pub(crate) fn start(parts: &mut Parts, index: SlotIndex, token: SignalToken) -> Result<TimerRequest, i32> {
    let guest = parts.shared.guest;
    let signal = signal::installed().ok_or(libc::ESRCH)?;
    if parts.threads.get(index).timer.is_none() {
        let tid = parts.threads.get(index).header.tid;
        let period = parts.timers.period(parts.schedule.delay, false);
        let timer = match UserTimer::open(tid, period, signal) {
            Err(libc::EMFILE) if parts.timers.make_room(parts.threads, guest) => {
                UserTimer::open(tid, period, signal)
            }
            opened => opened,
        }?;
        guest.timers.open(timer.number());
        parts.timers.insert(parts.threads, guest, index);
        parts.threads.get(index).timer = Some(ThreadTimer { timer, period, ran: 0 });
    }
    let own = &mut parts.threads.get(index).timer;
    let Some(ThreadTimer { timer, ran, .. }) = own else { return Err(libc::EMFILE) };
    timer.set_signal(signal);
    guest.timers.arm(timer.number(), token);
    if let Err(errno) = timer.start() {
        close(own, guest);
        return Err(errno);
    }
    Ok(TimerRequest { seen: *ran, is_in_call: false })
}

/// The signal has come. If the thread was in a system call at the end of the first period, the length of the last one, ns.
pub(crate) fn last_period_after_calls(parts: &mut Parts, index: SlotIndex) -> Option<u64> {
    let is_walltime = parts.timers.is_walltime;
    let thread = parts.threads.get(index);
    let (Some(own), Some(pending)) = (&mut thread.timer, &thread.pending) else { return None };
    let before = core::mem::replace(&mut own.ran, own.timer.ran());
    let late = if is_walltime { LOOK_LATENESS } else { own.period - INACCURACY };
    let is_in_call = pending.timer.is_some_and(|request| request.is_in_call)
        || own.ran.saturating_sub(before) > own.period + late;
    let last = own.period;
    let next = parts.timers.period(parts.schedule.delay, is_in_call && !is_walltime);
    own.set_period(next);
    is_in_call.then_some(last)
}

/// A thread has run on without an answer, although it does not block the signal. Whether that may be because it is in a system
/// call: its timer still counts. Otherwise the timer has fired, and its signal was lost.
pub(crate) fn is_in_call(parts: &mut Parts, index: SlotIndex) -> bool {
    let longer = parts.timers.period(parts.schedule.delay, true);
    let thread = parts.threads.get(index);
    let (Some(own), Some(pending)) = (&mut thread.timer, &mut thread.pending) else { return false };
    let Some(request) = &mut pending.timer else { return false };
    let before = core::mem::replace(&mut request.seen, own.timer.ran());
    if !request.is_in_call && pending.ran >= PERIODS_IN_CALL * own.period {
        request.is_in_call = true;
        own.set_period(longer);
    }
    request.seen > before
}

/// Whether a thread's timer has fired, and its handler runs. It blocks all signals, and may have lost its CPU.
pub(crate) fn is_answering(parts: &mut Parts, index: SlotIndex) -> bool {
    let thread = parts.threads.get(index);
    let is_asked = thread.pending.is_some_and(|pending| pending.timer.is_some());
    is_asked && thread.timer.is_some_and(|own| !parts.shared.guest.timers.is_armed(own.timer.number()))
}

/// What a thread in a system call may have run in its own code since the last end of a period, ns.
pub(crate) fn last_period(parts: &mut Parts, index: SlotIndex) -> u64 {
    parts.threads.get(index).timer.map_or(0, |own| own.period)
}

/// Withdraws the requests of threads that have not run since they were last looked at: they are asleep.
pub(crate) fn withdraw_from_sleepers(parts: &mut Parts) {
    for i in 0..parts.threads.len() {
        let index = parts.threads.nth(i);
        let thread = parts.threads.get(index);
        let is_asked = thread.pending.is_some_and(|pending| pending.timer.is_some());
        if is_asked && system::thread_cpu(thread.header.tid) == Some(thread.time.account.cpu()) {
            crate::signals::receive::discard(parts, index);
        }
    }
}
