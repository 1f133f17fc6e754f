//! Tracks each thread from the first tick that lists it to its end.

use super::parts::Parts;
use super::thread::Thread;
use super::{Stopped, access};
use foldhash::HashSet;
use stackglass_procfs::threads::{self, Files};
use stackglass_procfs::{Status, process};
use stackglass_sampling::{CpuAccount, ThreadTime};
use stackglass_wire::{Counter, Event, ThreadId};

/// Lists the threads and tracks new ones.
///
/// # Errors
/// [`Stopped::Gone`] if there is no thread left.
pub(crate) fn list(parts: &mut Parts, now: u64) -> Result<(), Stopped> {
    let list = threads::list(parts.pid);
    parts.untracked.retain(|tid| list.contains(tid));
    let tracked: HashSet<u32> = parts.threads.iter().map(|thread| thread.tid).collect();
    for &tid in &list {
        if !tracked.contains(&tid) && !parts.untracked.contains(&tid) {
            track(parts, tid, now);
        }
    }
    if parts.threads.is_empty() { Err(Stopped::Gone) } else { Ok(()) }
}

fn track(parts: &mut Parts, tid: u32, now: u64) {
    let mut files = Files::new(parts.pid, tid);
    let Some(stat) = files.stat() else { return };
    let name = files.name().unwrap_or_default();
    let has_ended = tid == parts.pid && parts.stacks.living() != tid;
    if has_ended || threads::is_our_name(parts.pid, tid, &name) {
        parts.untracked.insert(tid);
        return;
    }
    parts.last_number += 1;
    let number = ThreadId(parts.last_number);
    if !parts.events.push(&Event::ThreadStart { thread: number, tid, at: now, name }) {
        return;
    }
    parts.events.count(Counter::Threads);
    parts.threads.push(Thread {
        tid,
        number,
        name,
        files,
        time: ThreadTime::new(CpuAccount::open_with(now, stat)),
        stat,
        is_seized: parts.has_execed && access::is_traced_by_us(tid),
        stop: None,
        put_back: None,
        is_refused: false,
        sampling: None,
        needs_stop: false,
        due: parts.tick,
        interval: 1,
    });
}

/// Ends a thread, which is gone.
pub(crate) fn untrack(parts: &mut Parts, index: usize) {
    finish(parts, index);
    let thread = parts.threads.swap_remove(index);
    let (at, cpu) = (thread.time.account.until(), thread.time.account.assigned());
    parts.events.push(&Event::ThreadEnd { thread: thread.number, at, cpu, flags: 0 });
    if thread.is_seized {
        parts.ending.push(thread.tid);
    }
    if Status::read(thread.tid).is_some_and(|status| status.process == parts.pid) {
        parts.untracked.insert(thread.tid);
    }
    if thread.tid == parts.stacks.living() {
        find_living(parts);
    }
    // The folder loses its link soon. Listing the threads finds out whether this was the last one.
    parts.must_list = true;
}

/// Gives what is left of a thread's time.
pub(crate) fn finish(parts: &mut Parts, index: usize) {
    let thread = &mut parts.threads[index];
    thread.time.finish(&mut parts.events.of(thread.number));
}

/// Reads memory through another thread, if the one so far has ended.
pub(crate) fn find_living(parts: &mut Parts) {
    if let Some(living) = process::living_thread(parts.pid)
        && living != parts.stacks.living()
    {
        parts.stacks.read_through(living);
    }
}
