//! Tracks each thread from the first tick that lists it to its end.

use super::sampled_process::SampledProcess;
use super::thread::Thread;
use super::{Stopped, access};
use foldhash::HashSet;
use stackglass_procfs::threads::{self, Files};
use stackglass_procfs::{Status, process};
use stackglass_sampling::{CpuAccount, PollInterval, ThreadTime};
use stackglass_wire::{Counter, Event, ThreadId};

/// Lists the threads and tracks new ones.
///
/// # Errors
/// [`Stopped::Gone`] if there is no thread left.
pub(crate) fn list(process: &mut SampledProcess, now: u64) -> Result<(), Stopped> {
    let list = threads::list(process.pid);
    process.untracked.retain(|tid| list.contains(tid));
    let tracked: HashSet<u32> = process.threads.iter().map(|thread| thread.tid).collect();
    for &tid in &list {
        if !tracked.contains(&tid) && !process.untracked.contains(&tid) {
            track(process, tid, now);
        }
    }
    if process.threads.is_empty() { Err(Stopped::Gone) } else { Ok(()) }
}

fn track(process: &mut SampledProcess, tid: u32, now: u64) {
    let mut files = Files::new(process.pid, tid);
    let Some(stat) = files.stat() else { return };
    let name = files.name().unwrap_or_default();
    let has_ended = tid == process.pid && process.stacks.living() != tid;
    if has_ended || threads::is_our_name(process.pid, tid, &name) {
        process.untracked.insert(tid);
        return;
    }
    process.last_number += 1;
    let number = ThreadId(process.last_number);
    if !process.events.push(&Event::ThreadStart { thread: number, tid, at: now, name }) {
        return;
    }
    process.events.count(Counter::Threads);
    process.threads.push(Thread {
        tid,
        number,
        name,
        files,
        time: ThreadTime::new(CpuAccount::open_with(now, stat)),
        stat,
        is_seized: process.has_execed && access::is_traced_by_us(tid),
        stop: None,
        put_back: None,
        repeated: None,
        ready_since: None,
        is_refused: false,
        sampling: None,
        deep: None,
        wakeup: None,
        due: process.tick,
        interval: PollInterval::EACH_TICK,
    });
}

/// Ends a thread, which is gone.
pub(crate) fn untrack(process: &mut SampledProcess, index: usize) {
    process.finish_ended(index);
    let thread = process.threads.swap_remove(index);
    let (at, cpu) = (thread.time.account.until(), thread.time.account.assigned());
    process.events.push(&Event::ThreadEnd { thread: thread.number, at, cpu, flags: 0 });
    if thread.is_seized {
        process.ending.push(thread.tid);
    }
    if Status::read(thread.tid).is_some_and(|status| status.process == process.pid) {
        process.untracked.insert(thread.tid);
    }
    if thread.tid == process.stacks.living() {
        find_living(process);
    }
    // The folder loses its link soon. Listing the threads finds out whether this was the last one.
    process.must_list = true;
}

/// Reads memory through another thread, if the one so far has ended.
pub(crate) fn find_living(process: &mut SampledProcess) {
    if let Some(living) = process::living_thread(process.pid)
        && living != process.stacks.living()
    {
        process.stacks.read_through(living);
    }
}
