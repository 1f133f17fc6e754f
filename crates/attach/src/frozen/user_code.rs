//! Stops threads in user code only, and leaves those alone that are in system calls.
//!
//! - A thread that computes is stopped by a timer of its CPU time ([`UserStop`]), which the kernel skips inside calls.
//! - A thread that sleeps in a call stays there. Its memory stands still but for the buffers of the call. A breakpoint behind the
//!   call stops it before its first instruction, should it return.
//! - A thread that sleeps without a call waits for a page of memory, or has stopped just now. Its stop is waited for, since no
//!   breakpoint catches it. One that has not run for some milliseconds, and has not stopped, counts as asleep.
//! - A thread that is busy in a long call is not waited for. If it may be sampled there, its registers are known, and it is caught
//!   like one that sleeps. Else it stops soon after its return.
//! - A thread that does little but page faults is stopped after the next one.
//! - A thread that blocks SIGTRAP cannot be stopped so ([`SignalMask`](signal_mask::SignalMask)). If it sleeps in a call that the kernel resumes without trace,
//!   it stops there. If it runs, the others do not wait for it for long.
//!
//! The timer's stop is a SIGTRAP on its way to the thread, and would reach it if this process died. So it is exchanged for a
//! requested stop at once. A thread in user code has no call that this could interrupt.
//!
//! An event that has fired sends its signal when the thread next runs. On a busy machine, that can be milliseconds later. Without a
//! tracer, the signal would end the program. The tracer counts firings, and lets a thread go only after it has stopped for all of them.

use super::call_registers::CallRegisters;
use super::error::FreezeError;
use super::signal_mask::{self, Mask, TRAP};
use super::traced::{Armed, Sleeping, State, StoppedThreads, TracedThread, pause};
use crate::clock::monotonic;
use crate::perf_refused::PerfRefused;
use crate::ptrace::{self, Stop};
use stackglass_perf::user_stop::{UserStop, is_of_user_stop};
use stackglass_proc_text::{Call, SchedStat, Sleep, ThreadState};
use stackglass_procfs::Status;
use std::io;

/// A thread that gets no CPU stops later than this only on a machine that hardly runs, ns.
const LONGEST_STOP: u64 = 3_000_000_000;
/// A thread that has not stopped after this time may be in a long call, ns.
const LONG_FOR_USER_CODE: u64 = 200_000;
/// A thread that ran this long without a stop ran in the kernel, ns: many periods of its timer.
const LONG_CALL: u64 = 2_000_000;
/// The same for a thread that is known to be in a page fault, ns: its event stops it at the end. Interrupts of a busy virtual machine
/// draw out a fault of microseconds to some milliseconds (measured: 2.2 ms).
const LONG_FAULT: u64 = 20_000_000;
/// It is waited for at least this long if it may not be sampled there, ns.
const SHORTEST_WAIT: u64 = 8_000_000;
/// Signals of ours are waited for this long after the events were switched off, ns.
const LONGEST_PENDING: u64 = 10_000_000_000;
/// A thread that has run this long without a stop may be in a long call, ns.
const LONG_RUN: u64 = 100_000;
/// Where firings are not counted, a thread that has run this long has had its signal, ns. The kernel updates its account at ticks
/// of up to 10 ms.
const SIGNAL_DUE: u64 = 40_000_000;

/// Stops threads, or finds out in which calls they are.
///
/// # Errors
/// If a thread computes and cannot be stopped.
pub(super) fn stop(process: &mut StoppedThreads<'_>, first: usize) -> Result<(), FreezeError> {
    let pid = process.pid;
    let mut refused = None;
    let threads = &mut process.threads[first..];
    for thread in threads.iter_mut() {
        thread.armed = Some(Armed::new(pid, thread.tid, &mut refused));
    }
    settle(pid, threads, refused)
}

