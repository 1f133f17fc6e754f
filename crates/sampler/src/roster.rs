//! Who is there: one record for each thread that is followed, found by kernel id.
//!
//! Records have the same index as the thread's slot, so that a letter in a mailbox leads to its record.

use crate::calls::Account;
use crate::events::Ticking;
use crate::walltime::Chosen;
use stackglass_host::SlotIndex;
use stackglass_host::slot::CAPACITY;
use stackglass_sampling::CpuAccount;
use stackglass_wire::ThreadName;

/// Cells of the table from kernel id to record (a power of two, twice the capacity).
const TABLE: usize = CAPACITY * 2;

/// CPU time that a thread may have used before it was taken up and still count as followed from its beginning, ns.
const NEARLY: u64 = 20_000_000;

/// What the reader of the stream has last been told about a thread's stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Known {
    /// Nothing yet.
    #[default]
    Nothing,
    /// A stack taken while it ran.
    Awake,
    /// The stack on which it sleeps.
    Asleep,
    /// A sample without frames.
    NoStack,
}

/// A mailbox that is out for a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errand {
    /// Index of the mailbox.
    pub mailbox: u8,
    /// Its generation.
    pub generation: u32,
    /// When the signal was sent.
    pub sent: u64,
    /// The thread was asleep then: its program counter and stack pointer.
    pub asleep_at: Option<(u64, u64)>,
    /// What the thread has run since without answering, ns.
    pub ran: u64,
    /// When it has run for so long, ns, it is asked whether it blocks the signal.
    pub ask_at: u64,
    /// It was found to block the signal: what it ran is told, and the answer comes from a later place.
    pub held_back: bool,
    /// Who was chosen, in a wall-time profile.
    pub chosen: Option<Chosen>,
}

/// One thread. All zeros is a free record.
#[derive(Clone, Copy)]
pub struct Record {
    /// Kernel id, 0 while free.
    pub tid: u32,
    /// Number in the stream.
    pub number: u32,
    /// Name last told.
    pub name: ThreadName,
    /// Its time.
    pub account: CpuAccount,
    /// When it began, for the event.
    pub began: u64,
    /// The stack last told.
    pub known: Known,
    /// Hash of the frames last told.
    pub hash: u64,
    /// The mailbox that is out.
    pub errand: Option<Errand>,
    /// A stack was taken since the last poll: small movements of the clock are the handler's.
    pub fresh: bool,
    /// Time it has waited for processors, by the kernel's account, before it was taken up; and what was
    /// told of it since, ns.
    pub waited: (u64, u64),
    /// It was followed from its beginning, or nearly.
    pub whole: bool,
    /// What its system calls may be given.
    pub calls: Account,
    /// Its start was told to the reader.
    pub announced: bool,
    /// It told us that it has begun.
    pub told: bool,
    /// It told us that it is about to end.
    pub ending: bool,
    /// The last full scan saw it.
    pub seen: bool,
    /// The name was read again after its first moments.
    pub named: bool,
    /// It has blocked our signal when it was due.
    pub ever_blocked: bool,
    /// Not to be signalled before this moment, because it blocks the signal.
    pub blocked_until: u64,
    /// When it is to be asked again whether it may make the handler's system calls.
    pub confinement_due: u64,
    /// It may not, or nobody knows: it is not signalled.
    pub confined: bool,
    /// Bytes of its alternate signal stack, 0 for none.
    pub alternate: u64,
    /// When its clock was last seen to have moved.
    pub ran_at: u64,
    /// The kernel's own ticks of this thread.
    pub ticking: Ticking,
    /// Ticks between two polls.
    pub interval: u8,
    /// Descriptors of its files that are [kept open](crate::kept::About) + 1, 0 if not open.
    pub files: [i32; 2],
    /// Next in the list of free records, or place in the list of used ones.
    link: u32,
}

/// All records. All zeros, then [`Roster::init`].
pub struct Roster {
    records: [Record; CAPACITY],
    /// Index + 1 of the record, by hashed kernel id; 0 is empty.
    table: [u16; TABLE],
    /// Indexes in use, dense.
    used: [u16; CAPACITY],
    used_len: usize,
    /// Tick of each record's next poll: apart from the records, since all are read at every tick.
    due: [u64; CAPACITY],
    /// Records at and above this were never used.
    fresh_from: usize,
    /// Head of the list of records used before, index + 1.
    free: u32,
    last_number: u32,
}

const _: () = assert!(CAPACITY < u16::MAX as usize);

fn place_of(tid: u32) -> usize {
    (tid.wrapping_mul(0x9e37_79b1) >> 8) as usize & (TABLE - 1)
}

