//! A cache of stacks of sleeping threads that cannot be read from outside.
//!
//! Some functions hide `rbp`, so that the stack of a sleeping thread needs a signal or a stop. To need that only once, the
//! stack is stored under the thread and the place where it sleeps, together with the positions of its return
//! addresses. If the thread sleeps at the same place again, with the same return addresses in the same words, its stack
//! is the same.

use crate::hash_index;
use stackglass_proc_text::SleepPlace;

/// Deepest stack that is stored.
const FRAMES: usize = 128;
/// Bytes of stack searched for return addresses.
pub const SPAN: usize = 32 << 10;

/// One stored stack. All zeros is an empty entry.
#[derive(Clone, Copy)]
pub struct SleepEntry {
    thread: u32,
    cut: u8,
    /// 0 if nothing is stored, or the stack could not be.
    len: u8,
    /// For each frame, the word that holds its return address, counted from the stack pointer.
    words: [u16; FRAMES],
    pc: u64,
    sp: u64,
    frames: [u64; FRAMES],
}

impl Default for SleepEntry {
    fn default() -> SleepEntry {
        SleepEntry { thread: 0, cut: 0, len: 0, words: [0; FRAMES], pc: 0, sp: 0, frames: [0; FRAMES] }
    }
}

/// A stack found in the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CachedStack {
    /// Frames copied.
    pub len: usize,
    /// Why the stack is incomplete, 0 if it is complete.
    pub cut: u8,
}

/// The cache, over an array or a vector of entries. A newer stack replaces an older one in the same entry. All zeros is an
/// empty cache.
#[derive(Default)]
pub struct SleepCache<E> {
    entries: E,
}

impl<E: AsRef<[SleepEntry]> + AsMut<[SleepEntry]>> SleepCache<E> {
    /// A cache in this memory.
    ///
    /// # Panics
    /// When there are no entries.
    pub fn new(entries: E) -> SleepCache<E> {
        assert!(!entries.as_ref().is_empty(), "a cache has room");
        SleepCache { entries }
    }

    fn index(&self, thread: u32, SleepPlace { pc, sp }: SleepPlace) -> usize {
        hash_index(&[u64::from(thread), pc, sp], self.entries.as_ref().len())
    }

    fn entry(&self, thread: u32, place: SleepPlace) -> &SleepEntry {
        &self.entries.as_ref()[self.index(thread, place)]
    }

    /// Whether [`SleepCache::insert`] was called for this thread at this place, with or without success.
    pub fn was_tried(&self, thread: u32, place: SleepPlace) -> bool {
        let entry = self.entry(thread, place);
        (entry.thread, entry.pc, entry.sp) == (thread, place.pc, place.sp)
    }

    /// Stores the stack of a thread that sleeps at `place`. `read` copies memory of the process into its buffer and returns
    /// the number of bytes; `room` is working memory. False if a return address is not found in its order, or the
    /// stack is too deep.
    pub fn insert(
        &mut self,
        thread: u32,
        place: SleepPlace,
        frames: &[u64],
        cut: u8,
        read: impl FnOnce(u64, &mut [u8]) -> usize,
        room: &mut [u8; SPAN],
    ) -> bool {
        let SleepPlace { pc, sp } = place;
        let index = self.index(thread, place);
        let entry = &mut self.entries.as_mut()[index];
        (entry.thread, entry.pc, entry.sp, entry.cut, entry.len) = (thread, pc, sp, cut, 0);
        if frames.is_empty() || frames.len() > FRAMES {
            return false;
        }
        let len = read(sp, room).min(SPAN);
        let mut words = room[..len].chunks_exact(8).map(word).enumerate();
        for (i, frame) in frames.iter().enumerate().skip(1) {
            // Frames are lookup addresses: one less than what lies on the stack.
            let Some((at, _)) = words.find(|(_, word)| *word == frame.wrapping_add(1)) else { return false };
            entry.words[i] = at as u16;
        }
        entry.frames[..frames.len()].copy_from_slice(frames);
        entry.len = frames.len() as u8;
        true
    }

    /// Copies the stored stack of a thread that sleeps at `place` into `into`, if it is still the same.
    pub fn lookup(
        &self,
        thread: u32,
        place: SleepPlace,
        read: impl FnOnce(u64, &mut [u8]) -> usize,
        room: &mut [u8; SPAN],
        into: &mut [u64],
    ) -> Option<CachedStack> {
        let entry = self.entry(thread, place);
        let len = usize::from(entry.len);
        if len == 0 || !self.was_tried(thread, place) {
            return None;
        }
        let last = if len > 1 { usize::from(entry.words[len - 1]) + 1 } else { 0 };
        let stack = room.get_mut(..last * 8)?;
        if read(place.sp, stack) != last * 8 {
            return None;
        }
        let same = (1..len).all(|i| {
            let at = usize::from(entry.words[i]) * 8;
            stack.get(at..at + 8).map(word) == Some(entry.frames[i].wrapping_add(1))
        });
        if same {
            into.get_mut(..len)?.copy_from_slice(&entry.frames[..len]);
        }
        same.then_some(CachedStack { len, cut: entry.cut })
    }
}

fn word(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory that begins at 0x7000.
    fn reader(words: &[u64]) -> impl FnOnce(u64, &mut [u8]) -> usize {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        move |address, into| {
            let bytes = &bytes[(address - 0x7000) as usize..];
            let n = bytes.len().min(into.len());
            into[..n].copy_from_slice(&bytes[..n]);
            n
        }
    }

    #[test]
    fn a_stack_is_known_by_its_return_addresses() {
        let mut cache = SleepCache::new(vec![SleepEntry::default(); 64]);
        let mut room = Box::new([0u8; SPAN]);
        let mut stack = vec![0u64; 512];
        (stack[3], stack[9]) = (0x1001, 0x2001);
        let mut frames = [0u64; 8];
        let place = SleepPlace { pc: 0x500, sp: 0x7000 };
        let stored = [0x500, 0x1000, 0x2000];
        assert!(cache.lookup(4, place, reader(&stack), &mut room, &mut frames).is_none());
        assert!(!cache.was_tried(4, place));
        assert!(cache.insert(4, place, &stored, 2, reader(&stack), &mut room));
        stack[5] = 77;
        assert_eq!(
            cache.lookup(4, place, reader(&stack), &mut room, &mut frames),
            Some(CachedStack { len: 3, cut: 2 })
        );
        assert_eq!(frames[..3], stored);
        assert!(cache.lookup(5, place, reader(&stack), &mut room, &mut frames).is_none());
        assert!(cache.lookup(4, place, |_, _| 8, &mut room, &mut frames).is_none(), "memory that is gone");
        stack[9] = 0x3001;
        assert!(cache.lookup(4, place, reader(&stack), &mut room, &mut frames).is_none());
        assert!(!cache.insert(4, place, &stored, 0, reader(&stack), &mut room), "a word is missing");
        stack[9] = 0x2001;
        assert!(cache.lookup(4, place, reader(&stack), &mut room, &mut frames).is_none());
        assert!(cache.was_tried(4, place));
        assert!(!cache.insert(4, place, &[0x500; FRAMES + 1], 0, reader(&stack), &mut room), "too deep");
    }
}