/// Checks threads again that were busy in the kernel.
pub(super) fn check_again(process: &mut StoppedThreads<'_>) {
    for thread in process.threads.iter_mut().filter(|thread| thread.state == State::InKernel) {
        thread.state = State::Running;
        thread.settle();
        if thread.state == State::Running {
            thread.state = State::InKernel;
        }
    }
    refresh(process);
}

/// Stops threads that have run since they were found in their calls.
///
/// # Errors
/// As [`stop`].
pub(super) fn settle_again(process: &mut StoppedThreads<'_>) -> Result<(), FreezeError> {
    refresh(process);
    for thread in &mut process.threads {
        let Some(armed) = &mut thread.armed else { continue };
        let sleeps_on = armed.at_return.is_some()
            || thread.state == State::Asleep
                && armed.files.stat() == thread.sleeping.map(|sleeping| sleeping.ran);
        if matches!(thread.state, State::Asleep | State::InKernel) && !sleeps_on {
            (thread.state, thread.sleeping, armed.before) = (State::Running, None, armed.files.stat());
            armed.ran_before = armed.timer.as_ref().and_then(UserStop::ran).unwrap_or(0);
            armed.in_call = None;
        }
    }
    settle(process.pid, &mut process.threads, None)
}

fn settle(pid: u32, threads: &mut [TracedThread], refused: Option<io::Error>) -> Result<(), FreezeError> {
    let start = monotonic();
    let mut waits = 0;
    loop {
        let mut is_settled = true;
        let waited = monotonic().saturating_sub(start);
        for thread in threads.iter_mut().filter(|thread| thread.state == State::Running) {
            thread.settle();
            is_settled &= thread.state != State::Running;
        }
        if is_settled {
            return Ok(());
        }
        for thread in threads.iter_mut().filter(|thread| thread.state == State::Running) {
            if waited > LONG_FOR_USER_CODE && waits % 16 == 0 {
                thread.look_for_long_call(waited);
            }
            let cannot_stop = thread.is_masked() || refused.is_some() && thread.cannot_be_stopped();
            if thread.state == State::Running
                && (waited > LONGEST_STOP || waited > SHORTEST_WAIT && cannot_stop)
            {
                return Err(match refused {
                    Some(error) => FreezeError::NoUserStops { pid, refused: PerfRefused::new(error) },
                    None if thread.is_masked() => FreezeError::BlocksSignals { pid, tid: thread.tid },
                    None => FreezeError::NotStopped { pid, tid: thread.tid },
                });
            }
        }
        pause(waits);
        waits += 1;
    }
}

/// Takes notice of threads that have returned from their calls and were caught.
pub(super) fn refresh(process: &mut StoppedThreads<'_>) {
    let left = |thread: &&mut TracedThread| matches!(thread.state, State::Asleep | State::InKernel);
    for thread in process.threads.iter_mut().filter(left) {
        let before = std::mem::replace(&mut thread.state, State::Running);
        thread.look_for_stop();
        if thread.state == State::Running {
            thread.state = before;
        }
    }
}

/// Whether a thread may have run user code since it was found in its call.
pub(super) fn may_have_run(process: &mut StoppedThreads<'_>) -> bool {
    let mut has_run = false;
    for thread in &mut process.threads {
        let is_left = matches!(thread.state, State::Asleep | State::InKernel);
        let is_watched = thread.armed.as_ref().is_some_and(|armed| armed.at_return.is_some());
        match (thread.state, thread.sleeping) {
            // It has not run an instruction before its stop.
            (State::Asleep | State::InKernel, _) if is_watched => {}
            (State::Asleep, Some(sleeping)) => {
                let now = thread.armed.as_mut().and_then(|armed| armed.files.stat());
                has_run |= now != Some(sleeping.ran);
            }
            _ if is_left => {
                let before = std::mem::replace(&mut thread.state, State::Running);
                thread.look_for_stop();
                has_run |= thread.state == State::Stopped;
                if thread.state == State::Running {
                    thread.state = before;
                }
            }
            _ => {}
        }
    }
    has_run
}

