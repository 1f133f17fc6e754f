//! Reads the stacks that timers have taken, and gives them their time.

use crate::off_cpu;
use crate::parts::Parts;
use crate::signals::attribution::{Given, TimedStack};
use crate::signals::{send, stack_bounds, thread_timers, timers};
use crate::threads::status::SignalState;
use stackglass_host::mailbox::{Hit, HitTimer, MAILBOXES, SampleHeader};
use stackglass_host::{SlotIndex, signal, system};
use stackglass_sampling::Stack;
use stackglass_unwind::walk::Cut;
use stackglass_wire::{Counter, cut};

/// Reads every stack that is complete, in their order.
pub(crate) fn collect(parts: &mut Parts, now: u64) {
    let guest = parts.shared.guest;
    let (mut ready, mut count) = ([(0u32, 0u8); MAILBOXES], 0);
    for (number, mailbox) in guest.mailboxes[..parts.timers.mailboxes].iter().enumerate() {
        if parts.signals.thread_of(number).is_none()
            && let Some((_, hit, ..)) = mailbox.read_hit()
        {
            ready[count] = (hit.order, number as u8);
            count += 1;
        }
    }
    let ready = &mut ready[..count];
    // The count wraps around.
    let newest = guest.hits.load(core::sync::atomic::Ordering::Relaxed);
    ready.sort_unstable_by_key(|(order, _)| core::cmp::Reverse(newest.wrapping_sub(*order)));
    let hit_of = |number: u8| guest.mailboxes[number as usize].read_hit().map(|(_, hit, ..)| hit);
    for (i, (_, number)) in ready.iter().enumerate() {
        let mailbox = &guest.mailboxes[*number as usize];
        let Some((generation, hit, header, frames)) = mailbox.read_hit() else { continue };
        // The frequent timer's stacks share the time since the last tick.
        let later = ready[i + 1..].iter().filter_map(|(_, number)| hit_of(*number));
        let more = later.filter(|other| (other.slot, other.timer) == (hit.slot, HitTimer::User)).count();
        if parts.threads.tid_at(hit.slot) == Some(hit.tid) {
            receive(parts, hit, &header, frames, more as u64 + 1, now);
        } else {
            parts.shared.count(Counter::StaleSignal);
        }
        mailbox.release(generation);
    }
}

fn receive(parts: &mut Parts, hit: Hit, header: &SampleHeader, frames: &[u64], count: u64, now: u64) {
    let index: SlotIndex = hit.slot;
    let shared = parts.shared;
    let thread = parts.threads.get(index);
    thread.alternate = header.alternate;
    parts.task_names.push(&mut parts.events, &mut thread.header, header.polled, header.text);
    shared.count(Counter::SignalsRunning);
    let lateness = timers::heard(parts, &hit);
    if header.no_room {
        let thread = parts.threads.get(index);
        thread.blocked_until = now + send::NO_ROOM_FOR;
        thread_timers::close(&mut thread.timers, shared.guest);
        shared.count(Counter::NotSignalled);
        return send::push_unsampled(parts, index, now, cut::NOT_TAKEN);
    }
    stack_bounds::update(shared.guest.slot(index), header);
    let is_at_end = frames.first().is_some_and(|pc| parts.syscalls.follows_syscall(*pc));
    if is_at_end && hit.timer == HitTimer::Call && parts.syscalls.follows_ring_wait(frames[0]) {
        timers::avoid_rings(parts, index);
    }
    let thread = parts.threads.get(index);
    if thread.timers.is_none_or(|timers| timers.is_blocked) {
        return;
    }
    shared.count(Counter::StacksRunning);
    if header.cut != 0 {
        shared.count(Counter::Cut);
        parts.due.modules |= header.cut == Cut::NoModule as u8;
    }
    // The stack stands for what the thread has run until now. One that has ended has run until its handler at least: the sampler may
    // have waited for a CPU since its last observation.
    let account = &mut thread.time.account;
    match system::thread_cpu(hit.tid) {
        Some(cpu) => account.update(system::now(), cpu),
        None => account.update(account.until() + hit.cpu.saturating_sub(account.cpu()), hit.cpu),
    };
    off_cpu::assign_after_run(parts, index, now);
    let thread = parts.threads.get(index);
    let Some(timers) = &mut thread.timers else { return };
    let (pending, cpu) = (thread.time.account.pending(), thread.time.account.cpu());
    let stack = TimedStack { timer: hit.timer, is_at_end, lateness, count, pending, cpu };
    let holds_back = || {
        let state = signal::installed().and_then(|signal| parts.folder.signal_state(hit.tid, signal));
        state.is_some_and(SignalState::is_held_back)
    };
    let given = timers.attribution.give(stack, parts.schedule.tick, holds_back);
    let sink = &mut parts.events.of(&mut thread.header);
    match given {
        Given::Time(time) => {
            let stack = Stack { frames, cut: header.cut, task: header.polled.task };
            thread.time.push_part(sink, now, stack, time);
        }
        Given::Blocked(time) => {
            thread.ever_blocked = true;
            shared.count(Counter::Blocked);
            thread.time.push_unsampled_part(sink, now, cut::BLOCKED, time);
        }
    }
}
