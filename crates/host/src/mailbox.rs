//! Mailboxes, into which the signal handler writes the stacks it takes.
//!
//! The sampler owns a small pool and sends one mailbox's token with each signal. A thread never has two. A mailbox goes
//! from free to reserved, writing, done, and back to free. Each reservation gets a new generation, which the signal
//! carries too. So a signal that arrives after its mailbox was revoked finds another generation and writes nothing.
//!
//! A signal of a timer has no token: the handler takes any free mailbox that was prepared ([`Mailbox::claim`]). A thread may have
//! several of these, where the sampler waits for a CPU.

use crate::slot::{CAPACITY, SlotIndex};
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
const RESERVED: u64 = 1;
const WRITING: u64 = 2;
const DONE: u64 = 3;
const STATE_BITS: u32 = 2;
const STATE: u64 = (1 << STATE_BITS) - 1;

/// What a signal carries in `si_value`: mailbox, slot and generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SignalToken {
    /// Index of the mailbox.
    pub mailbox: u8,
    /// Index of the thread's slot.
    pub slot: SlotIndex,
    /// Generation of the mailbox.
    pub generation: u32,
}

impl SignalToken {
    /// Packs the token into one word.
    pub fn to_word(self) -> u64 {
        self.generation as u64 | (self.slot.0 as u64) << 32 | (self.mailbox as u64) << 48
    }

    /// Unpacks a word; `None` if it names no mailbox or slot.
    #[inline]
    pub fn from_word(word: u64) -> Option<SignalToken> {
        let mailbox = (word >> 48) as usize;
        let slot = (word >> 32) as u16;
        if mailbox >= MAILBOXES || slot as usize >= CAPACITY {
            return None;
        }
        Some(SignalToken { mailbox: mailbox as u8, slot: SlotIndex(slot), generation: word as u32 })
    }
}

/// What the handler writes beside the frames.
#[derive(Clone, Copy, Default, Debug)]
pub struct SampleHeader {
    /// Frames written.
    pub len: usize,
    /// Why the walk ended early, 0 if it reached the root.
    pub cut: u8,
    /// The task that was being polled.
    pub polled: Polled,
    /// That task's name, if it was not sent yet.
    pub text: Option<TaskText>,
    /// Stack pointer of the interrupted code.
    pub sp: u64,
    /// Thread pointer; 0 unless the stack's bounds are missing.
    pub thread_pointer: u64,
    /// The slot's bounds of the stack are missing or wrong.
    pub bounds_missing: bool,
    /// Bytes of the thread's alternate signal stack, 0 for none.
    pub alternate: u64,
    /// Too little stack was left for a walk, so there are no frames.
    pub no_room: bool,
    /// The timer that has sent the signal; `None` if the sampler has.
    pub hit: Option<Hit>,
}

/// A signal that a timer has sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hit {
    /// Slot of the thread that the timer is of.
    pub slot: SlotIndex,
    /// The thread that had the slot at that moment.
    pub tid: u32,
    /// Counts the signals of all timers.
    pub order: u32,
    /// Which timer has sent it.
    pub timer: HitTimer,
    /// The thread's CPU clock in the handler, ns.
    pub cpu: u64,
}

/// The two timers of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HitTimer {
    /// [`UserTimer`](crate::user_timer::UserTimer)
    User,
    /// [`CallTimer`](crate::call_timer::CallTimer)
    Call,
}

/// One mailbox. All zeros is a free one.
#[repr(C, align(64))]
pub struct Mailbox {
    /// Generation << STATE_BITS | state. In generation 0, `header` and `scratch` are not initialised.
    state: AtomicU64,
    header: UnsafeCell<MaybeUninit<SampleHeader>>,
    scratch: UnsafeCell<MaybeUninit<Scratch>>,
    aside: UnsafeCell<[u8; ASIDE]>,
    frames: UnsafeCell<[u64; MAX_FRAMES]>,
}

// SAFETY: `state` says which side may touch the cells: the handler between `begin_write` and `finish_write`, the
// sampler otherwise. Each side hands over with Release and takes over with Acquire.
unsafe impl Sync for Mailbox {}

/// The handler's exclusive access to a mailbox.
pub struct MailboxWriter<'a> {
    /// The frames.
    pub frames: &'a mut [u64; MAX_FRAMES],
    /// Working memory of the walk.
    pub scratch: &'a mut Scratch,
    /// Room for parts of the stack that cannot be read with plain loads.
    pub aside: &'a mut [u8; ASIDE],
    /// Everything else about the sample.
    pub header: &'a mut SampleHeader,
}

impl Mailbox {
    fn word(generation: u32, state: u64) -> u64 {
        u64::from(generation) << STATE_BITS | state
    }

