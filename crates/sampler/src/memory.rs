//! The sampler's working memory: one mapping for as long as the sampler runs, touched lazily.

use crate::calls::Instructions;
use crate::departed::Departed;
use crate::modules::Told;
use crate::roster::Roster;
use crate::tasks::Tasks;
use core::mem::MaybeUninit;
use stackglass_host::mailbox::{MAILBOXES, Mailbox};
use stackglass_host::{SlotIndex, system};
use stackglass_sampling::{SPAN, SleepCache, SleepEntry};
use stackglass_unwind::Scratch;
use stackglass_wire::MAX_FRAMES;

/// Descriptors kept open for looking at sleepers.
pub const LOOKERS: usize = 256;
/// Stacks of sleepers that are stored.
const SLEEPERS: usize = 256;
/// Bits that remember at which places a signal was tried.
const TRIED_BITS: usize = 1 << 16;

/// Everything large. All zeros is the beginning.
pub struct Memory {
    /// Threads.
    pub roster: Roster,
    /// Threads that are gone and of which news may still come.
    pub departed: Departed,
    /// The task folder.
    pub tasks: Tasks,
    /// Modules the reader knows.
    pub told: Told,
    /// Stacks of sleepers that took a signal.
    pub sleep_cache: SleepCache<[SleepEntry; SLEEPERS]>,
    /// Which stacks were taken at the end of a system call.
    pub instructions: Instructions,
    /// Frames of a sleeper.
    pub frames: [u64; MAX_FRAMES],
    /// Stack of a sleeper.
    pub stack: [u8; SPAN],
    /// Working memory of walks.
    pub scratch: MaybeUninit<Scratch>,
    /// Whose errand each mailbox is on: index + 1.
    pub holders: [u32; MAILBOXES],
    /// Threads whose `syscall` file is open: index + 1.
    pub lookers: [u32; LOOKERS],
    /// Next place in `lookers`.
    pub next_looker: usize,
    tried: [u64; TRIED_BITS / 64],
}

impl Memory {
    /// Maps it; `None` when the kernel refuses.
    pub fn map() -> Option<&'static mut Memory> {
        let at = system::map_private(size_of::<Memory>()).cast::<Memory>();
        // SAFETY: null, or a new mapping that nobody else knows, large and aligned enough; all zeros is a value
        // of every field: numbers, arrays, enums whose first variant is zero, and uninitialized scratch.
        let memory = unsafe { at.as_mut() }?;
        memory.scratch.write(Scratch::new());
        // SAFETY: advice on the mapping just made; a forked child has no sampler.
        unsafe { libc::madvise(at.cast(), size_of::<Memory>(), libc::MADV_DONTFORK) };
        Some(memory)
    }

    /// Gives it back.
    ///
    /// # Safety
    /// `memory` must come from [`Memory::map`] and not be used afterwards.
    pub unsafe fn unmap(memory: *mut Memory) {
        // SAFETY: by the caller.
        unsafe { libc::munmap(memory.cast(), size_of::<Memory>()) };
    }

    /// Whether a signal was tried before for this thread at this place; from now on it was.
    pub fn tried_before(&mut self, number: u32, (pc, sp): (u64, u64)) -> bool {
        let mixed = (pc.rotate_left(32) ^ sp ^ (number as u64) << 20).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bit = (mixed >> 40) as usize % TRIED_BITS;
        let word = &mut self.tried[bit / 64];
        let before = *word >> (bit % 64) & 1 == 1;
        *word |= 1 << (bit % 64);
        before
    }

    /// Hands out the lowest mailbox that is on no errand and in which no handler is at work; its generation.
    pub fn hand_out(&self, mailboxes: &[Mailbox; MAILBOXES]) -> Option<(usize, u32)> {
        let unheld = self.holders.iter().enumerate().filter(|(_, holder)| **holder == 0);
        unheld.map(|(i, _)| i).find_map(|i| Some((i, mailboxes[i].hand_out()?)))
    }

    /// Whose errand a mailbox is on.
    pub fn holder(&self, mailbox: usize) -> Option<SlotIndex> {
        self.holders[mailbox].checked_sub(1).map(|i| SlotIndex(i as u16))
    }
}
