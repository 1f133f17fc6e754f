//! Sends the sampling signal, and finds out why an answer does not come.

use crate::parts::Parts;
use crate::signals::pending::{PendingSignal, TaskLook};
use crate::signals::{receive, timers};
use stackglass_host::{SignalToken, SlotIndex, alternate_stack, restart, signal};
use stackglass_sampling::{Call, SleepPlace};
use stackglass_wire::{Counter, cut};

/// A signal not answered for so long is checked, ns.
const ANSWER_DUE: u64 = 100_000_000;
/// A thread that blocks the signal is signalled again after this, ns.
const BLOCKED_FOR: u64 = 500_000_000;
/// Delays after which a timer that has not fired is not just late.
const PATIENCE_WITH_TIMERS: u64 = 32;
/// How often a thread's seccomp state is read, ns.
const CONFINEMENT_EVERY: u64 = 20_000_000;

/// What a signal is sent for.
#[derive(Clone, Copy, Default)]
pub(crate) struct Purpose {
    /// Where the thread sleeps, if it sleeps.
    pub(crate) asleep_at: Option<SleepPlace>,
    /// The look of a wall-time profile that needs the stack.
    pub(crate) look: Option<TaskLook>,
}

/// Whether the handler may run on this thread: it makes system calls, and it needs room on the stack.
fn may_run_handler(parts: &mut Parts, index: SlotIndex, now: u64) -> bool {
    let thread = parts.threads.get(index);
    if now >= thread.confinement_due {
        thread.confinement_due = now + CONFINEMENT_EVERY;
        let own = || parts.folder.confinement(parts.shared.tid).unwrap_or_default();
        let its = parts.folder.confinement(thread.header.tid);
        // A state that cannot be read is not known to allow anything.
        thread.is_confined = !its.is_some_and(|its| its.is_free() || its.is_no_stricter_than(own()));
    }
    !thread.is_confined && alternate_stack::may_signal(thread.alternate as usize)
}

/// Whether a thread that sleeps in `call` may be signalled: only where the kernel itself resumes the call.
pub(crate) fn may_signal_sleeper(parts: &mut Parts, index: SlotIndex, now: u64, call: Option<Call>) -> bool {
    let thread = parts.threads.get(index);
    // In a page fault there is no call.
    let (number, arguments) = call.map_or((-1, [0; 6]), |call| (call.number, call.arguments));
    let is_pipe = |descriptor| parts.folder.is_pipe(thread.header.tid, descriptor);
    !parts.signals.is_lost
        && thread.pending.is_none_or(|pending| pending.timer.is_some())
        && now >= thread.blocked_until
        && restart::restarts_by_itself(number, arguments, is_pipe)
}

/// Sends the signal with a mailbox. Where that cannot be, what the thread ran becomes an unsampled sample.
pub(crate) fn send(parts: &mut Parts, index: SlotIndex, now: u64, purpose: Purpose) {
    let shared = parts.shared;
    if now < parts.threads.get(index).blocked_until {
        shared.count(Counter::Blocked);
        return push_unsampled(parts, index, now, cut::BLOCKED);
    }
    if parts.signals.is_lost {
        return push_unsampled(parts, index, now, cut::NOT_TAKEN);
    }
    if !may_run_handler(parts, index, now) {
        shared.count(Counter::NotSignalled);
        return push_unsampled(parts, index, now, cut::NOT_TAKEN);
    }
    // A sleeping thread with a timer is signalled all the same, if only that shows where it sleeps.
    if parts.threads.get(index).pending.is_some() {
        receive::discard(parts, index);
    }
    let mailboxes = &shared.guest.mailboxes;
    let Some(reservation) = parts.signals.reserve(mailboxes) else {
        return shared.count(Counter::NoMailbox);
    };
    let thread = parts.threads.get(index);
    let token = SignalToken { mailbox: reservation.mailbox, slot: index, generation: reservation.generation };
    let Purpose { asleep_at, look } = purpose;
    let sent = match asleep_at {
        None if parts.timers.are_allowed() => timers::start(parts, index, token).map(Some),
        _ => signal::send(thread.header.tid, token).map(|()| None),
    };
    match sent {
        Ok(timer) => {
            let thread = parts.threads.get(index);
            let check_mask_at = parts.schedule.delay / 2;
            thread.pending = Some(PendingSignal {
                reservation,
                sent: now,
                asleep_at,
                ran: 0,
                check_mask_at,
                is_blocked: false,
                look,
                timer,
            });
            parts.signals.insert(reservation, index);
            shared.count(match asleep_at {
                Some(_) => Counter::SignalsAsleep,
                None => Counter::SignalsRunning,
            });
        }
        Err(errno) => {
            mailboxes[reservation.mailbox as usize].revoke(reservation.generation);
            if errno == libc::ESRCH {
                shared.count(Counter::ThreadGone);
            } else {
                shared.count(Counter::QueueFull);
                push_unsampled(parts, index, now, cut::NOT_TAKEN);
            }
        }
    }
}

