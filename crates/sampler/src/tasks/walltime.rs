//! The wall-time profile: each tick samples one live task, chosen at random, running or waiting.
//!
//! So every task is sampled equally often, whatever it does, and each sample stands for the time since the last sample.
//! A task that is being polled has the stack of its thread. A task that waits has no stack: its sample holds the time
//! that it has waited, and the number of a question for its await stack ([`waits`]). If no task is live, threads are chosen
//! instead.

use crate::parts::Parts;
use crate::signals::pending::ChosenTask;
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

/// One tick: a sample of one task, or of one thread.
pub(crate) fn tick(parts: &mut Parts, now: u64) {
    for mailbox in 0..MAILBOXES {
        if let Some(index) = parts.signals.thread_of(mailbox) {
            send::check_overdue(parts, index, now);
        }
    }
    let time = parts.walltime.take_time(now);
    let chosen = |polled| ChosenTask { task: polled, time, count: 1 };
    match task::pool().and_then(|pool| Some((pool, parts.walltime.choose(pool)?))) {
        Some((pool, LiveTask { entry, polled })) => {
            match pool.owner_of(entry).and_then(|tid| parts.threads.lookup(tid)) {
                Some(index) => sample(parts, index, now, chosen(polled)),
                None => push_waiting_task(parts, now, chosen(polled)),
            }
        }
        None if parts.threads.len() > 0 => {
            let i = parts.walltime.below(parts.threads.len());
            let index = parts.threads.nth(i);
            sample(parts, index, now, chosen(Polled::default()));
        }
        None => parts.walltime.put_back(chosen(Polled::default())),
    }
}

/// Gets the stack of the thread for this sample.
fn sample(parts: &mut Parts, index: SlotIndex, now: u64, chosen: ChosenTask) {
    let thread = parts.threads.get(index);
    let (tid, is_blocked) = (thread.header.tid, now < thread.blocked_until);
    if let Some(pending) = &mut thread.pending {
        // Its stack is still to come: a thread that waits for a CPU answers late.
        match &mut pending.chosen {
            Some(before) if before.task == chosen.task => {
                before.time += chosen.time;
                before.count += 1;
            }
            _ => parts.walltime.put_back(chosen),
        }
        return;
    }
    let Some(cpu) = system::thread_cpu(tid) else {
        parts.due.scan = true;
        return parts.walltime.put_back(chosen);
    };
    match parts.state(index) {
        ThreadState::Asleep(sleep) => sample_sleeper(parts, index, now, cpu, sleep, chosen),
        _ if is_blocked => {
            let stack = Stack { task: chosen.task.task, ..Stack::unsampled(cut::BLOCKED) };
            push(parts, index, now, ChosenTask { count: 0, ..chosen }, stack);
        }
        _ => signal(parts, index, now, Purpose { asleep_at: None, chosen: Some(chosen) }),
    }
}

fn sample_sleeper(parts: &mut Parts, index: SlotIndex, now: u64, cpu: u64, sleep: Sleep, chosen: ChosenTask) {
    let polled = parts.polled(index);
    match read::read(parts, index, now, cpu, sleep) {
        SleepingStack::None => parts.walltime.put_back(chosen),
        SleepingStack::NeedsSignal => {
            signal(parts, index, now, Purpose { asleep_at: Some(sleep.place), chosen: Some(chosen) });
        }
        SleepingStack::Read(read) => {
            let thread = parts.threads.get(index);
            parts.task_names.push_polled(&mut parts.events, &mut thread.header, polled);
            if !is_of(parts, index, chosen, polled.task) {
                return push_waiting_task(parts, now, chosen);
            }
            let stack = Stack { frames: parts.sleep.frames(read.len), cut: read.cut, task: polled.task };
            let header = &mut parts.threads.get(index).header;
            if !parts.events.push_walltime_sample(header, now, chosen.time, stack, chosen.count) {
                parts.walltime.put_back(chosen);
            }
        }
    }
}

/// Sends a signal for a sample. If none goes out, the sample has found nothing.
fn signal(parts: &mut Parts, index: SlotIndex, now: u64, purpose: Purpose) {
    send::send(parts, index, now, purpose);
    if parts.threads.get(index).pending.is_none()
        && let Some(chosen) = purpose.chosen
    {
        parts.walltime.put_back(chosen);
    }
}

/// The stack of a signalled thread has come.
pub(crate) fn push_signalled(
    parts: &mut Parts,
    index: SlotIndex,
    now: u64,
    chosen: ChosenTask,
    stack: Stack<'_>,
) {
    if is_of(parts, index, chosen, stack.task) {
        push(parts, index, now, chosen, stack);
    } else {
        push_waiting_task(parts, now, chosen);
    }
}

fn push(parts: &mut Parts, index: SlotIndex, now: u64, chosen: ChosenTask, stack: Stack<'_>) {
    let header = &mut parts.threads.get(index).header;
    if !parts.events.push_walltime_sample(header, now, chosen.time, stack, chosen.count) {
        parts.walltime.put_back(chosen);
    }
}

/// Whether a stack of the thread that polled `task` answers the question: the task is the one that was chosen, or one that the
/// chosen task polls. Otherwise the chosen task's poll has ended meanwhile.
fn is_of(parts: &mut Parts, index: SlotIndex, chosen: ChosenTask, task: u64) -> bool {
    let polled = chosen.task;
    if polled.task == 0 || polled.task == task {
        return true;
    }
    let tid = parts.threads.get(index).header.tid;
    let is_still_polled = |pool: &TaskPool| {
        let entry = pool.entry(polled.entry)?;
        Some(entry.id() == polled.task && pool.owner_of(entry)? == tid)
    };
    task != 0 && task::pool().and_then(is_still_polled).unwrap_or(false)
}

/// Pushes a task that no thread polls now, with the time that it has waited.
fn push_waiting_task(parts: &mut Parts, now: u64, chosen: ChosenTask) {
    let Some(entry) = task::pool().and_then(|pool| pool.entry(chosen.task.entry)) else { return };
    if parts.threads.len() == 0 {
        return;
    }
    // An event needs a thread: the first one there is.
    let index = parts.threads.nth(0);
    let since = entry.since().max(parts.walltime.began);
    let text = task::unsent_text(chosen.task);
    if entry.id() != chosen.task.task {
        // The task has ended.
        return parts.walltime.put_back(chosen);
    }
    let thread = parts.threads.get(index);
    parts.task_names.push(&mut parts.events, &mut thread.header, chosen.task, text);
    let words = [now.saturating_sub(since), waits::ask(entry, chosen.task).unwrap_or(0)];
    push(parts, index, now, chosen, Stack { frames: &words, cut: cut::WAITS, task: chosen.task.task });
}