impl Roster {
    /// Threads followed now.
    pub fn len(&self) -> usize {
        self.used_len
    }

    /// The `i`-th of the threads followed; any order, which changes when one leaves.
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

    /// A record.
    pub fn get(&mut self, index: SlotIndex) -> &mut Record {
        &mut self.records[index.0 as usize % CAPACITY]
    }

    /// The record of a kernel id.
    pub fn find(&self, tid: u32) -> Option<SlotIndex> {
        let mut at = place_of(tid);
        loop {
            match self.table[at] {
                0 => return None,
                i if self.records[i as usize - 1].tid == tid => return Some(SlotIndex(i - 1)),
                _ => at = (at + 1) & (TABLE - 1),
            }
        }
    }

    /// Takes up a thread that is not yet followed; `None` when there is no room.
    pub fn add(&mut self, tid: u32, account: CpuAccount, began: u64) -> Option<SlotIndex> {
        let index = if self.free != 0 {
            let index = self.free as usize - 1;
            self.free = self.records[index].link;
            index
        } else if self.fresh_from < CAPACITY {
            self.fresh_from += 1;
            self.fresh_from - 1
        } else {
            return None;
        };
        self.last_number += 1;
        self.due[index] = 0;
        self.records[index] = Record {
            tid,
            number: self.last_number,
            name: [0; 16],
            account,
            began,
            known: Known::Nothing,
            hash: 0,
            errand: None,
            fresh: false,
            waited: (0, 0),
            whole: account.cpu() < NEARLY,
            calls: Account::default(),
            announced: false,
            told: false,
            ending: false,
            seen: true,
            named: false,
            ever_blocked: false,
            blocked_until: 0,
            confinement_due: 0,
            confined: false,
            alternate: 0,
            ran_at: began,
            ticking: Ticking::default(),
            interval: 1,
            files: [0; 2],
            link: self.used_len as u32,
        };
        self.used[self.used_len] = index as u16;
        self.used_len += 1;
        let mut at = place_of(tid);
        while self.table[at] != 0 {
            at = (at + 1) & (TABLE - 1);
        }
        self.table[at] = index as u16 + 1;
        Some(SlotIndex(index as u16))
    }

    /// Lets a thread go.
    pub fn remove(&mut self, index: SlotIndex) {
        let i = index.0 as usize % CAPACITY;
        let Record { tid, link, .. } = self.records[i];
        debug_assert_ne!(tid, 0);
        // The last of the dense list takes the free place.
        self.used_len -= 1;
        let moved = self.used[self.used_len];
        self.used[link as usize % CAPACITY] = moved;
        self.records[moved as usize].link = link;
        self.unlink(tid, i as u16 + 1);
        self.records[i].tid = 0;
        self.records[i].link = self.free;
        self.free = i as u32 + 1;
    }

    /// Takes an entry out of the table and moves up those that were pushed on by it.
    fn unlink(&mut self, tid: u32, entry: u16) {
        let mut hole = place_of(tid);
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
            let home = place_of(self.records[other as usize - 1].tid);
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
        // SAFETY: all zeros is an empty roster.
        let mut roster: Box<Roster> = unsafe { Box::new_zeroed().assume_init() };
        let mut alive = std::collections::BTreeMap::new();
        let mut random = 7u64;
        for step in 0..60_000u32 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let tid = (random >> 40) as u32 % 4000 + 1;
            match alive.remove(&tid) {
                Some(number) => {
                    let index = roster.find(tid).unwrap();
                    assert_eq!(roster.get(index).number, number);
                    roster.remove(index);
                }
                None => {
                    let index = roster.add(tid, CpuAccount::default(), 0).unwrap();
                    alive.insert(tid, roster.get(index).number);
                }
            }
            assert_eq!(roster.len(), alive.len());
            if step % 1000 == 0 {
                for (tid, number) in &alive {
                    let index = roster.find(*tid).unwrap();
                    assert_eq!(roster.get(index).number, *number);
                }
                let mut listed: Vec<u32> = Vec::new();
                for i in 0..roster.len() {
                    let index = roster.nth(i);
                    listed.push(roster.get(index).tid);
                }
                listed.sort();
                assert!(listed.iter().eq(alive.keys()));
            }
        }
    }

    #[test]
    fn a_full_roster_refuses() {
        // SAFETY: all zeros is an empty roster.
        let mut roster: Box<Roster> = unsafe { Box::new_zeroed().assume_init() };
        for tid in 1..=CAPACITY as u32 {
            assert!(roster.add(tid, CpuAccount::default(), 0).is_some());
        }
        assert!(roster.add(99_999, CpuAccount::default(), 0).is_none());
        assert!(roster.find(CAPACITY as u32).is_some());
    }
}
