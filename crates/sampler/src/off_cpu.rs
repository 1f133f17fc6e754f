//! Assigns the time in which a thread did not run: it slept, or waited for a CPU.

use crate::parts::Parts;
use stackglass_host::SlotIndex;
use stackglass_proc_text::ThreadState;
use stackglass_sampling::LastStack;

/// The thread has run. Assigns the time in which it did not: what it waited for CPUs, and what it slept where it was last seen asleep.
pub(crate) fn assign_after_run(parts: &mut Parts, index: SlotIndex, now: u64) {
    push_waiting(parts, index, now, false);
    if parts.threads.get(index).time.last() == LastStack::Sleeping {
        // It slept there until it was woken.
        extend_sleeping(parts, index, now);
    }
}

/// The thread has no CPU. Assigns the time without one. If it was last seen asleep, and is runnable now, that waits until it has run:
/// then the kernel has counted for how long it was runnable.
pub(crate) fn assign_without_cpu(parts: &mut Parts, index: SlotIndex, now: u64, is_runnable: bool) {
    push_waiting(parts, index, now, is_runnable);
    if !is_runnable || parts.threads.get(index).time.last() != LastStack::Sleeping {
        extend_sleeping(parts, index, now);
    }
}

/// The recording ends. Assigns what a thread waited for CPUs, also if it still waits where it was preempted. Reads nothing of threads
/// that sleep.
pub(crate) fn assign_last_waits(parts: &mut Parts, index: SlotIndex, now: u64) {
    let is_unended = |parts: &mut Parts| parts.threads.get(index).time.unended_wait(None) > 0;
    if is_unended(parts) {
        push_waiting(parts, index, now, false);
        if is_unended(parts) && parts.state(index) == ThreadState::Running {
            push_waiting(parts, index, now, true);
        }
    }
}

/// The last stack gets what the thread did not run.
pub(crate) fn extend_sleeping(parts: &mut Parts, index: SlotIndex, now: u64) {
    let thread = parts.threads.get(index);
    thread.time.extend_sleeping(&mut parts.events.of(&mut thread.header), now);
}

/// A thread did not run all the time since the last poll. Assigns the part in which it waited for a CPU: all of the time if it was
/// last seen running, is runnable, and has not run; otherwise the wait that the kernel has counted.
fn push_waiting(parts: &mut Parts, index: SlotIndex, now: u64, is_runnable: bool) {
    let thread = parts.threads.get(index);
    let rest = thread.time.account.rest(false);
    let may_wait = match thread.time.last() {
        LastStack::Running => true,
        // How long it slept is not known while it is runnable.
        LastStack::Sleeping => !is_runnable,
        LastStack::NoStack | LastStack::Unsampled => false,
    };
    if rest == 0 || !may_wait {
        return;
    }
    let counted_before = thread.waits.before + thread.waits.pushed;
    let waited = if is_runnable {
        rest
    } else {
        parts.waited(index).map_or(0, |all| all.saturating_sub(counted_before))
    };
    let thread = parts.threads.get(index);
    let sink = &mut parts.events.of(&mut thread.header);
    thread.waits.pushed += thread.time.push_waiting(sink, now, waited);
}
