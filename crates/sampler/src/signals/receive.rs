//! Reads the samples that the handler has written, and gives them their time.

use crate::parts::Parts;
use crate::signals::call_ends::Doubtful;
use crate::signals::pending::{PendingSignal, Reservation};
use crate::signals::{hits, send, stack_bounds};
use crate::tasks::walltime;
use stackglass_host::mailbox::{MAILBOXES, SampleHeader};
use stackglass_host::{SlotIndex, system};
use stackglass_sampling::Stack;
use stackglass_unwind::walk::Cut;
use stackglass_wire::{Counter, cut};

/// Reads every sample that is complete.
pub(crate) fn collect(parts: &mut Parts) {
    for mailbox in 0..MAILBOXES {
        if let Some(index) = parts.signals.thread_of(mailbox) {
            receive(parts, index);
        }
    }
    if parts.timers.are_allowed() {
        hits::collect(parts, system::now());
    }
}

/// Ends the wait for a thread's sample, because the thread has ended or sampling stops.
pub(crate) fn discard(parts: &mut Parts, index: SlotIndex) {
    if receive(parts, index) {
        return;
    }
    let Some(pending) = parts.threads.get(index).pending.take() else { return };
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
    parts.task_names.push(&mut parts.events, &mut thread.header, header.polled, header.text);
    let stack = Stack { frames, cut: header.cut, task: header.polled.task };
    if let Some(chosen) = pending.chosen {
        walltime::push_signalled(parts, index, pending.sent, chosen, stack);
    }
    if header.no_room {
        parts.shared.count(Counter::NotSignalled);
        parts.threads.get(index).blocked_until = pending.sent + send::NO_ROOM_FOR;
        if pending.chosen.is_none() {
            send::push_unsampled(parts, index, pending.sent, cut::NOT_TAKEN);
        }
    } else {
        push(parts, index, pending, &header, stack);
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
) {
    parts.shared.count(Counter::StacksRunning);
    if header.cut != 0 && !pending.is_blocked {
        parts.shared.count(Counter::Cut);
        parts.due.modules |= header.cut == Cut::NoModule as u8;
    }
    let is_walltime = pending.chosen.is_some();
    let is_running = !is_walltime && !pending.is_blocked && pending.asleep_at.is_none();
    let is_accepted = is_running && is_accepted(parts, index, stack.frames);
    let thread = parts.threads.get(index);
    let sink = &mut parts.events.of(&mut thread.header);
    match pending.asleep_at {
        Some(place) => {
            if !is_walltime {
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
    if !frames.first().is_some_and(|pc| parts.syscalls.follows_syscall(*pc)) {
        return true;
    }
    let thread = parts.threads.get(index);
    let account = &thread.time.account;
    let doubtful = Doubtful {
        time: account.pending(),
        given: account.assigned(),
        cpu: account.cpu(),
        from_start: thread.from_start,
        delay: parts.schedule.delay,
    };
    thread.call_ends.accepts(doubtful, || parts.folder.system_time(thread.header.tid))
}
