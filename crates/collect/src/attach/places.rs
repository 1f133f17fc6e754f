//! Places where a thread sleeps that hides `rbp`, so that its stack takes a stop.
//!
//! To stop it once only, the stack is remembered under thread, program counter and stack pointer,
//! together with where its return addresses lie. When the thread sleeps there again and the same return
//! addresses lie in the same words, it is the same stack.

use stackglass_unwind::memory::read_process;
use std::collections::HashMap;

/// Places remembered; with more, all are forgotten.
const MOST: usize = 4096;
/// Bytes of stack searched for return addresses.
const SPAN: usize = 32 << 10;

/// Thread, program counter, stack pointer.
pub type Key = (u32, u64, u64);

/// The memory for one process.
#[derive(Default)]
pub struct Places {
    places: HashMap<Key, Place>,
}

#[derive(Default)]
struct Place {
    frames: Vec<u64>,
    cut: u8,
    /// Byte, counted from the stack pointer, at which each caller's return address lies.
    at: Vec<usize>,
}

impl Places {
    /// Whether the thread was stopped for its stack at this place before.
    pub fn tried(&self, key: Key) -> bool {
        self.places.contains_key(&key)
    }

    /// Remembers the stack that a stop found there. A stack whose return addresses are not all found in
    /// their order is never recognised, but was tried.
    pub fn learn(&mut self, pid: u32, key: Key, frames: &[u64], cut: u8) {
        if self.places.len() >= MOST {
            self.places.clear();
        }
        let mut stack = vec![0; SPAN];
        let n = read_process(pid as i32, key.2, &mut stack);
        let mut words = stack[..n].chunks_exact(8).map(word).enumerate();
        let at: Option<Vec<usize>> = frames
            .iter()
            .skip(1)
            // Frames are look-up addresses: one less than what lies on the stack.
            .map(|frame| words.find(|(_, word)| *word == frame.wrapping_add(1)).map(|(i, _)| i * 8))
            .collect();
        let place = match at {
            Some(at) => Place { frames: frames.to_vec(), cut, at },
            None => Place::default(),
        };
        self.places.insert(key, place);
    }

    /// The stack of a thread that sleeps at a place remembered, and why it is not longer.
    pub fn recognise(&self, pid: u32, key: Key) -> Option<(&[u64], u8)> {
        let place = self.places.get(&key).filter(|place| !place.frames.is_empty())?;
        let mut stack = vec![0; place.at.last().map_or(0, |last| last + 8)];
        if read_process(pid as i32, key.2, &mut stack) != stack.len() {
            return None;
        }
        let callers = place.frames.iter().skip(1).map(|frame| frame.wrapping_add(1));
        let same = place.at.iter().zip(callers).all(|(at, caller)| word(&stack[*at..at + 8]) == caller);
        same.then_some((&place.frames, place.cut))
    }

    /// Forgets all.
    pub fn forget(&mut self) {
        self.places.clear();
    }
}

fn word(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_known_by_its_return_addresses() {
        let me = std::process::id();
        let mut places = Places::default();
        let mut stack = vec![0u64; 8192];
        (stack[3], stack[9]) = (0x1001, 0x2001);
        let key = (7, 0x500, stack.as_ptr().addr() as u64);
        assert!(places.recognise(me, key).is_none() && !places.tried(key));
        places.learn(me, key, &[0x500, 0x1000, 0x2000], 2);
        stack[5] = 77;
        assert_eq!(places.recognise(me, key), Some((&[0x500, 0x1000, 0x2000][..], 2)));
        assert!(places.recognise(me, (8, key.1, key.2)).is_none());
        stack[9] = 0x3001;
        assert!(places.recognise(me, key).is_none());
        places.learn(me, key, &[0x500, 0x1000, 0x2000], 0);
        stack[9] = 0x2001;
        assert!(places.recognise(me, key).is_none() && places.tried(key), "a word was missing");
    }
}