    /// Sampler: makes the mailbox ready for [`claim`](Mailbox::claim). False if it was ready.
    pub fn prepare(&self) -> bool {
        if self.state.load(Acquire) != 0 {
            return false;
        }
        // SAFETY: in generation 0 no token of this mailbox exists, and no handler claims it: the sampler alone has access.
        unsafe {
            (*self.header.get()).write(SampleHeader::default());
            (*self.scratch.get()).write(Scratch::new());
        }
        self.state.store(Self::word(1, FREE), Release);
        true
    }

    /// Sampler: frees a mailbox whose sample nobody waits for: that of a signal, or with `all` also that of a timer.
    pub fn discard_unread(&self, all: bool) {
        let generation = (self.state.load(Acquire) >> STATE_BITS) as u32;
        if self.read(generation).is_some_and(|(header, _)| all || header.hit.is_none()) {
            self.release(generation);
        }
    }

    /// Whether it was made ready once.
    pub fn is_prepared(&self) -> bool {
        self.state.load(Relaxed) != 0
    }

    /// Whether a handler may claim it now.
    pub fn is_claimable(&self) -> bool {
        let word = self.state.load(Relaxed);
        word & STATE == FREE && word != 0
    }

    /// Sampler: reserves the mailbox for one signal. The generation for its token, or `None` while others use it.
    ///
    /// A sample that is done but unread is discarded: its thread has ended, or an earlier run of the sampler has. The samples of
    /// timers are kept.
    pub fn reserve(&self) -> Option<u32> {
        self.prepare();
        let word = self.state.load(Acquire);
        let generation = (word >> STATE_BITS) as u32;
        let is_kept =
            word & STATE == DONE && self.read(generation).is_some_and(|(header, _)| header.hit.is_some());
        if !matches!(word & STATE, FREE | DONE) || is_kept {
            return None;
        }
        let generation = generation.wrapping_add(1).max(1);
        // A handler may have claimed it meanwhile.
        let reserved = Self::word(generation, RESERVED);
        self.state.compare_exchange(word, reserved, AcqRel, Relaxed).ok().map(|_| generation)
    }

    /// Handler: begins to write the sample of a timer, if the mailbox is free and prepared. The generation is for
    /// [`finish_write`](Mailbox::finish_write).
    ///
    /// # Safety
    /// To be called from the handler only.
    #[inline]
    #[allow(clippy::mut_from_ref)] // exclusive by the state, see the Sync impl
    pub unsafe fn claim(&self) -> Option<(u32, MailboxWriter<'_>)> {
        let word = self.state.load(Acquire);
        if word & STATE != FREE || word == 0 {
            return None;
        }
        let generation = ((word >> STATE_BITS) as u32).wrapping_add(1).max(1);
        let writing = Self::word(generation, WRITING);
        self.state.compare_exchange(word, writing, AcqRel, Relaxed).ok()?;
        // SAFETY: the state is WRITING, set by this call.
        Some((generation, unsafe { self.writer() }))
    }

    /// Sampler: the sample of a timer, once it is complete, and its generation.
    pub fn read_hit(&self) -> Option<(u32, Hit, SampleHeader, &[u64])> {
        let generation = (self.state.load(Acquire) >> STATE_BITS) as u32;
        let (header, frames) = self.read(generation)?;
        Some((generation, header.hit?, header, frames))
    }

    /// Sampler: revokes a reservation whose signal was not answered. False if the handler has begun to write.
    pub fn revoke(&self, generation: u32) -> bool {
        let (reserved, free) = (Self::word(generation, RESERVED), Self::word(generation, FREE));
        self.state.compare_exchange(reserved, free, AcqRel, Relaxed).is_ok()
    }

