//! Signals that the kernel sends by itself to a thread that has run for one period (`perf_event_open`).
//!
//! The sampler opens the event and says in the table, under the number of its descriptor, whose it is and which mailbox
//! the next stack goes to. The handler finds that number in the signal (`si_fd`), nothing else: such a signal carries no
//! word of ours. It is believed only on the very thread that the event was opened for.

use crate::Ticket;
use crate::slot::SlotIndex;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

/// Events of a process: descriptors are numbers below this.
pub const EVENTS: usize = 1024;

/// What is known of one event.
#[repr(C)]
pub struct Event {
    /// Kernel id of the thread that it counts or has counted last, 0 before the first.
    tid: AtomicU32,
    /// Signals that came since the sampler last asked.
    hits: AtomicU32,
    /// The thread's slot.
    slot: AtomicU32,
    /// Whether the next one takes a stack: the ticket, 0 for none.
    ticket: AtomicU64,
}

impl Event {
    /// Sampler: from now on signals of this event are for that thread.
    pub fn open(&self, tid: u32, slot: SlotIndex) {
        self.hits.store(0, Relaxed);
        self.ticket.store(0, Relaxed);
        self.slot.store(u32::from(slot.0), Relaxed);
        self.tid.store(tid, Release);
    }

    /// Sampler: the next signal takes a stack.
    pub fn arm(&self, ticket: Ticket) {
        self.ticket.store(ticket.to_word(), Release);
    }

    /// Sampler: it takes none after all. A late one is still known for ours, also when the event is closed.
    pub fn disarm(&self) {
        self.ticket.store(0, Release);
    }

    /// Sampler: how many signals came since the last time.
    pub fn take_hits(&self) -> u32 {
        self.hits.swap(0, AcqRel)
    }

    /// Handler: whose event it is.
    #[inline]
    pub fn thread(&self) -> Option<(u32, SlotIndex)> {
        match self.tid.load(Acquire) {
            0 => None,
            tid => Some((tid, SlotIndex(self.slot.load(Relaxed) as u16))),
        }
    }

    /// Handler: one signal has come; where its stack goes to.
    #[inline]
    pub fn hit(&self) -> Option<Ticket> {
        self.hits.fetch_add(1, AcqRel);
        Ticket::from_word(self.ticket.swap(0, AcqRel)).filter(|ticket| ticket.generation != 0)
    }
}
