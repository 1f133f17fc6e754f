//! Sends the sampling signal, and finds out why an answer does not come.

use crate::parts::Parts;
use crate::signals::pending::{ChosenTask, PendingSignal};
use crate::threads::status::SignalState;
use stackglass_host::{SignalToken, SlotIndex, alternate_stack, restart, signal};
use stackglass_proc_text::{Call, SleepPlace};
use stackglass_wire::{Counter, cut};

/// A signal not answered for so long is checked, ns.
const ANSWER_DUE: u64 = 100_000_000;
/// A thread that blocks the signal is signalled again after this, ns.
const BLOCKED_FOR: u64 = 500_000_000;
/// A thread on a stack without room for a walk is signalled again after this, ns.
pub(crate) const NO_ROOM_FOR: u64 = 100_000_000;
/// How often a thread's seccomp state is read, ns.
const CONFINEMENT_EVERY: u64 = 20_000_000;

/// What a signal is sent for.
#[derive(Clone, Copy, Default)]
pub(crate) struct Purpose {
    /// Where the thread sleeps, if it sleeps.
    pub(crate) asleep_at: Option<SleepPlace>,
    /// The task of a wall-time profile that needs the stack.
    pub(crate) chosen: Option<ChosenTask>,
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
        && thread.pending.is_none()
        && now >= thread.blocked_until
        && restart::restarts_by_itself(number, arguments, is_pipe)
}

/// Why a thread may not be signalled now, for its unsampled time and for the counters.
pub(crate) fn reason_against(parts: &mut Parts, index: SlotIndex, now: u64) -> Option<(u8, Counter)> {
    if now < parts.threads.get(index).blocked_until {
        return Some((cut::BLOCKED, Counter::Blocked));
    }
    (parts.signals.is_lost || !may_run_handler(parts, index, now))
        .then_some((cut::NOT_TAKEN, Counter::NotSignalled))
}

/// Sends the signal with a mailbox. Where that cannot be, what the thread ran becomes an unsampled sample.
pub(crate) fn send(parts: &mut Parts, index: SlotIndex, now: u64, purpose: Purpose) {
    let shared = parts.shared;
    if let Some((reason, counter)) = reason_against(parts, index, now) {
        shared.count(counter);
        return push_unsampled(parts, index, now, reason);
    }
    let mailboxes = &shared.guest.mailboxes;
    let Some(reservation) = parts.signals.reserve(mailboxes) else {
        return shared.count(Counter::NoMailbox);
    };
    let thread = parts.threads.get(index);
    let token = SignalToken { mailbox: reservation.mailbox, slot: index, generation: reservation.generation };
    match signal::send(thread.header.tid, token) {
        Ok(()) => {
            let Purpose { asleep_at, chosen } = purpose;
            let check_mask_at = parts.schedule.delay / 2;
            thread.pending = Some(PendingSignal {
                reservation,
                sent: now,
                asleep_at,
                ran: 0,
                check_mask_at,
                is_blocked: false,
                chosen,
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

/// A signal is out, and the thread has run `ran` ns since the last observation. If the thread blocks the signal for a while, as in
/// handlers on small stacks, what it runs is unsampled: the answer will come from the place where the mask is restored.
pub(crate) fn check_mask(parts: &mut Parts, index: SlotIndex, now: u64, ran: u64) {
    let thread = parts.threads.get(index);
    let Some(pending) = &mut thread.pending else { return };
    pending.ran += ran;
    if !pending.is_blocked {
        if pending.ran < pending.check_mask_at {
            return;
        }
        // A thread may run in the kernel for long without answering, so the checks become rarer.
        pending.check_mask_at = pending.ran.saturating_mul(2);
        let Some(signal) = signal::installed() else { return };
        if !parts.folder.signal_state(thread.header.tid, signal).is_some_and(SignalState::is_held_back) {
            return;
        }
        pending.is_blocked = true;
        parts.shared.count(Counter::Blocked);
    }
    push_unsampled(parts, index, now, cut::BLOCKED);
}

/// Revokes a signal that has been out for too long because the thread blocks it.
pub(crate) fn check_overdue(parts: &mut Parts, index: SlotIndex, now: u64) {
    let shared = parts.shared;
    let thread = parts.threads.get(index);
    let Some(pending) = &mut thread.pending else { return };
    if now.saturating_sub(pending.sent) < ANSWER_DUE {
        return;
    }
    let state = signal::installed().and_then(|signal| parts.folder.signal_state(thread.header.tid, signal));
    if state.is_some_and(|state| !state.is_held_back()) {
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
    thread.ever_blocked = true;
    thread.blocked_until = now + BLOCKED_FOR;
    shared.count(Counter::Blocked);
    push_unsampled(parts, index, now, cut::BLOCKED);
}
