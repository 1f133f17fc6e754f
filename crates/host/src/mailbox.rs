//! The mailboxes: where a signal handler leaves the stack it has taken.
//!
//! The sampler owns a small pool and hands one mailbox out with each signal, never two to one thread. A
//! mailbox goes free -> out -> running -> done -> free. Each time it is handed out it gets a new
//! generation, which the signal carries as well: a signal that comes so late that its mailbox was taken
//! back finds another generation and leaves it alone.

use crate::slot::SlotIndex;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU64, Ordering::*};
use stackglass_unwind::Scratch;
use stackglass_wire::MAX_FRAMES;
use stackglass_wire::task::{Polled, TaskText};

/// Mailboxes of a process.
pub const MAILBOXES: usize = 64;

/// Bytes of stack fetched at once where plain loads are not allowed.
pub const ASIDE: usize = 2048;

const FREE: u64 = 0;
const OUT: u64 = 1;
const RUNNING: u64 = 2;
const DONE: u64 = 3;
const STATE_BITS: u32 = 2;

/// What a signal carries in `si_value`: mailbox, slot, generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket {
    /// Index of the mailbox.
    pub mailbox: u8,
    /// Index of the thread's slot.
    pub slot: SlotIndex,
    /// Generation of the mailbox.
    pub generation: u32,
}

impl Ticket {
    /// As one word.
    pub fn to_word(self) -> u64 {
        self.generation as u64 | (self.slot.0 as u64) << 32 | (self.mailbox as u64) << 48
    }

    /// From one word; `None` when it names no mailbox or slot.
    #[inline]
    pub fn from_word(word: u64) -> Option<Ticket> {
        let mailbox = (word >> 48) as usize;
        let slot = (word >> 32) as u16;
        if mailbox >= MAILBOXES || slot as usize >= crate::slot::CAPACITY {
            return None;
        }
        Some(Ticket { mailbox: mailbox as u8, slot: SlotIndex(slot), generation: word as u32 })
    }
}

/// What the handler found, apart from the frames.
#[derive(Clone, Copy, Default, Debug)]
pub struct Letter {
    /// Frames written.
    pub len: usize,
    /// Why the walk ended early, 0 if it reached the root.
    pub cut: u8,
    /// The task that was being polled.
    pub polled: Polled,
    /// What that task is called, where the sampler does not know yet.
    pub text: Option<TaskText>,
    /// Stack pointer of the interrupted code.
    pub sp: u64,
    /// Thread pointer, 0 when not asked for.
    pub thread_pointer: u64,
    /// True when the stack's bounds in the slot did not serve.
    pub bounds_missing: bool,
    /// Bytes of the thread's alternate signal stack, 0 for none.
    pub alternate: u64,
    /// Too little room was left on the stack for a walk: there are no frames.
    pub no_room: bool,
}

/// One mailbox. All zeros is a free one.
#[repr(C, align(64))]
pub struct Mailbox {
    /// Generation << 2 | state.
    state: AtomicU64,
    letter: UnsafeCell<Letter>,
    scratch: UnsafeCell<MaybeUninit<Scratch>>,
    aside: UnsafeCell<[u8; ASIDE]>,
    frames: UnsafeCell<[u64; MAX_FRAMES]>,
}

// SAFETY: the cells are touched only by whom `state` names: the handler between `begin` and `finish`, the
// sampler otherwise; both sides pass the mailbox on with Release and take it with Acquire.
unsafe impl Sync for Mailbox {}

/// A mailbox in the hands of the handler.
pub struct Desk<'a> {
    /// Where frames go.
    pub frames: &'a mut [u64; MAX_FRAMES],
    /// Working memory of the walk.
    pub scratch: &'a mut Scratch,
    /// Room for pieces of the stack that cannot be read with plain loads.
    pub aside: &'a mut [u8; ASIDE],
    /// What else is to be told.
    pub letter: &'a mut Letter,
}

impl Mailbox {
    /// Sampler: hands a mailbox out for which nobody waits; the generation for the ticket, `None` when a handler is at work
    /// in it.
    ///
    /// A letter that is there already was waited for no longer: its thread was taken for gone, or an earlier run of
    /// the sampler ended before the handler did.
    pub fn hand_out(&self) -> Option<u32> {
        let state = self.state.load(Acquire);
        if state & 3 != FREE && state & 3 != DONE {
            return None;
        }
        let generation = (state >> STATE_BITS) as u32;
        if generation == 0 {
            // SAFETY: nobody but the sampler touches it; the first time its scratch is not made yet.
            unsafe { (*self.scratch.get()).write(Scratch::new()) };
        }
        let generation = generation.wrapping_add(1).max(1);
        self.state.store((generation as u64) << STATE_BITS | OUT, Release);
        Some(generation)
    }

