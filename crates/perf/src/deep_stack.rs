//! Stacks that are deeper than the part that comes with a sample.
//!
//! The kernel copies the top of a stack, some hundred frames. The rest is read from the process at a later moment. It is
//! accepted only if all of it, to the outermost frame, was the same before and after the sample, and the end of the
//! sample's part is the same as well. If the program had returned to its outer functions and called again, it would have
//! left different words there, at least in the variables of its loops. Comparing single words is not enough, because two
//! functions that call each other alternately have frames of the same size. If anything differs, the stack is cut.

use stackglass_unwind::StackMemory;

/// Bytes that are copied at first.
const LEAST: usize = 256 << 10;
/// The copy begins this number of bytes below the first missing one, because the next samples end elsewhere.
const BELOW: u64 = 64 << 10;
/// Bytes at the end of the sample's part that must be the same.
const SEAM: u64 = 16 << 10;

/// Part of a stack at one moment.
#[derive(Default)]
struct Copy {
    /// When copying began, ns.
    began: u64,
    /// When copying ended; 0 for no copy.
    ended: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl Copy {
    fn range(&self, from: u64, to: u64) -> Option<&[u8]> {
        let from = usize::try_from(from.checked_sub(self.start)?).ok()?;
        self.bytes.get(from..usize::try_from(to.checked_sub(self.start)?).ok()?)
    }

    fn word(&self, address: u64) -> Option<u64> {
        let from = usize::try_from(address.checked_sub(self.start)?).ok()?;
        Some(u64::from_le_bytes(self.bytes.get(from..from.checked_add(8)?)?.try_into().ok()?))
    }
}

/// The last two copies of one thread's stack.
pub struct DeepStack {
    before: Copy,
    now: Copy,
    /// Bytes of the next copy.
    wanted: usize,
    most: usize,
}

impl DeepStack {
    /// No copies yet. A copy has at most `most` bytes.
    pub fn new(most: usize) -> DeepStack {
        DeepStack { before: Copy::default(), now: Copy::default(), wanted: LEAST, most }
    }

    /// Copies the stack from `from` on, for a sample that was `taken` before. The stack begins at `sp`. False if there is such a
    /// copy already.
    ///
    /// `clock` is that of the samples, ns. `read` copies memory from an address on and returns the number of bytes.
    pub fn refresh(
        &mut self,
        taken: u64,
        (sp, from): (u64, u64),
        clock: impl Fn() -> u64,
        read: impl FnOnce(u64, &mut [u8]) -> usize,
    ) -> bool {
        let is_later = self.now.began > taken;
        if is_later && self.now.start <= from {
            return false;
        }
        if !is_later {
            std::mem::swap(&mut self.before, &mut self.now);
        }
        let copy = &mut self.now;
        copy.start = from.saturating_sub(BELOW).max(sp) & !7;
        copy.bytes.resize(self.wanted + BELOW as usize, 0);
        copy.began = clock();
        let len = read(copy.start, &mut copy.bytes);
        copy.bytes.truncate(len);
        copy.ended = clock();
        true
    }
}

/// The stack of a sample: the copied top, and the rest.
pub struct SampledStack<'a> {
    at: u64,
    top: &'a [u8],
    taken: u64,
    beyond: Option<&'a mut DeepStack>,
    /// End of the part that was read beyond the top.
    reached: u64,
    /// A word beyond the top was read.
    pub passed_top: bool,
}

