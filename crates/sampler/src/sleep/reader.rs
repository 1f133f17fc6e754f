//! Reads the stack of a sleeping thread from outside, without waking it.
//!
//! The kernel tells the program counter and the stack pointer, but not `rbp`. Where the walk needs it and no prologue gives
//! it, the stack is looked up among those that a signal has taken at the same place ([`SleepCache`]).

use core::mem::MaybeUninit;
use stackglass_host::{SlotIndex, UNWINDER, system};
use stackglass_proc_text::SleepPlace;
use stackglass_sampling::{SPAN, SleepCache, SleepEntry, hash_index};
use stackglass_unwind::memory::read_own;
use stackglass_unwind::{ProcessStack, Registers, Scratch};
use stackglass_wire::MAX_FRAMES;

/// Stacks that are stored.
const STORED: usize = 256;
/// Bits that remember where a signal was tried.
const TRIED_BITS: usize = 1 << 16;
/// Bytes of a stack fetched at once.
const FETCH: usize = 4096;

/// Working memory and cache. All zeros, then [`SleepReader::init`].
pub struct SleepReader {
    cache: SleepCache<[SleepEntry; STORED]>,
    /// The frames read last.
    frames: [u64; MAX_FRAMES],
    stack: [u8; SPAN],
    scratch: MaybeUninit<Scratch>,
    /// A bit for each (thread, place) at which a signal was tried, by hash.
    tried: [u64; TRIED_BITS / 64],
}

/// The stack of a sleeping thread, as far as it can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SleepStack {
    /// The thread woke up meanwhile, so that what was read may be of two moments.
    WokeUp,
    /// A stack that a signal took before; [`SleepReader::frames`] has it.
    Cached(ReadStack),
    /// The stack that was read.
    Read(ReadStack),
    /// A stack whose outer part is hidden from outside. A signal would show it.
    Partial(ReadStack),
}

/// How much was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadStack {
    /// Frames.
    pub len: usize,
    /// Why there are no more, 0 if the stack is complete.
    pub cut: u8,
}

impl SleepReader {
    /// Prepares the memory.
    pub fn init(&mut self) {
        self.scratch.write(Scratch::new());
    }

    /// Reads the stack of thread `tid`, whose clock showed `cpu` before it was found at `place`. `own_tid` is the caller's:
    /// the first thread of a process may have ended, and the process id then names no memory.
    pub fn read(
        &mut self,
        index: SlotIndex,
        tid: u32,
        own_tid: u32,
        cpu: u64,
        place: SleepPlace,
    ) -> SleepStack {
        // SAFETY: `Memory::map` calls `init` before anything else.
        let scratch = unsafe { self.scratch.assume_init_mut() };
        let registers = Registers::new(place.pc, place.sp, None);
        let mut reader = ProcessStack::own(own_tid as i32, &mut self.stack[..FETCH]);
        let walk = UNWINDER.walk(&registers, &mut reader, scratch, &mut self.frames);
        let cached = if walk.lacks_registers() {
            self.cache.lookup(index.0.into(), place, read_own, &mut self.stack, &mut self.frames)
        } else {
            None
        };
        if system::thread_cpu(tid) != Some(cpu) {
            return SleepStack::WokeUp;
        }
        let read = ReadStack { len: walk.len, cut: walk.end.code() };
        match cached {
            Some(cached) => SleepStack::Cached(ReadStack { len: cached.len, cut: cached.cut }),
            None if walk.lacks_registers() => SleepStack::Partial(read),
            None => SleepStack::Read(read),
        }
    }

    /// The frames of the stack read last.
    pub fn frames(&self, len: usize) -> &[u64] {
        &self.frames[..len.min(MAX_FRAMES)]
    }

    /// Stores a stack that a signal has taken at `place`.
    pub fn insert(&mut self, index: SlotIndex, place: SleepPlace, frames: &[u64], cut: u8) {
        self.cache.insert(index.0.into(), place, frames, cut, read_own, &mut self.stack);
    }

    /// Whether a signal was tried before for this thread at this place. From now on it was.
    pub fn was_tried(&mut self, thread_number: u32, place: SleepPlace) -> bool {
        let bit = hash_index(&[thread_number.into(), place.pc, place.sp], TRIED_BITS);
        let word = &mut self.tried[bit / 64];
        let before = *word >> (bit % 64) & 1 == 1;
        *word |= 1 << (bit % 64);
        before
    }
}