/// The threads that sleep and would not be caught at their return, and how much they had run.
pub(super) fn unwatched(process: &StoppedThreads<'_>) -> Vec<(u32, SchedStat)> {
    let is_unwatched = |thread: &&TracedThread| {
        thread.state == State::Asleep && thread.armed.as_ref().is_some_and(|armed| armed.at_return.is_none())
    };
    let sleeping = process.threads.iter().filter(is_unwatched);
    sleeping.filter_map(|thread| Some((thread.tid, thread.sleeping?.ran))).collect()
}

/// Lets threads go that were not stopped. They are traced until this thread ends, which must come soon.
pub(super) fn let_go(process: &mut StoppedThreads<'_>) {
    for thread in &mut process.threads {
        thread.disarm();
    }
    let start = monotonic();
    let mut waits = 0;
    loop {
        let mut is_quiet = true;
        for thread in process.threads.iter_mut().filter(|thread| thread.state != State::Gone) {
            // In this order: the signal is on its way, then pending, then in a stop.
            let is_coming = thread.has_signal_coming();
            let is_pending = Status::read(thread.tid).is_some_and(|status| status.pending & TRAP != 0);
            thread.release_caught();
            // A thread that blocks SIGTRAP gets it later. It must not get it without a tracer.
            is_quiet &= thread.state == State::Gone || !is_coming && !is_pending;
        }
        if is_quiet || monotonic().saturating_sub(start) > LONGEST_PENDING {
            return;
        }
        pause(waits);
        waits += 1;
    }
}

/// Detaches threads that stop although they need not: before a signal.
pub(super) fn release_caught(process: &mut StoppedThreads<'_>) {
    let traced = process.threads.iter_mut().filter(|thread| thread.state != State::Gone);
    traced.for_each(TracedThread::release_caught);
}

impl TracedThread {
    /// Switches off what could stop it, once it need not stop.
    fn disarm(&mut self) {
        if let Some(armed) = &mut self.armed {
            armed.disarm();
            armed.before = armed.files.stat();
        }
    }

    /// Whether an event has fired, and its signal was not seen yet. The events are switched off.
    fn has_signal_coming(&mut self) -> bool {
        let Some(armed) = &mut self.armed else { return false };
        match armed.firings_to_come() {
            Some(firings) => firings > 0,
            // The signal has been sent if the thread sleeps in a call, or has run for long since.
            None => {
                let (Some(before), Some(now)) = (armed.before, armed.files.stat()) else { return false };
                now.ran.saturating_sub(before.ran) <= SIGNAL_DUE
                    && !matches!(armed.files.state(), ThreadState::Asleep(Sleep { call: Some(_), .. }))
            }
        }
    }