    /// Sampler: takes a mailbox back whose signal was not answered. False when the handler has begun.
    pub fn take_back(&self, generation: u32) -> bool {
        let out = (generation as u64) << STATE_BITS;
        self.state.compare_exchange(out | OUT, out | FREE, AcqRel, Relaxed).is_ok()
    }

    /// Handler: begins to write. `None` when the mailbox was taken back meanwhile.
    ///
    /// # Safety
    /// To be called once for each ticket, from the handler only.
    #[inline]
    #[allow(clippy::mut_from_ref)] // exclusive by the state, see the Sync impl
    pub unsafe fn begin(&self, generation: u32) -> Option<Desk<'_>> {
        let out = (generation as u64) << STATE_BITS;
        self.state.compare_exchange(out | OUT, out | RUNNING, AcqRel, Relaxed).ok()?;
        // SAFETY: state is RUNNING by us: nobody else touches the cells until `finish`. The scratch was made
        // by the first `hand_out`, which precedes every OUT.
        unsafe {
            Some(Desk {
                frames: &mut *self.frames.get(),
                scratch: (*self.scratch.get()).assume_init_mut(),
                aside: &mut *self.aside.get(),
                letter: &mut *self.letter.get(),
            })
        }
    }

    /// Handler: the letter is written.
    #[inline]
    pub fn finish(&self, generation: u32) {
        self.state.store((generation as u64) << STATE_BITS | DONE, Release);
    }

    /// Sampler: the letter and its frames, once it is there.
    pub fn read(&self, generation: u32) -> Option<(Letter, &[u64])> {
        if self.state.load(Acquire) != (generation as u64) << STATE_BITS | DONE {
            return None;
        }
        // SAFETY: DONE: the handler has left, and only the sampler moves the state on.
        unsafe {
            let letter = *self.letter.get();
            let frames: &[u64; MAX_FRAMES] = &*self.frames.get();
            Some((letter, &frames[..letter.len.min(MAX_FRAMES)]))
        }
    }

    /// Sampler: done with the letter.
    pub fn release(&self, generation: u32) {
        self.state.store((generation as u64) << STATE_BITS | FREE, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mailbox() -> Box<Mailbox> {
        // SAFETY: all zeros is a free mailbox.
        unsafe { Box::new_zeroed().assume_init() }
    }

    #[test]
    fn a_ticket_survives_the_way_through_a_signal() {
        let ticket = Ticket { mailbox: 63, slot: SlotIndex(32_767), generation: u32::MAX };
        assert_eq!(Ticket::from_word(ticket.to_word()), Some(ticket));
        assert_eq!(Ticket::from_word(64 << 48), None);
        assert_eq!(Ticket::from_word(32_768 << 32), None);
    }

    #[test]
    fn a_letter_goes_the_whole_way() {
        let mailbox = mailbox();
        let generation = mailbox.hand_out().unwrap();
        assert!(mailbox.hand_out().is_none());
        assert!(mailbox.read(generation).is_none());
        // SAFETY: this test plays the handler, once.
        let desk = unsafe { mailbox.begin(generation) }.unwrap();
        desk.frames[0] = 42;
        desk.letter.len = 1;
        mailbox.finish(generation);
        assert_eq!(mailbox.read(generation).unwrap().1, [42]);
        mailbox.release(generation);
        assert_ne!(mailbox.hand_out(), Some(generation));
    }

    #[test]
    fn a_late_signal_finds_its_mailbox_gone() {
        let mailbox = mailbox();
        let late = mailbox.hand_out().unwrap();
        assert!(mailbox.take_back(late));
        // SAFETY: this test plays the handler, once for each generation.
        assert!(unsafe { mailbox.begin(late) }.is_none());
        let next = mailbox.hand_out().unwrap();
        // SAFETY: as above.
        assert!(unsafe { mailbox.begin(late) }.is_none());
        // SAFETY: as above.
        assert!(unsafe { mailbox.begin(next) }.is_some());
        assert!(!mailbox.take_back(next), "the handler has begun");
    }

    #[test]
    fn a_letter_that_nobody_waits_for_keeps_no_mailbox() {
        let mailbox = mailbox();
        let left = mailbox.hand_out().unwrap();
        // SAFETY: this test plays the handler, once for each generation.
        let desk = unsafe { mailbox.begin(left) };
        assert!(desk.is_some() && !mailbox.take_back(left));
        assert!(mailbox.hand_out().is_none(), "a handler is at work");
        mailbox.finish(left);
        let next = mailbox.hand_out().unwrap();
        assert!(next != left && mailbox.read(left).is_none() && mailbox.take_back(next));
    }
}