    /// Handler: begins to write. `None` if the reservation was revoked.
    ///
    /// # Safety
    /// To be called once for each token, from the handler only.
    #[inline]
    #[allow(clippy::mut_from_ref)] // exclusive by the state, see the Sync impl
    pub unsafe fn begin_write(&self, generation: u32) -> Option<MailboxWriter<'_>> {
        let (reserved, writing) = (Self::word(generation, RESERVED), Self::word(generation, WRITING));
        self.state.compare_exchange(reserved, writing, AcqRel, Relaxed).ok()?;
        // SAFETY: the state is WRITING, set by this call.
        Some(unsafe { self.writer() })
    }

    /// # Safety
    /// The state must be WRITING, set by the caller, so that no other code touches the cells until `finish_write`.
    #[inline]
    #[allow(clippy::mut_from_ref)] // exclusive by the state, see the Sync impl
    unsafe fn writer(&self) -> MailboxWriter<'_> {
        // SAFETY: by the caller. `prepare`, which precedes every other state, has initialised header and scratch.
        unsafe {
            MailboxWriter {
                frames: &mut *self.frames.get(),
                scratch: (*self.scratch.get()).assume_init_mut(),
                aside: &mut *self.aside.get(),
                header: (*self.header.get()).assume_init_mut(),
            }
        }
    }

    /// Handler: the sample is complete.
    #[inline]
    pub fn finish_write(&self, generation: u32) {
        self.state.store(Self::word(generation, DONE), Release);
    }

    /// Sampler: reads the sample, once it is complete.
    pub fn read(&self, generation: u32) -> Option<(SampleHeader, &[u64])> {
        if self.state.load(Acquire) != Self::word(generation, DONE) {
            return None;
        }
        // SAFETY: DONE: the handler has finished, and only the sampler changes the state from here. A generation is
        // reserved before it is done, so the header is initialised.
        unsafe {
            let header = (*self.header.get()).assume_init();
            let frames: &[u64; MAX_FRAMES] = &*self.frames.get();
            Some((header, &frames[..header.len.min(MAX_FRAMES)]))
        }
    }

    /// Sampler: frees the mailbox after the sample was read.
    pub fn release(&self, generation: u32) {
        self.state.store(Self::word(generation, FREE), Release);
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
    fn a_token_survives_a_signal() {
        let token = SignalToken { mailbox: 63, slot: SlotIndex(32_767), generation: u32::MAX };
        assert_eq!(SignalToken::from_word(token.to_word()), Some(token));
        assert_eq!(SignalToken::from_word(64 << 48), None);
        assert_eq!(SignalToken::from_word(32_768 << 32), None);
    }

    #[test]
    fn a_sample_is_written_read_and_released() {
        let mailbox = mailbox();
        let generation = mailbox.reserve().unwrap();
        assert!(mailbox.reserve().is_none());
        assert!(mailbox.read(generation).is_none());
        // SAFETY: this test stands in for the handler, once.
        let writer = unsafe { mailbox.begin_write(generation) }.unwrap();
        writer.frames[0] = 42;
        writer.header.len = 1;
        mailbox.finish_write(generation);
        assert_eq!(mailbox.read(generation).unwrap().1, [42]);
        mailbox.release(generation);
        assert_ne!(mailbox.reserve(), Some(generation));
    }

    #[test]
    fn a_timers_sample_is_kept_until_it_is_read() {
        let mailbox = mailbox();
        // SAFETY: this test stands in for the handler.
        let claim = || unsafe { mailbox.claim() };
        assert!(claim().is_none() && !mailbox.is_claimable(), "not prepared");
        assert!(mailbox.prepare() && !mailbox.prepare() && mailbox.is_claimable());
        let (generation, writer) = claim().unwrap();
        let hit = Hit { slot: SlotIndex(3), tid: 7, order: 1, timer: HitTimer::Call, cpu: 1 };
        (writer.frames[0], writer.header.len, writer.header.hit) = (42, 1, Some(hit));
        assert!(claim().is_none() && mailbox.reserve().is_none() && mailbox.read_hit().is_none());
        mailbox.finish_write(generation);
        assert!(claim().is_none() && mailbox.reserve().is_none());
        let (read, its, _, frames) = mailbox.read_hit().unwrap();
        assert_eq!((read, its, frames), (generation, hit, &[42][..]));
        mailbox.release(generation);
        assert!(mailbox.read_hit().is_none() && mailbox.reserve().is_some() && claim().is_none());
    }

    #[test]
    fn a_late_signal_finds_its_mailbox_revoked() {
        let mailbox = mailbox();
        let late = mailbox.reserve().unwrap();
        assert!(mailbox.revoke(late));
        // SAFETY: this test stands in for the handler, once for each generation.
        assert!(unsafe { mailbox.begin_write(late) }.is_none());
        let next = mailbox.reserve().unwrap();
        // SAFETY: as above.
        assert!(unsafe { mailbox.begin_write(late) }.is_none());
        // SAFETY: as above.
        assert!(unsafe { mailbox.begin_write(next) }.is_some());
        assert!(!mailbox.revoke(next), "the handler has begun");
    }

    #[test]
    fn a_sample_that_is_never_read_blocks_no_mailbox() {
        let mailbox = mailbox();
        let left = mailbox.reserve().unwrap();
        // SAFETY: this test stands in for the handler, once for each generation.
        let writer = unsafe { mailbox.begin_write(left) };
        assert!(writer.is_some() && !mailbox.revoke(left));
        assert!(mailbox.reserve().is_none(), "a handler writes");
        mailbox.finish_write(left);
        let next = mailbox.reserve().unwrap();
        assert!(next != left && mailbox.read(left).is_none() && mailbox.revoke(next));
    }
}