    /// Looks for a stop, and whether the thread sleeps in a call.
    fn settle(&mut self) {
        self.look_for_stop();
        let Some(armed) = self.armed.as_mut().filter(|_| self.state == State::Running) else { return };
        let Some(ran) = armed.files.stat() else { return };
        let ThreadState::Asleep(sleep) = armed.files.state() else {
            if let Some(timer) = armed.timer.as_mut().filter(|_| !armed.is_armed) {
                let mask = armed.mask.check(self.tid, timer);
                armed.is_masked = mask == Mask::Blocks;
                if mask == Mask::Open {
                    armed.arm();
                }
            }
            return;
        };
        if sleep.call.is_none() {
            if !armed.sleeps_for_long(ran) {
                return;
            }
            // A stop that has come meanwhile looks like such a sleep.
            self.look_for_stop();
        }
        let Some(armed) = self.armed.as_mut().filter(|_| self.state == State::Running) else { return };
        let is_masked = signal_mask::may_block(self.tid, sleep.call.as_ref());
        if armed.files.stat() != Some(ran) {
            return;
        }
        armed.is_masked = is_masked;
        if is_masked {
            armed.disarm();
        }
        if is_masked && sleep.call.is_some_and(|call| is_resumed_without_trace(&call)) {
            if !std::mem::replace(&mut armed.is_interrupted, true) {
                let _ = ptrace::interrupt(self.tid);
            }
            return;
        }
        if let Some(timer) = &mut armed.timer {
            armed.mask.end(timer);
        }
        let at_return = match (is_masked, sleep.call, &armed.timer) {
            (false, Some(_), Some(timer)) => UserStop::at(self.tid, sleep.place.pc, timer).ok(),
            // The processor skips the breakpoint of an instruction that it repeats after a page fault.
            _ => None,
        };
        let at_return = at_return.filter(|breakpoint| breakpoint.arm().is_ok());
        // Armed before it could return.
        if armed.files.stat() != Some(ran) {
            // It did not block the signal in the call, nor does it now.
            if at_return.is_some() {
                armed.arm();
            }
            return;
        }
        match (&at_return, &armed.timer) {
            // The thread stops at its return, or before it handles a signal.
            (Some(_), Some(timer)) => {
                timer.disarm();
                armed.is_armed = false;
            }
            // Outside of calls, what the kernel shows as blocked is so.
            _ if !is_masked => armed.arm(),
            _ => {}
        }
        armed.at_return = at_return;
        self.sleeping = Some(Sleeping { sleep, ran });
        self.state = State::Asleep;
    }

    /// Notices that the thread has run for long without a stop: in the kernel.
    fn look_for_long_call(&mut self, waited: u64) {
        let tid = self.tid;
        let Some(armed) = &mut self.armed else { return };
        if armed.firings_to_come().is_some_and(|firings| firings > 0) {
            // It stops before it runs user code again. Samples only delay that.
            armed.in_call = None;
            return;
        }
        let Some(timer) = armed.timer.as_ref().filter(|_| armed.is_armed) else { return };
        let Some(now) = timer.ran() else { return };
        let ran = now.saturating_sub(armed.ran_before);
        if ran <= LONG_RUN {
            return;
        }
        if !std::mem::replace(&mut armed.has_run_long, true) {
            let after_fault = UserStop::after_page_fault(tid, timer).ok();
            armed.after_fault = after_fault.filter(|event| event.arm().is_ok());
            armed.ran_before = now;
            return;
        }
        if armed.in_call.is_none() {
            armed.in_call = CallRegisters::open(tid);
        }
        let place = armed.in_call.as_mut().and_then(CallRegisters::next_place);
        // Once more after the breakpoint was armed.
        let is_watched = armed.at_return.is_some() && place.is_some() && place == armed.busy_at;
        // Time of a virtual machine that its host took counts as run, but has no samples.
        let is_long = armed.in_call.as_ref().map_or(ran > LONG_CALL, |samples| {
            samples.in_calls() > LONG_CALL || samples.in_faults() > LONG_FAULT
        });
        if is_watched || waited > SHORTEST_WAIT && is_long {
            self.state = State::InKernel;
        } else if let Some(place) = place {
            let at_return = UserStop::at(tid, place.pc, timer).ok();
            armed.at_return = at_return.filter(|breakpoint| breakpoint.arm().is_ok());
            armed.busy_at = Some(place);
            // The call may have returned before, and samples be of that time.
            armed.in_call.as_mut().and_then(CallRegisters::next_place);
        }
    }

    /// Its registers in the program, if it is busy in a call and may be sampled there.
    pub(super) fn registers_in_call(&self) -> Option<[u64; 27]> {
        self.armed.as_ref().filter(|_| self.state == State::InKernel)?.in_call.as_ref()?.newest()
    }

    /// Whether it runs and blocks SIGTRAP.
    fn is_masked(&self) -> bool {
        self.armed.as_ref().is_some_and(|armed| armed.is_masked && !armed.is_interrupted)
    }

