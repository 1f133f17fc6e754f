//! Signals that were sent and not answered yet, and which mailbox belongs to which thread.

use stackglass_host::SlotIndex;
use stackglass_host::mailbox::{MAILBOXES, Mailbox};
use stackglass_host::task::Polled;
use stackglass_proc_text::SleepPlace;

/// A mailbox that is reserved for one signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reservation {
    /// Index of the mailbox.
    pub mailbox: u8,
    /// Its generation.
    pub generation: u32,
}

/// A signal that was sent to a thread and not answered yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PendingSignal {
    /// Where the answer comes.
    pub reservation: Reservation,
    /// When the signal was sent.
    pub sent: u64,
    /// Where the thread slept at that moment, if it slept.
    pub asleep_at: Option<SleepPlace>,
    /// What the thread has run since, ns.
    pub ran: u64,
    /// Once the thread has run for so long, ns, its signal mask is read.
    pub check_mask_at: u64,
    /// The thread was found to block the signal: what it runs is unsampled, and the stack that comes is discarded.
    pub is_blocked: bool,
    /// The task of a wall-time profile for which the stack was asked.
    pub chosen: Option<ChosenTask>,
}

/// A task that a wall-time profile has chosen to sample; task 0 stands for the thread itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChosenTask {
    /// The task, and its entry in the pool.
    pub task: Polled,
    /// Time that the sample stands for, ns.
    pub time: u64,
    /// Samples that were asked for before the stack came.
    pub count: u32,
}

/// Which thread each mailbox is reserved for. All zeros is none.
pub struct PendingSignals {
    /// Index + 1 of the thread, by mailbox.
    holders: [u32; MAILBOXES],
    /// The program has taken the signal away.
    pub is_lost: bool,
}

impl PendingSignals {
    /// Reserves the lowest free mailbox in which no handler writes.
    pub fn reserve(&self, mailboxes: &[Mailbox; MAILBOXES]) -> Option<Reservation> {
        let free = self.holders.iter().enumerate().filter(|(_, holder)| **holder == 0).map(|(i, _)| i);
        free.into_iter().find_map(|i| {
            let generation = mailboxes[i].reserve()?;
            Some(Reservation { mailbox: i as u8, generation })
        })
    }

    /// The signal was sent: the mailbox belongs to this thread.
    pub fn insert(&mut self, reservation: Reservation, index: SlotIndex) {
        self.holders[reservation.mailbox as usize] = u32::from(index.0) + 1;
    }

    /// The mailbox belongs to no thread any more.
    pub fn remove(&mut self, reservation: Reservation) {
        self.holders[reservation.mailbox as usize] = 0;
    }

    /// The thread that a mailbox belongs to.
    pub fn thread_of(&self, mailbox: usize) -> Option<SlotIndex> {
        self.holders[mailbox].checked_sub(1).map(|i| SlotIndex(i as u16))
    }

    /// Whether no signal is out.
    pub fn is_empty(&self) -> bool {
        self.holders.iter().all(|holder| *holder == 0)
    }
}
