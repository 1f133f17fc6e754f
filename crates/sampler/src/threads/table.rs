//! The table of threads: one entry for each thread that is tracked, found by kernel id.
//!
//! An entry has the same index as the thread's slot, so that a sample in a mailbox leads to its entry.

use crate::signals::call_ends::CallEnds;
use crate::signals::pending::PendingSignal;
use crate::signals::thread_timers::ThreadTimers;
use crate::threads::files::ThreadFiles;
use core::mem::MaybeUninit;
use stackglass_host::SlotIndex;
use stackglass_host::slot::CAPACITY;
use stackglass_sampling::{CpuAccount, PollInterval, ThreadTime, hash_index};
use stackglass_wire::{ThreadId, ThreadName};

/// Cells of the table from kernel id to entry (a power of two, twice the capacity).
const TABLE: usize = CAPACITY * 2;

/// CPU time that a thread may have used before it is tracked and still count as tracked from its start, ns.
const NEARLY: u64 = 20_000_000;

/// What the reader of the stream knows of a thread.
#[derive(Clone, Copy)]
pub struct ThreadHeader {
    /// Kernel id.
    pub tid: u32,
    /// Number in the stream.
    pub number: ThreadId,
    /// The name last pushed.
    pub name: ThreadName,
    /// When the thread began, for its start event.
    pub began: u64,
    /// The start event was pushed.
    pub is_announced: bool,
}

/// Time that a thread has waited for CPUs, by the kernel's account, ns.
#[derive(Clone, Copy, Default)]
pub struct ProcessorWaits {
    /// Before the thread was tracked.
    pub before: u64,
    /// Pushed since.
    pub pushed: u64,
}

/// One thread.
#[derive(Clone, Copy)]
pub struct ThreadEntry {
    /// What the reader knows.
    pub header: ThreadHeader,
    /// Its time and its last stack.
    pub time: ThreadTime,
    /// Its waits for CPUs.
    pub waits: ProcessorWaits,
    /// The signal that is out.
    pub pending: Option<PendingSignal>,
    /// The handler ran since the last observation: a small advance of the clock is the handler's.
    pub handler_ran: bool,
    /// Which stacks at the ends of system calls are accepted.
    pub call_ends: CallEnds,
    /// The thread is tracked from its start, or nearly.
    pub from_start: bool,
    /// The thread has reported its own start.
    pub has_reported: bool,
    /// The thread has reported that it is about to exit.
    pub is_exiting: bool,
    /// The last scan listed it.
    pub is_listed: bool,
    /// Its name was read again after its first moments.
    pub was_named: bool,
    /// It has blocked the signal when one was due.
    pub ever_blocked: bool,
    /// Not to be signalled before this moment.
    pub blocked_until: u64,
    /// When its seccomp state is read again.
    pub confinement_due: u64,
    /// It may not make the handler's system calls, or that is not known: it is not signalled.
    pub is_confined: bool,
    /// Bytes of its alternate signal stack, 0 for none.
    pub alternate: u64,
    /// From one poll to the next.
    pub interval: PollInterval,
    /// Its open files.
    pub files: ThreadFiles,
    /// Its timers, if they are open.
    pub timers: Option<ThreadTimers>,
    /// It was seen to wait in `io_uring_enter`.
    pub waits_for_rings: bool,
    /// Next in the list of free entries, or position in the list of used ones.
    link: u32,
}

/// All entries. All zeros is an empty table.
pub struct ThreadTable {
    /// Entries below `fresh_from` are initialised.
    entries: [MaybeUninit<ThreadEntry>; CAPACITY],
    /// Index + 1 of the entry, by hashed kernel id; 0 is empty.
    table: [u16; TABLE],
    /// Indexes in use, dense.
    used: [u16; CAPACITY],
    used_len: usize,
    /// Tick of each entry's next poll: apart from the entries, because every tick reads all of them.
    due: [u64; CAPACITY],
    /// Entries at and above this index were never used.
    fresh_from: usize,
    /// Head of the list of entries used before, index + 1.
    free: u32,
    last_number: u32,
}

const _: () = assert!(CAPACITY < u16::MAX as usize);

fn home_of(tid: u32) -> usize {
    hash_index(&[tid.into()], TABLE)
}

impl ThreadTable {
    /// Threads tracked now.
    pub fn len(&self) -> usize {
        self.used_len
    }

    /// The `i`-th tracked thread, in an order that changes when a thread is removed.
    pub fn nth(&self, i: usize) -> SlotIndex {
        SlotIndex(self.used[i % CAPACITY])
    }

    /// Whether a thread is to be polled at this tick.
    pub fn is_due(&self, index: SlotIndex, tick: u64) -> bool {
        self.due[index.0 as usize % CAPACITY] <= tick
    }

    /// Sets the tick of a thread's next poll.
    pub fn set_due(&mut self, index: SlotIndex, tick: u64) {
        self.due[index.0 as usize % CAPACITY] = tick;
    }

    /// An entry.
    ///
    /// # Panics
    /// If the index was never in use.
    pub fn get(&mut self, index: SlotIndex) -> &mut ThreadEntry {
        let index = index.0 as usize;
        assert!(index < self.fresh_from, "the entry is in use");
        // SAFETY: `insert` initialises an entry before it raises `fresh_from` above it, and the assert compares them.
        unsafe { self.entries[index].assume_init_mut() }
    }

    /// The kernel id of the entry's thread; `None` if the entry is not in use.
    pub fn tid_at(&self, index: SlotIndex) -> Option<u32> {
        let index = index.0 as usize;
        (index < self.fresh_from).then(|| self.tid(index)).filter(|tid| *tid != 0)
    }