    fn cannot_be_stopped(&self) -> bool {
        self.armed.as_ref().is_some_and(|armed| armed.timer.is_none())
    }

    /// Looks for a stop in user code, or before a signal of the program. Its handler does not begin to run.
    fn look_for_stop(&mut self) {
        let now = monotonic();
        match ptrace::next_stop(self.tid) {
            Ok(None) => self.ran_at = now,
            Err(_) => self.end(),
            Ok(Some(stop)) => self.hold(stop),
        }
    }

    /// Exchanges a stop for one that this process may die in.
    fn hold(&mut self, stop: Stop) {
        if let Some(armed) = &mut self.armed {
            armed.disarm();
        }
        if self.exchange(stop).is_none() {
            return self.end();
        }
        // Ours may be behind one of the program. The next stop comes before any instruction.
        while self.has_ours_pending() {
            let _ = ptrace::resume(self.tid, 0);
            if self.next_stop().and_then(|stop| self.exchange(stop)).is_none() {
                return self.end();
            }
        }
        self.state = State::Stopped;
        (self.registers, self.sleeping) = (None, None);
        if let Some(armed) = &mut self.armed {
            armed.is_interrupted = false;
            // The kernel has sent the signals of all of them before this stop.
            armed.answered = armed.timer.as_mut().and_then(UserStop::fired).unwrap_or(0);
        }
    }

    /// Continues until the thread is in a requested stop. Signals of the program are delivered.
    fn exchange(&self, mut stop: Stop) -> Option<()> {
        if !stop.is_requested() {
            // In a stop, this interrupts nothing: the next stop comes before any instruction.
            let _ = ptrace::interrupt(self.tid);
        }
        while !stop.is_requested() {
            let _ = ptrace::resume(self.tid, signal_to_deliver(self.tid, stop));
            stop = self.next_stop()?;
        }
        Some(())
    }

    /// The next stop of a thread that will soon stop.
    fn next_stop(&self) -> Option<Stop> {
        let start = monotonic();
        let mut waits = 0;
        loop {
            match ptrace::next_stop(self.tid) {
                Ok(Some(stop)) => return Some(stop),
                Ok(None) if monotonic().saturating_sub(start) < LONGEST_STOP => pause(waits),
                _ => return None,
            }
            waits += 1;
        }
    }

    fn has_ours_pending(&self) -> bool {
        ptrace::has_pending_signals(self.tid)
            && Status::read(self.tid).is_some_and(|status| status.pending & !status.blocked & TRAP != 0)
    }

    /// Detaches the thread if it was caught after all.
    fn release_caught(&mut self) {
        match ptrace::next_stop(self.tid) {
            Ok(None) => {}
            Err(_) => self.end(),
            Ok(Some(stop)) => {
                self.hold(stop);
                // What could stop it again goes first, while it stands.
                self.armed = None;
                if self.state == State::Stopped && ptrace::detach(self.tid).is_ok() {
                    self.state = State::Gone;
                }
            }
        }
    }
}

/// The signal of the program with which a thread continues: not ours.
fn signal_to_deliver(tid: u32, stop: Stop) -> i32 {
    let is_ours = || {
        stop.signal == libc::SIGTRAP && ptrace::signal_info(tid).is_ok_and(|signal| is_of_user_stop(&signal))
    };
    if stop.event != 0 || is_ours() { 0 } else { stop.signal }
}

/// Whether the kernel resumes a call after a stop, and the program cannot tell: waits for a time or a futex (futex(2), signal(7)).
fn is_resumed_without_trace(call: &Call) -> bool {
    /// FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME.
    const FUTEX_FLAGS: u64 = 128 | 256;
    /// FUTEX_WAIT and FUTEX_WAIT_BITSET.
    const FUTEX_WAITS: [u64; 2] = [0, 9];
    match call.number {
        libc::SYS_futex => FUTEX_WAITS.contains(&(call.arguments[1] & !FUTEX_FLAGS)),
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
