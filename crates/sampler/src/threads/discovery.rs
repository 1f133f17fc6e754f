//! Finds threads, and tracks each from its start to its end.
//!
//! A thread is found in three ways, in any order: it reports its own start and exit (the preload library replaces
//! `pthread_create`), a scan of the task folder lists it, and its CPU clock is gone.

use crate::parts::Parts;
use crate::run_state;
use crate::signals::{receive, timers};
use crate::threads::own;
use stackglass_host::thread_events::ThreadEvent;
use stackglass_host::{SlotIndex, system};
use stackglass_sampling::CpuAccount;
use stackglass_wire::Counter;

/// New threads tracked in one scan; the others wait for the next tick.
const NEW_AT_A_TIME: usize = 512;

/// Lists the threads, tracks new ones, and removes those that have ended.
pub(crate) fn scan(parts: &mut Parts, now: u64, is_first: bool) {
    if own::expects_helper() {
        parts.due.scan = true;
        parts.due.first_scan |= is_first;
        return;
    }
    let is_first = is_first | core::mem::take(&mut parts.due.first_scan);
    parts.shared.count(Counter::Scans);
    for i in 0..parts.threads.len() {
        let index = parts.threads.nth(i);
        parts.threads.get(index).is_listed = false;
    }
    let (mut new, mut new_len) = ([0u32; NEW_AT_A_TIME], 0);
    let mut has_more = false;
    let (sampler, threads) = (parts.shared.tid, &mut *parts.threads);
    let is_complete = parts.folder.scan(parts.scan_buffer, |tid| {
        if tid == sampler || own::is_ours(tid) {
            return;
        }
        match threads.lookup(tid) {
            Some(index) => threads.get(index).is_listed = true,
            None if new_len < new.len() => {
                new[new_len] = tid;
                new_len += 1;
            }
            None => has_more = true,
        }
    });
    if !is_complete {
        return;
    }
    // A listed thread has reported its start. If its event were read later, it would be taken for another thread.
    read_events(parts, now);
    remove_ended(parts);
    for &tid in &new[..new_len] {
        let Some(cpu) = system::thread_cpu(tid).filter(|_| parts.threads.lookup(tid).is_none()) else {
            continue;
        };
        // A thread that is found late began at the latest as long ago as it has run.
        let (began, cpu) = if is_first { (now, cpu) } else { (now.saturating_sub(cpu), 0) };
        track(parts, tid, began, cpu);
    }
    // If more were listed than fit, the next tick goes on.
    parts.due.scan |= has_more;
    run_state::begin();
}

fn remove_ended(parts: &mut Parts) {
    let mut i = 0;
    while i < parts.threads.len() {
        let index = parts.threads.nth(i);
        let thread = parts.threads.get(index);
        // A listing may leave out a live thread if others end meanwhile, because it goes on by position
        // (`proc_task_readdir` in linux/fs/proc/base.c).
        if thread.is_listed || system::thread_cpu(thread.header.tid).is_some() {
            i += 1;
        } else {
            untrack(parts, index);
        }
    }
}

/// Reads the events that threads have reported.
pub(crate) fn read_events(parts: &mut Parts, now: u64) {
    while let Some(event) = parts.shared.guest.thread_events.pop() {
        match event {
            ThreadEvent::Start { tid, at } => {
                if let Some(old) = parts.threads.lookup(tid) {
                    let thread = parts.threads.get(old);
                    if !thread.is_exiting {
                        // A scan found the thread before its event was read.
                        thread.has_reported = true;
                        continue;
                    }
                    untrack(parts, old);
                }
                if parts.exited.remove(tid, at) {
                    continue;
                }
                if let Some(index) = track(parts, tid, at.min(now), 0) {
                    parts.threads.get(index).has_reported = true;
                }
            }
            ThreadEvent::Exit { tid, at, cpu } => {
                let Some(index) = parts.threads.lookup(tid) else { continue };
                let thread = parts.threads.get(index);
                thread.is_exiting = true;
                thread.time.account.update(at.min(now), cpu);
                thread.time.extend_sleeping(&mut parts.events.of(&mut thread.header), at.min(now));
            }
        }
    }
}

/// Tracks a thread from now on, if there is room. `cpu` is what its clock showed when it `began`.
pub(crate) fn track(parts: &mut Parts, tid: u32, began: u64, cpu: u64) -> Option<SlotIndex> {
    let account = CpuAccount::open(began, cpu);
    let Some(index) = parts.threads.insert(tid, account, began) else {
        parts.shared.count(Counter::ThreadsUnseen);
        return None;
    };
    parts.shared.count(Counter::Threads);
    parts.shared.guest.slot(index).assign(tid);
    parts.task_names.thread_added();
    if let Some(name) = parts.folder.name(tid) {
        parts.threads.get(index).header.name = name;
    }
    if cpu > 0 {
        // What the thread waited before it was tracked is no part of the recording.
        let before = parts.waited(index).unwrap_or(0);
        parts.threads.get(index).waits.before = before;
    }
    Some(index)
}

/// Ends the entry of a thread. The thread itself may live on.
pub(crate) fn untrack(parts: &mut Parts, index: SlotIndex) {
    receive::discard(parts, index);
    if parts.threads.get(index).timers.is_some() {
        receive::collect(parts);
    }
    timers::finish(parts, index);
    let thread = parts.threads.get(index);
    thread.files.close();
    parts.events.end(thread);
    if !thread.has_reported {
        parts.exited.insert(thread.header.tid, system::now());
    }
    parts.threads.remove(index);
    parts.shared.guest.slot(index).assign(0);
}
