//! Places where a thread was seen asleep and whose stack could not be read from outside.
//!
//! Some functions hide `rbp`, so that the stack of a sleeper takes a signal. To send it once only, the stack
//! is remembered under the thread, its program counter and stack pointer, together with where its return
//! addresses lie. When the thread sleeps there again and the same return addresses lie in the same words, it
//! is the same stack.

use stackglass_host::SlotIndex;
use stackglass_unwind::memory::read_own;

/// Places remembered, the oldest of a set giving way.
const PLACES: usize = 256;
/// Deepest stack remembered.
const FRAMES: usize = 128;
/// Bytes of stack searched for return addresses.
pub const SPAN: usize = 32 << 10;

#[derive(Clone, Copy)]
struct Place {
    slot: u16,
    cut: u8,
    len: u8,
    /// Word in which each frame's return address lies, counted from the stack pointer.
    words: [u16; FRAMES],
    pc: u64,
    sp: u64,
    frames: [u64; FRAMES],
}

/// The memory. All zeros remembers nothing.
pub struct Places {
    places: [Place; PLACES],
}

fn index(slot: SlotIndex, pc: u64, sp: u64) -> usize {
    let mixed = (pc ^ sp.rotate_left(17) ^ (slot.0 as u64) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 40) as usize % PLACES
}

impl Places {
    /// Remembers the stack that a signal found on a thread asleep at `pc`, `sp`. `stack` is working room.
    /// False when its return addresses are not all found in their order, or it is too deep.
    pub fn learn(
        &mut self,
        slot: SlotIndex,
        (pc, sp): (u64, u64),
        frames: &[u64],
        cut: u8,
        stack: &mut [u8; SPAN],
    ) -> bool {
        if frames.is_empty() || frames.len() > FRAMES {
            return false;
        }
        let len = read_own(sp, stack).min(SPAN);
        let mut words = stack[..len].chunks_exact(8).map(word).enumerate();
        let place = &mut self.places[index(slot, pc, sp)];
        place.len = 0;
        for (i, frame) in frames.iter().enumerate().skip(1) {
            // Frames are look-up addresses: one less than what lies on the stack.
            let Some((at, _)) = words.find(|(_, word)| *word == frame.wrapping_add(1)) else { return false };
            place.words[i] = at as u16;
        }
        place.frames[..frames.len()].copy_from_slice(frames);
        (place.slot, place.pc, place.sp, place.cut) = (slot.0, pc, sp, cut);
        place.len = frames.len() as u8;
        true
    }

    /// Writes the frames of a thread asleep at `pc`, `sp` to `into`, if it is a place remembered; their number
    /// and why there are not more. `stack` is working room.
    pub fn recognise(
        &self,
        slot: SlotIndex,
        (pc, sp): (u64, u64),
        stack: &mut [u8; SPAN],
        into: &mut [u64],
    ) -> Option<(usize, u8)> {
        let place = &self.places[index(slot, pc, sp)];
        let len = place.len as usize;
        if len == 0 || (place.slot, place.pc, place.sp) != (slot.0, pc, sp) {
            return None;
        }
        let last = if len > 1 { place.words[len - 1] as usize + 1 } else { 0 };
        if read_own(sp, stack.get_mut(..last * 8)?) != last * 8 {
            return None;
        }
        let same = (1..len).all(|i| {
            let at = place.words[i] as usize * 8;
            stack.get(at..at + 8).map(word) == Some(place.frames[i].wrapping_add(1))
        });
        if same {
            into.get_mut(..len)?.copy_from_slice(&place.frames[..len]);
        }
        same.then_some((len, place.cut))
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
        // SAFETY: all zeros remembers nothing.
        let mut places: Box<Places> = unsafe { Box::new_zeroed().assume_init() };
        let mut room = Box::new([0u8; SPAN]);
        let mut stack = vec![0u64; 512];
        stack[3] = 0x1001;
        stack[9] = 0x2001;
        let mut frames = [0u64; 8];
        let at = (0x500, stack.as_ptr().addr() as u64);
        let slot = SlotIndex(4);
        assert!(places.recognise(slot, at, &mut room, &mut frames).is_none());
        assert!(places.learn(slot, at, &[0x500, 0x1000, 0x2000], 0, &mut room));
        stack[5] = 77;
        assert_eq!(places.recognise(slot, at, &mut room, &mut frames), Some((3, 0)));
        assert_eq!(frames[..3], [0x500, 0x1000, 0x2000]);
        assert!(places.recognise(SlotIndex(5), at, &mut room, &mut frames).is_none());
        stack[9] = 0x3001;
        assert!(places.recognise(slot, at, &mut room, &mut frames).is_none());
        assert!(!places.learn(slot, at, &[0x500, 0x1000, 0x2000], 0, &mut room), "a word is missing");
    }
}
