//! Who is there: threads are taken up as they tell of themselves or are found, named, and let go.
//!
//! Three ways to know of a thread: it tells (the preload library stands in front of `pthread_create`), the scan
//! of the task folder lists it, its CPU clock is gone. A thread may be met by all of them in any order.

use crate::memory::Memory;
use crate::run;
use crate::sampler::Sampler;
use stackglass_host::thread_events::ThreadEvent;
use stackglass_host::{SlotIndex, system};
use stackglass_sampling::CpuAccount;
use stackglass_wire::Counter;

/// Names read again at a time.
const NAMES_AT_A_TIME: usize = 8;
/// New threads taken up in one scan; the rest waits for the next tick.
const NEW_AT_A_TIME: usize = 512;

impl Sampler {
    /// Reads some threads' names again: those that are new, and a few of the others in turn.
    pub(crate) fn read_names(&mut self, now: u64) {
        let memory = &mut *self.memory;
        let n = memory.roster.len();
        let mut turns = NAMES_AT_A_TIME;
        for i in 0..n {
            let index = memory.roster.nth(i);
            let thread = memory.roster.get(index);
            let in_turn = turns > 0 && i >= self.next_name;
            if thread.named && !in_turn {
                continue;
            }
            if in_turn {
                turns -= 1;
                self.next_name = i + 1;
            }
            thread.named = true;
            if let Some(name) = memory.tasks.name(thread.tid)
                && name != thread.name
            {
                self.outlet.rename(thread, now, name);
            }
        }
        if self.next_name >= n {
            self.next_name = 0;
        }
    }

    /// Lists the threads: takes up new ones, lets go those that are gone.
    pub(crate) fn scan(&mut self, now: u64, first: bool) {
        if run::expects_helper() {
            (self.scan_soon, self.first_scan_due) = (true, self.first_scan_due | first);
            return;
        }
        let first = first | core::mem::take(&mut self.first_scan_due);
        self.control.counters.add(Counter::Scans, 1);
        for i in 0..self.memory.roster.len() {
            let index = self.memory.roster.nth(i);
            self.memory.roster.get(index).seen = false;
        }
        let (mut found, mut fill) = ([0u32; NEW_AT_A_TIME], 0);
        let mut more = false;
        {
            let Memory { roster, tasks, .. } = &mut *self.memory;
            let own = self.tid;
            let complete = tasks.scan(|tid| {
                if tid == own || run::is_ours(tid) {
                    return;
                }
                match roster.find(tid) {
                    Some(index) => roster.get(index).seen = true,
                    None if fill < found.len() => {
                        found[fill] = tid;
                        fill += 1;
                    }
                    None => more = true,
                }
            });
            if !complete {
                return;
            }
        }
        // Whoever is listed has told so before it could end; heard later, it would be taken for another one.
        self.hear_news(now);
        let mut i = 0;
        while i < self.memory.roster.len() {
            let index = self.memory.roster.nth(i);
            let thread = self.memory.roster.get(index);
            // A listing may leave out who lives, where others end while it is made: it goes on by position
            // (`proc_task_readdir` in linux/fs/proc/base.c).
            if thread.seen || system::thread_cpu(thread.tid).is_some() {
                i += 1;
            } else {
                self.let_go(index);
            }
        }
        for &tid in &found[..fill] {
            let Some(cpu) = system::thread_cpu(tid).filter(|_| self.memory.roster.find(tid).is_none()) else {
                continue;
            };
            // A thread found late began, at the latest, as long ago as it has run.
            let (began, cpu) = if first { (now, cpu) } else { (now.saturating_sub(cpu), 0) };
            self.take_up(tid, began, cpu);
        }
        // More than fit: the next tick goes on.
        self.scan_soon |= more;
    }

    /// What the threads themselves have told.
    pub(crate) fn hear_news(&mut self, now: u64) {
        while let Some(news) = self.guest.thread_events.pop() {
            match news {
                ThreadEvent::Start { tid, at } => {
                    if let Some(old) = self.memory.roster.find(tid) {
                        if !self.memory.roster.get(old).ending {
                            // A scan was faster than its own news.
                            self.memory.roster.get(old).told = true;
                            continue;
                        }
                        self.let_go(old);
                    }
                    if self.memory.departed.was(tid, at) {
                        continue;
                    }
                    if let Some(index) = self.take_up(tid, at.min(now), 0) {
                        self.memory.roster.get(index).told = true;
                    }
                }
                ThreadEvent::Exit { tid, at, cpu } => {
                    let Some(index) = self.memory.roster.find(tid) else { continue };
                    let thread = self.memory.roster.get(index);
                    thread.ending = true;
                    thread.account.update(at.min(now), cpu);
                    self.outlet.rest(thread, at.min(now), false);
                }
            }
        }
    }

    /// Follows a thread from now on, if there is room; `cpu` is what its clock showed when it `began`.
    pub(crate) fn take_up(&mut self, tid: u32, began: u64, cpu: u64) -> Option<SlotIndex> {
        let Memory { roster, tasks, .. } = &mut *self.memory;
        let account = CpuAccount::open(began, cpu);
        let Some(index) = roster.add(tid, account, began) else {
            self.control.counters.add(Counter::ThreadsUnseen, 1);
            return None;
        };
        self.control.counters.add(Counter::Threads, 1);
        self.guest.slot(index).assign(tid);
        self.links_of_tasks.stale = true;
        if let Some(name) = tasks.name(tid) {
            roster.get(index).name = name;
        }
        if cpu > 0 {
            // It lived before: what it waited then is not ours to tell.
            let before = self.waited(index).unwrap_or(0);
            self.memory.roster.get(index).waited.0 = before;
        }
        Some(index)
    }

    /// A thread is gone.
    pub(crate) fn let_go(&mut self, index: SlotIndex) {
        self.dismiss(index);
    }

    /// Ends the record of a thread, which itself may go on.
    pub(crate) fn dismiss(&mut self, index: SlotIndex) {
        self.take_tick(index, system::now());
        self.end_ticking(index);
        self.recall(index);
        self.close_files(index);
        let thread = self.memory.roster.get(index);
        self.outlet.end(thread);
        let (tid, told) = (thread.tid, thread.told);
        if !told {
            self.memory.departed.remember(tid, system::now());
        }
        self.memory.roster.remove(index);
        self.guest.slot(index).assign(0);
    }
}