    fn tid(&self, index: usize) -> u32 {
        assert!(index < self.fresh_from, "the entry is in use");
        // SAFETY: as in `get`.
        unsafe { self.entries[index].assume_init_ref() }.header.tid
    }

    /// The entry of a kernel id.
    pub fn lookup(&self, tid: u32) -> Option<SlotIndex> {
        let mut at = home_of(tid);
        loop {
            match self.table[at] {
                0 => return None,
                i if self.tid(i as usize - 1) == tid => return Some(SlotIndex(i - 1)),
                _ => at = (at + 1) & (TABLE - 1),
            }
        }
    }

    /// Adds a thread that has no entry yet; `None` if there is no room.
    pub fn insert(&mut self, tid: u32, account: CpuAccount, began: u64) -> Option<SlotIndex> {
        let is_fresh = self.free == 0;
        let index = if is_fresh { self.fresh_from } else { self.free as usize - 1 };
        if index >= CAPACITY {
            return None;
        }
        if !is_fresh {
            self.free = self.get(SlotIndex(index as u16)).link;
        }
        self.last_number += 1;
        self.due[index] = 0;
        let number = ThreadId(self.last_number);
        self.entries[index].write(ThreadEntry {
            header: ThreadHeader { tid, number, name: [0; 16], began, is_announced: false },
            time: ThreadTime::new(account),
            waits: ProcessorWaits::default(),
            pending: None,
            handler_ran: false,
            call_ends: CallEnds::default(),
            from_start: account.cpu() < NEARLY,
            has_reported: false,
            is_exiting: false,
            is_listed: true,
            was_named: false,
            ever_blocked: false,
            blocked_until: 0,
            confinement_due: 0,
            is_confined: false,
            alternate: 0,
            interval: PollInterval::EACH_TICK,
            files: ThreadFiles::default(),
            timers: None,
            waits_for_rings: false,
            link: self.used_len as u32,
        });
        if is_fresh {
            self.fresh_from += 1;
        }
        self.used[self.used_len] = index as u16;
        self.used_len += 1;
        let mut at = home_of(tid);
        while self.table[at] != 0 {
            at = (at + 1) & (TABLE - 1);
        }
        self.table[at] = index as u16 + 1;
        Some(SlotIndex(index as u16))
    }

    /// Removes a thread.
    pub fn remove(&mut self, index: SlotIndex) {
        let i = index.0 as usize;
        let free = self.free;
        let entry = self.get(index);
        let (tid, link) = (entry.header.tid, entry.link as usize);
        debug_assert_ne!(tid, 0);
        (entry.header.tid, entry.link) = (0, free);
        self.free = i as u32 + 1;
        // The last of the dense list moves to the free position.
        self.used_len -= 1;
        let moved = self.used[self.used_len];
        if moved != index.0 {
            self.used[link] = moved;
            self.get(SlotIndex(moved)).link = link as u32;
        }
        self.unlink(tid, i as u16 + 1);
    }

    /// Removes an entry from the hash table and moves up the ones that it displaced.
    fn unlink(&mut self, tid: u32, entry: u16) {
        let mut hole = home_of(tid);
        while self.table[hole] != entry {
            if self.table[hole] == 0 {
                return;
            }
            hole = (hole + 1) & (TABLE - 1);
        }
        let mut at = hole;
        loop {
            at = (at + 1) & (TABLE - 1);
            let other = self.table[at];
            if other == 0 {
                break;
            }
            let home = home_of(self.tid(other as usize - 1));
            // It may fill the hole unless its home lies between the hole and itself.
            if (at.wrapping_sub(home) & (TABLE - 1)) >= (at.wrapping_sub(hole) & (TABLE - 1)) {
                self.table[hole] = other;
                hole = at;
            }
        }
        self.table[hole] = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_come_and_go_and_are_always_found() {
        // SAFETY: all zeros is an empty table.
        let mut table: Box<ThreadTable> = unsafe { Box::new_zeroed().assume_init() };
        let mut alive = std::collections::BTreeMap::new();
        let mut random = 7u64;
        for step in 0..60_000u32 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let tid = (random >> 40) as u32 % 4000 + 1;
            match alive.remove(&tid) {
                Some(number) => {
                    let index = table.lookup(tid).unwrap();
                    assert_eq!(table.get(index).header.number, number);
                    table.remove(index);
                }
                None => {
                    let index = table.insert(tid, CpuAccount::default(), 0).unwrap();
                    alive.insert(tid, table.get(index).header.number);
                }
            }
            assert_eq!(table.len(), alive.len());
            if step % 1000 == 0 {
                for (tid, number) in &alive {
                    let index = table.lookup(*tid).unwrap();
                    assert_eq!(table.get(index).header.number, *number);
                }
                let mut listed: Vec<u32> = Vec::new();
                for i in 0..table.len() {
                    let index = table.nth(i);
                    listed.push(table.get(index).header.tid);
                }
                listed.sort();
                assert!(listed.iter().eq(alive.keys()));
            }
        }
    }

    #[test]
    fn a_full_table_refuses() {
        // SAFETY: all zeros is an empty table.
        let mut table: Box<ThreadTable> = unsafe { Box::new_zeroed().assume_init() };
        for tid in 1..=CAPACITY as u32 {
            assert!(table.insert(tid, CpuAccount::default(), 0).is_some());
        }
        assert!(table.insert(99_999, CpuAccount::default(), 0).is_none());
        assert!(table.lookup(CAPACITY as u32).is_some());
    }
}
