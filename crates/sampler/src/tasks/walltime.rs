//! The wall-time profile: each tick looks at one live task, chosen at random, running or waiting.
//!
//! So every task is looked at equally often, whatever it does, and each sample stands for the time since the last sample.
//! A task that is being polled has the stack of its thread. A task that waits has no stack: its sample holds the time
//! that it has waited, and the number of a question for its await stack ([`waits`]). If no task is live, threads are chosen
//! instead.

use crate::parts::Parts;
use crate::signals::pending::TaskLook;
use crate::signals::send::{self, Purpose};
use crate::sleep::read::{self, SleepingStack};
use crate::tasks::choice::LiveTask;
use crate::tasks::waits;
use stackglass_host::mailbox::MAILBOXES;
use stackglass_host::task::{self, Polled, TaskPool};
use stackglass_host::{SlotIndex, system};
use stackglass_proc_text::{Sleep, ThreadState};
use stackglass_sampling::Stack;
use stackglass_wire::cut;

/// Sampling begins.
pub(crate) fn begin(parts: &mut Parts, now: u64) {
    parts.walltime.begin(now);
    if !parts.walltime.is_on {
        return;
    }
    if let Some(pool) = task::pool_or_new() {
        pool.set_timed(true);
        // Times that an earlier profile left are too early.
        (1..=pool.entries_used())
            .filter_map(|number| pool.entry(number))
            .for_each(|entry| entry.set_since(0));
    }
}

/// Sampling ends.
pub(crate) fn finish(parts: &mut Parts) {
    if let Some(pool) = task::pool().filter(|_| parts.walltime.is_on) {
        pool.set_timed(false);
    }
}

/// One tick: a look at one task, or at one thread.
pub(crate) fn tick(parts: &mut Parts, now: u64) {
    for mailbox in 0..MAILBOXES {
        if let Some(index) = parts.signals.thread_of(mailbox) {
            send::check_overdue(parts, index, now);
        }
    }
    let time = parts.walltime.take_time(now);
    let look = |polled| TaskLook { task: polled, time, count: 1 };
    match task::pool().and_then(|pool| Some((pool, parts.walltime.choose(pool)?))) {
        Some((pool, LiveTask { entry, polled })) => {
            match pool.owner_of(entry).and_then(|tid| parts.threads.lookup(tid)) {
                Some(index) => look_at(parts, index, now, look(polled)),
                None => push_waiting_task(parts, now, look(polled)),
            }
        }
        None if parts.threads.len() > 0 => {
            let i = parts.walltime.below(parts.threads.len());
            let index = parts.threads.nth(i);
            look_at(parts, index, now, look(Polled::default()));
        }
        None => parts.walltime.put_back(look(Polled::default())),
    }
}

/// Gets the stack of the thread for this look.
fn look_at(parts: &mut Parts, index: SlotIndex, now: u64, look: TaskLook) {
    let thread = parts.threads.get(index);
    let (tid, is_blocked) = (thread.header.tid, now < thread.blocked_until);
    if let Some(pending) = &mut thread.pending {
        // Its stack is still to come: a thread that waits for a CPU answers late.
        match &mut pending.look {
            Some(before) if before.task == look.task => {
                before.time += look.time;
                before.count += 1;
            }
            _ => parts.walltime.put_back(look),
        }
        return;
    }
    let Some(cpu) = system::thread_cpu(tid) else {
        parts.due.scan = true;
        return parts.walltime.put_back(look);
    };
    match parts.state(index) {
        ThreadState::Asleep(sleep) => look_at_sleeper(parts, index, now, cpu, sleep, look),
        _ if is_blocked => {
            let stack = Stack { task: look.task.task, ..Stack::unsampled(cut::BLOCKED) };
            push(parts, index, now, TaskLook { count: 0, ..look }, stack);
        }
        _ => signal(parts, index, now, Purpose { asleep_at: None, look: Some(look) }),
    }
}

fn look_at_sleeper(parts: &mut Parts, index: SlotIndex, now: u64, cpu: u64, sleep: Sleep, look: TaskLook) {
    let polled = parts.polled(index);
    match read::read(parts, index, now, cpu, sleep) {
        SleepingStack::None => parts.walltime.put_back(look),
        SleepingStack::NeedsSignal => {
            signal(parts, index, now, Purpose { asleep_at: Some(sleep.place), look: Some(look) });
        }
        SleepingStack::Read(read) => {
            let thread = parts.threads.get(index);
            parts.task_names.push_polled(&mut parts.events, &mut thread.header, polled);
            if !is_of(parts, index, look, polled.task) {
                return push_waiting_task(parts, now, look);
            }
            let stack = Stack { frames: parts.sleep.frames(read.len), cut: read.cut, task: polled.task };
            let header = &mut parts.threads.get(index).header;
            if !parts.events.push_look(header, now, look.time, stack, look.count) {
                parts.walltime.put_back(look);
            }
        }
    }
}

/// Sends a signal for a look. If none goes out, the look has found nothing.
fn signal(parts: &mut Parts, index: SlotIndex, now: u64, purpose: Purpose) {
    send::send(parts, index, now, purpose);
    if parts.threads.get(index).pending.is_none()
        && let Some(look) = purpose.look
    {
        parts.walltime.put_back(look);
    }
}

/// The stack of a signalled thread has come.
pub(crate) fn push_signalled(
    parts: &mut Parts,
    index: SlotIndex,
    now: u64,
    look: TaskLook,
    stack: Stack<'_>,
) {
    if is_of(parts, index, look, stack.task) {
        push(parts, index, now, look, stack);
    } else {
        push_waiting_task(parts, now, look);
    }
}

fn push(parts: &mut Parts, index: SlotIndex, now: u64, look: TaskLook, stack: Stack<'_>) {
    let header = &mut parts.threads.get(index).header;
    if !parts.events.push_look(header, now, look.time, stack, look.count) {
        parts.walltime.put_back(look);
    }
}

/// Whether a stack of the thread that polled `task` answers the look: the task is the one that was chosen, or one that the
/// chosen task polls. Otherwise the chosen task's poll has ended meanwhile.
fn is_of(parts: &mut Parts, index: SlotIndex, look: TaskLook, task: u64) -> bool {
    let chosen = look.task;
    if chosen.task == 0 || chosen.task == task {
        return true;
    }
    let tid = parts.threads.get(index).header.tid;
    let is_still_polled = |pool: &TaskPool| {
        let entry = pool.entry(chosen.entry)?;
        Some(entry.id() == chosen.task && pool.owner_of(entry)? == tid)
    };
    task != 0 && task::pool().and_then(is_still_polled).unwrap_or(false)
}

/// Pushes a task that no thread polls now, with the time that it has waited.
fn push_waiting_task(parts: &mut Parts, now: u64, look: TaskLook) {
    let Some(entry) = task::pool().and_then(|pool| pool.entry(look.task.entry)) else { return };
    if parts.threads.len() == 0 {
        return;
    }
    // An event needs a thread: the first one there is.
    let index = parts.threads.nth(0);
    let since = entry.since().max(parts.walltime.began);
    let text = task::unsent_text(look.task);
    if entry.id() != look.task.task {
        // The task has ended.
        return parts.walltime.put_back(look);
    }
    let thread = parts.threads.get(index);
    parts.task_names.push(&mut parts.events, &mut thread.header, look.task, text);
    let words = [now.saturating_sub(since), waits::ask(entry, look.task).unwrap_or(0)];
    push(parts, index, now, look, Stack { frames: &words, cut: cut::WAITS, task: look.task.task });
}
