//! Stacks that are deeper than what comes with a sample.
//!
//! The kernel copies the top of a stack, some hundred frames. What lies beyond is read from the process, at a later
//! moment. That is believed word by word only where the same word was there before the sample as well: a frame that far
//! from the top changes when the program returns into it, and the copies are made at moments the program does not
//! know. Where they differ, the stack is cut.

use crate::launch::moment::monotonic;
use stackglass_unwind::StackMemory;
use stackglass_unwind::memory::read_process;

/// Bytes that are copied at first, and at most.
const LEAST: usize = 256 << 10;
const MOST: usize = 8 << 20;
/// The copy begins so far below what is first asked for: the next samples end elsewhere.
const BELOW: u64 = 64 << 10;

/// Part of a stack at one moment.
#[derive(Default)]
struct Copy {
    /// Number of the drain in which it was made.
    drain: u64,
    /// CLOCK_MONOTONIC ns before and after it was made; 0 for none.
    began: u64,
    ended: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl Copy {
    fn word(&self, address: u64) -> Option<u64> {
        let from = usize::try_from(address.checked_sub(self.start)?).ok()?;
        Some(u64::from_le_bytes(self.bytes.get(from..from.checked_add(8)?)?.try_into().ok()?))
    }
}

/// The last two copies of one thread's stack.
#[derive(Default)]
pub(super) struct DeepStack {
    before: Copy,
    now: Copy,
    wanted: usize,
}

impl DeepStack {
    /// Makes a copy of what lies from `from` on, once in each drain. The stack begins at `sp`.
    ///
    /// False when there is one already that will do.
    pub(super) fn refresh(&mut self, pid: u32, sp: u64, from: u64, drain: u64) -> bool {
        let again = self.now.drain == drain;
        if again && self.now.start <= from {
            return false;
        }
        if !again {
            std::mem::swap(&mut self.before, &mut self.now);
        }
        let start = from.saturating_sub(BELOW).max(sp) & !7;
        self.wanted = self.wanted.clamp(LEAST, MOST);
        self.now.bytes.resize(self.wanted + BELOW as usize, 0);
        let began = monotonic();
        let n = read_process(pid as i32, start, &mut self.now.bytes);
        self.now.bytes.truncate(n);
        (self.now.drain, self.now.began, self.now.ended, self.now.start) = (drain, began, monotonic(), start);
        true
    }
}

/// The stack of a sample: its top as it was copied, and what lies beyond.
pub(super) struct SampledStack<'a> {
    at: u64,
    top: &'a [u8],
    taken: u64,
    beyond: Option<&'a mut DeepStack>,
    /// Something beyond the top was asked for.
    pub passed_top: bool,
}

impl<'a> SampledStack<'a> {
    /// `top` lies at `at` and was copied at the moment `taken`.
    pub(super) fn new(
        at: u64,
        top: &'a [u8],
        taken: u64,
        beyond: Option<&'a mut DeepStack>,
    ) -> SampledStack<'a> {
        SampledStack { at, top, taken, beyond, passed_top: false }
    }

    fn beyond(&mut self, address: u64) -> Option<u64> {
        /// Stacks are no larger; other addresses are no part of it.
        const LARGEST: u64 = 1 << 30;
        let end = self.at.saturating_add(self.top.len() as u64);
        if address < end.saturating_sub(7) || address > end.saturating_add(LARGEST) {
            return None;
        }
        self.passed_top = true;
        let deep = self.beyond.as_mut()?;
        let around = 0 < deep.before.ended && deep.before.ended < self.taken && self.taken < deep.now.began;
        if !around {
            return None;
        }
        let Some(word) = deep.now.word(address) else {
            deep.wanted = (deep.wanted * 2).min(MOST);
            return None;
        };
        (deep.before.word(address) == Some(word)).then_some(word)
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

    #[test]
    fn only_what_was_there_before_and_after_is_believed() {
        let mut stack: Vec<u64> = (0..64 << 10).collect();
        let at = stack.as_ptr().addr() as u64;
        let top: Vec<u8> = stack[..100].iter().flat_map(|word| word.to_le_bytes()).collect();
        let me = std::process::id();
        let mut deep = DeepStack::default();
        let read = |deep: &mut DeepStack, taken: u64, index: u64| {
            let mut sampled = SampledStack::new(at, &top, taken, Some(deep));
            let word = sampled.read_u64(at + index * 8);
            (word, sampled.passed_top)
        };
        assert_eq!(read(&mut deep, 5, 99), (Some(99), false));
        assert_eq!(read(&mut deep, 5, 100), (None, true));
        assert!(deep.refresh(me, at, at + 800, 1));
        let first = monotonic();
        assert_eq!(read(&mut deep, first, 100), (None, true), "one copy is not enough");
        stack[200] = 7;
        std::hint::black_box(&stack);
        assert!(deep.refresh(me, at, at + 800, 2));
        assert_eq!(read(&mut deep, first, 100), (Some(100), true));
        assert_eq!(read(&mut deep, first, 200), (None, true), "it has changed");
        assert_eq!(read(&mut deep, 5, 100), (None, true), "the first copy is younger");
        assert_eq!(read(&mut deep, monotonic(), 100), (None, true), "the second copy is older");
        // Within one drain a copy serves all samples.
        assert!(!deep.refresh(me, at, at + 1600, 2));
        assert_eq!(read(&mut deep, first, 1 << 40).0, None);
    }
}