impl<'a> SampledStack<'a> {
    /// `top` lies at `at` and was copied at the moment `taken`. Without `beyond`, it is all that is read.
    pub fn new(at: u64, top: &'a [u8], taken: u64, beyond: Option<&'a mut DeepStack>) -> SampledStack<'a> {
        SampledStack { at, top, taken, beyond, reached: 0, passed_top: false }
    }

    fn end(&self) -> u64 {
        self.at.saturating_add(self.top.len() as u64)
    }

    fn beyond(&mut self, address: u64) -> Option<u64> {
        /// Larger distances are no part of the stack.
        const LARGEST: u64 = 1 << 30;
        let end = self.end();
        if address < end.saturating_sub(7) || address > end.saturating_add(LARGEST) {
            return None;
        }
        self.passed_top = true;
        let deep = self.beyond.as_mut()?;
        let is_around =
            0 < deep.before.ended && deep.before.ended < self.taken && self.taken < deep.now.began;
        if !is_around {
            return None;
        }
        let word = deep.now.word(address);
        match word {
            Some(_) => self.reached = self.reached.max(address + 8),
            None => deep.wanted = (deep.wanted * 2).min(deep.most),
        }
        word
    }

    /// Whether everything that was read is accepted.
    pub fn is_proven(&self) -> bool {
        if self.reached == 0 {
            return true;
        }
        let end = self.end();
        let seam = SEAM.min(self.top.len() as u64);
        let top = &self.top[self.top.len() - seam as usize..];
        let Some(deep) = &self.beyond else { return false };
        let same = |copy: &Copy| copy.range(end - seam, end) == Some(top);
        same(&deep.before)
            && same(&deep.now)
            && deep.now.range(end, self.reached).is_some()
            && deep.now.range(end, self.reached) == deep.before.range(end, self.reached)
    }
}

impl StackMemory for SampledStack<'_> {
    #[inline]
    fn read_u64(&mut self, address: u64) -> Option<u64> {
        let from = address.wrapping_sub(self.at) as usize;
        match from.checked_add(8).and_then(|end| self.top.get(from..end)) {
            Some(bytes) => Some(u64::from_le_bytes(bytes.try_into().ok()?)),
            None => self.beyond(address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_unwind::memory::read_own;
    use std::cell::Cell;

    /// What lies in these words beyond a top of 100, and whether all that was read is accepted.
    fn read(
        deep: &mut DeepStack,
        at: u64,
        top: &[u8],
        taken: u64,
        words: &[u64],
    ) -> (Vec<Option<u64>>, bool) {
        let mut sampled = SampledStack::new(at, top, taken, Some(deep));
        let read = words.iter().map(|index| sampled.read_u64(at + index * 8)).collect();
        (read, sampled.is_proven())
    }

    #[test]
    fn only_what_was_there_before_and_after_is_accepted() {
        let mut stack: Vec<u64> = (0..64 << 10).collect();
        let at = stack.as_ptr().addr() as u64;
        let top: Vec<u8> = stack[..100].iter().flat_map(|word| word.to_le_bytes()).collect();
        let clock = Cell::new(10);
        let monotonic = || clock.replace(clock.get() + 1);
        let refresh =
            |deep: &mut DeepStack, taken, from| deep.refresh(taken, (at, from), monotonic, read_own);
        let mut deep = DeepStack::new(8 << 20);
        assert_eq!(read(&mut deep, at, &top, 5, &[99]), (vec![Some(99)], true));
        assert_eq!(read(&mut deep, at, &top, 5, &[100]).0, [None]);
        assert!(refresh(&mut deep, 5, at + 800));
        let first = monotonic();
        assert_eq!(read(&mut deep, at, &top, first, &[100]).0, [None], "one copy is not enough");
        stack[300] = 7;
        std::hint::black_box(&stack);
        assert!(refresh(&mut deep, first, at + 800));
        assert_eq!(read(&mut deep, at, &top, first, &[100, 250]), (vec![Some(100), Some(250)], true));
        assert!(!read(&mut deep, at, &top, first, &[100, 400]).1, "something between has changed");
        assert_eq!(read(&mut deep, at, &top, 5, &[100]).0, [None], "the first copy is younger");
        assert_eq!(read(&mut deep, at, &top, monotonic(), &[100]).0, [None], "the second copy is older");
        let mut other = top.clone();
        other[790] ^= 1;
        assert!(!read(&mut deep, at, &other, first, &[100]).1, "the sample was taken on other frames");
        // A copy serves all samples before it.
        assert!(!refresh(&mut deep, first, at + 1600));
        assert_eq!(read(&mut deep, at, &top, first, &[1 << 40]).0, [None]);
    }
}
