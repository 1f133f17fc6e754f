//! Requests by timers: a running thread gets the sampling signal while it runs its own code, never inside a system call.
//!
//! A request starts the thread's timer ([`UserTimer`]). It fires one period later, in CPU time of the thread, if the thread then
//! runs its own code, and otherwise at a later period. So the first period tells what the thread did at a random moment: if the
//! timer fired at once, the time belongs to the stack; if it fired later, the thread was in a system call, and the time has no
//! stack. The stack that comes then is that of other code.
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
/// Period of a timer: long enough that the lateness of timers, up to 50 µs in virtual machines, is no second period, ns.
const LONGEST_PERIOD: u64 = 125_000;
/// Period at the shortest delays, ns.
const SHORTEST_PERIOD: u64 = 40_000;
/// Period for looks of wall-time profiles, which ask what a thread does at this moment, ns.
const LOOK_PERIOD: u64 = 10_000;
/// How much later than one period a look may be answered, ns.
const LOOK_LATENESS: u64 = 50_000;
/// After so many periods without an answer, the timer is not just late.
const PERIODS_IN_CALL: u64 = 3;
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

    fn period(&self, delay: u64) -> u64 {
        match self.is_walltime {
            true => LOOK_PERIOD,
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
        let period = parts.timers.period(parts.schedule.delay);
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

/// The signal has come. Whether the thread was in a system call when the first period ended.
pub(crate) fn was_in_call(parts: &mut Parts, index: SlotIndex) -> bool {
    let is_walltime = parts.timers.is_walltime;
    let Some(ThreadTimer { timer, period, ran }) = &mut parts.threads.get(index).timer else { return false };
    let before = core::mem::replace(ran, timer.ran());
    let late = if is_walltime { LOOK_LATENESS } else { *period - INACCURACY };
    ran.saturating_sub(before) > *period + late
}

/// A thread has run on without an answer, although it does not block the signal. Whether that may be because it is in a system
/// call: its timer still counts. Otherwise the timer has fired, and its signal was lost.
pub(crate) fn is_in_call(parts: &mut Parts, index: SlotIndex) -> bool {
    let thread = parts.threads.get(index);
    let (Some(own), Some(pending)) = (&thread.timer, &mut thread.pending) else { return false };
    let Some(request) = &mut pending.timer else { return false };
    let before = core::mem::replace(&mut request.seen, own.timer.ran());
    request.is_in_call |= pending.ran >= PERIODS_IN_CALL * own.period;
    request.seen > before
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