pub(crate) fn push_unsampled(parts: &mut Parts, index: SlotIndex, now: u64, reason: u8) {
    let thread = parts.threads.get(index);
    thread.time.push_unsampled(&mut parts.events.of(&mut thread.header), now, reason);
}

/// A signal is out, and the thread has run `ran` ns since the last look. If the thread blocks the signal for a while, as in
/// handlers on small stacks, what it runs is unsampled: the answer will come from the place where the mask is restored. If its
/// timer does not fire, it is in a system call.
pub(crate) fn check_mask(parts: &mut Parts, index: SlotIndex, now: u64, ran: u64) {
    if timers::is_answering(parts, index) {
        return;
    }
    let thread = parts.threads.get(index);
    let Some(pending) = &mut thread.pending else { return };
    pending.ran += ran;
    if pending.is_blocked && pending.timer.is_some() {
        // The timer answers later than the mask is restored.
        pending.is_blocked = signal::installed()
            .and_then(|signal| parts.folder.blocks(thread.header.tid, signal))
            != Some(false);
    }
    if !pending.is_blocked && pending.ran >= pending.check_mask_at {
        // A thread may run in the kernel for long without answering, so the checks become rarer.
        pending.check_mask_at = pending.ran.saturating_mul(2);
        let Some(signal) = signal::installed() else { return };
        if parts.folder.blocks(thread.header.tid, signal) == Some(true) {
            // The handler, which blocks all signals, may have begun meanwhile.
            if timers::is_answering(parts, index) {
                return;
            }
            if let Some(pending) = &mut parts.threads.get(index).pending {
                pending.is_blocked = true;
            }
            parts.shared.count(Counter::Blocked);
        } else if pending.timer.is_some() && !timers::is_in_call(parts, index) {
            // The kernel has refused the signal, or the timer is that of another thread, which has ended.
            parts.shared.count(Counter::TimedOut);
            return receive::discard(parts, index);
        }
    }
    let thread = parts.threads.get(index);
    match thread.pending {
        Some(PendingSignal { is_blocked: true, .. }) => push_unsampled(parts, index, now, cut::BLOCKED),
        Some(PendingSignal { timer: Some(request), .. }) if request.is_in_call => {
            // The period that is under way may end in the thread's own code.
            let kept = timers::last_period(parts, index);
            let patience = parts.schedule.delay * PATIENCE_WITH_TIMERS;
            if !receive::timed_in_call(parts, index, kept, patience) {
                return;
            }
            let thread = parts.threads.get(index);
            thread.time.push_in_call(&mut parts.events.of(&mut thread.header), now, kept);
        }
        _ => {}
    }
}

/// Revokes a signal that has been out for too long because the thread blocks it.
pub(crate) fn check_overdue(parts: &mut Parts, index: SlotIndex, now: u64) {
    let shared = parts.shared;
    let thread = parts.threads.get(index);
    let Some(pending) = &mut thread.pending else { return };
    // The timer of a thread that sleeps waits with it.
    if now.saturating_sub(pending.sent) < ANSWER_DUE || pending.timer.is_some() && !pending.is_blocked {
        return;
    }
    if signal::installed().and_then(|signal| parts.folder.blocks(thread.header.tid, signal)) == Some(false) {
        // The thread has had no CPU, or is in a call that cannot be interrupted.
        shared.count(Counter::TimedOut);
        pending.sent = now;
        return;
    }
    let reservation = pending.reservation;
    if !shared.guest.mailboxes[reservation.mailbox as usize].revoke(reservation.generation) {
        return;
    }
    parts.signals.remove(reservation);
    thread.pending = None;
    timers::close(&mut thread.timer, shared.guest);
    thread.ever_blocked = true;
    thread.blocked_until = now + BLOCKED_FOR;
    shared.count(Counter::Blocked);
    push_unsampled(parts, index, now, cut::BLOCKED);
}
