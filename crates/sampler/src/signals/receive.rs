//! Reads the samples that the handler has written, and gives them their time.

use crate::parts::Parts;
use crate::signals::call_ends::{Doubtful, PATIENCE, UNIT};
use crate::signals::pending::{PendingSignal, Reservation};
use crate::signals::{send, stack_bounds, timers};
use crate::tasks::walltime;
use stackglass_host::SlotIndex;
use stackglass_host::mailbox::{MAILBOXES, SampleHeader};
use stackglass_sampling::Stack;
use stackglass_unwind::walk::Cut;
use stackglass_wire::{Counter, cut};

/// A thread on a stack without room for a walk is signalled again after this, ns.
const NO_ROOM_FOR: u64 = 100_000_000;

/// Reads every sample that is complete.
pub(crate) fn collect(parts: &mut Parts) {
    for mailbox in 0..MAILBOXES {
        if let Some(index) = parts.signals.thread_of(mailbox) {
            receive(parts, index);
        }
    }
}

/// Ends the wait for a thread's sample, because the thread has ended or sampling stops.
pub(crate) fn discard(parts: &mut Parts, index: SlotIndex) {
    if receive(parts, index) {
        return;
    }
    let thread = parts.threads.get(index);
    let Some(pending) = thread.pending.take() else { return };
    if pending.timer.is_some() {
        // A timer that has not fired must not fire for the next request.
        timers::close(&mut thread.timer, parts.shared.guest);
    }
    let Reservation { mailbox, generation } = pending.reservation;
    // If the handler is writing just now, the mailbox becomes free once it is done.
    parts.shared.guest.mailboxes[mailbox as usize].revoke(generation);
    parts.signals.remove(pending.reservation);
}

/// Reads a thread's sample, if it is complete.
fn receive(parts: &mut Parts, index: SlotIndex) -> bool {
    let Some(pending) = parts.threads.get(index).pending else { return false };
    let Reservation { mailbox, generation } = pending.reservation;
    let guest = parts.shared.guest;
    let mailbox = &guest.mailboxes[mailbox as usize];
    let Some((header, frames)) = mailbox.read(generation) else { return false };
    let thread = parts.threads.get(index);
    thread.alternate = header.alternate;
    thread.handler_ran = true;
    if pending.timer.is_some() {
        thread.call_ends.count_signal();
    }
    parts.task_names.push(&mut parts.events, &mut thread.header, header.polled, header.text);
    let mut stack = Stack { frames, cut: header.cut, task: header.polled.task };
    let after_calls = pending.timer.and_then(|_| timers::last_period_after_calls(parts, index));
    if after_calls.is_some() && pending.look.is_some() {
        stack = Stack { task: stack.task, ..Stack::unsampled(cut::IN_CALL) };
    }
    if let Some(look) = pending.look {
        walltime::push_signalled(parts, index, pending.sent, look, stack);
    }
    if header.no_room {
        parts.shared.count(Counter::NotSignalled);
        parts.threads.get(index).blocked_until = pending.sent + NO_ROOM_FOR;
        if pending.look.is_none() {
            send::push_unsampled(parts, index, pending.sent, cut::NOT_TAKEN);
        }
    } else {
        push(parts, index, pending, &header, stack, after_calls);
        stack_bounds::update(guest.slot(index), &header);
    }
    parts.threads.get(index).pending = None;
    mailbox.release(generation);
    parts.signals.remove(pending.reservation);
    true
}

/// Gives the stack its time.
fn push(
    parts: &mut Parts,
    index: SlotIndex,
    pending: PendingSignal,
    header: &SampleHeader,
    stack: Stack<'_>,
    after_calls: Option<u64>,
) {
    parts.shared.count(Counter::StacksRunning);
    if header.cut != 0 && !pending.is_blocked {
        parts.shared.count(Counter::Cut);
        parts.due.modules |= header.cut == Cut::NoModule as u8;
    }
    let is_look = pending.look.is_some();
    let is_running = !is_look && !pending.is_blocked && pending.asleep_at.is_none();
    if let Some(last) = after_calls.filter(|_| is_running)
        && timed_in_call(parts, index, last, u64::MAX)
    {
        let thread = parts.threads.get(index);
        thread.time.push_in_call(&mut parts.events.of(&mut thread.header), pending.sent, last);
    }
    let is_accepted = is_running && (pending.timer.is_some() || is_accepted(parts, index, stack.frames));
    let thread = parts.threads.get(index);
    let sink = &mut parts.events.of(&mut thread.header);
    match pending.asleep_at {
        Some(place) => {
            if !is_look {
                thread.time.push_sleeping(sink, pending.sent, stack);
            }
            parts.sleep.insert(index, place, stack.frames, header.cut);
        }
        None if is_accepted => thread.time.push_running(sink, pending.sent, stack),
        None if is_running => parts.shared.count(Counter::CallsDoubted),
        None => {}
    }
}

/// Whether a running thread's stack is where the thread was when it was signalled.
fn is_accepted(parts: &mut Parts, index: SlotIndex, frames: &[u64]) -> bool {
    !frames.first().is_some_and(|pc| parts.syscalls.follows_syscall(*pc)) || {
        let patience = parts.schedule.delay * PATIENCE;
        is_system_time(parts, index, 0, UNIT, patience)
    }
}

/// Whether a thread whose timer did not fire was in a system call, as far as the kernel's account has room for that. Otherwise the
/// timer was late, by milliseconds on a busy machine. The last `kept` ns of what the thread ran are not asked for. From `patience` ns
/// on, the time counts as time in calls in any case.
pub(crate) fn timed_in_call(parts: &mut Parts, index: SlotIndex, kept: u64, patience: u64) -> bool {
    // Of a thread without system time, no more than one in four hundred.
    let slack = (parts.threads.get(index).time.account.assigned() / 400).min(UNIT);
    is_system_time(parts, index, kept, slack, patience)
}

/// Whether the kernel's account of system time has room for what the thread ran since its last stack, without the last `kept` ns.
fn is_system_time(parts: &mut Parts, index: SlotIndex, kept: u64, slack: u64, patience: u64) -> bool {
    let thread = parts.threads.get(index);
    let account = &thread.time.account;
    let doubtful = Doubtful {
        time: account.pending().saturating_sub(kept),
        given: account.assigned(),
        cpu: account.cpu(),
        from_start: thread.from_start,
        delay: parts.schedule.delay,
        slack,
        patience,
    };
    thread.call_ends.accepts(doubtful, || parts.folder.system_time(thread.header.tid))
}
