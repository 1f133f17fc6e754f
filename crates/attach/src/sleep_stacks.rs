//! Stacks of threads of one process that sleep in functions which hide `rbp`. Most programs need none: the memory is
//! allocated with the first one.

use stackglass_sampling::{SPAN, SleepCache, SleepEntry};
use stackglass_unwind::memory::read_process;

/// Stacks that are stored.
const SLEEPERS: usize = 4096;

/// A program counter and a stack pointer at which a thread sleeps.
pub(super) type Place = (u64, u64);

#[derive(Default)]
pub(super) struct SleepStacks(Option<Box<Memory>>);

struct Memory {
    cache: SleepCache<Vec<SleepEntry>>,
    room: [u8; SPAN],
}

impl SleepStacks {
    /// Whether a thread was stopped at this place before.
    pub(super) fn was_tried(&self, tid: u32, place: Place) -> bool {
        self.0.as_ref().is_some_and(|memory| memory.cache.was_tried(tid, place))
    }

    /// Stores the stack that a stop has found. The memory of the process is read by its thread `living`.
    pub(super) fn insert(&mut self, living: u32, tid: u32, place: Place, frames: &[u64], cut: u8) {
        let memory = self.0.get_or_insert_with(|| {
            let cache = SleepCache::new(vec![SleepEntry::default(); SLEEPERS]);
            Box::new(Memory { cache, room: [0; SPAN] })
        });
        memory.cache.insert(tid, place, frames, cut, read_of(living), &mut memory.room);
    }

    /// Writes the stack of a thread that sleeps at a known place to `into`: its length, and why it is not longer.
    pub(super) fn lookup(
        &mut self,
        living: u32,
        tid: u32,
        place: Place,
        into: &mut [u64],
    ) -> Option<(usize, u8)> {
        let memory = self.0.as_mut()?;
        memory.cache.lookup(tid, place, read_of(living), &mut memory.room, into)
    }

    /// Forgets all stacks.
    pub(super) fn clear(&mut self) {
        self.0 = None;
    }
}

fn read_of(pid: u32) -> impl FnOnce(u64, &mut [u8]) -> usize {
    move |address, into| read_process(pid as i32, address, into)
}
