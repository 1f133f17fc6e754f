//! Words of Rust's locks: whether a change of the word gives the lock back.
//!
//! Sources: `std/src/sys/sync/mutex/futex.rs`, `std/src/sys/sync/rwlock/futex.rs`; `src/raw_mutex.rs` and `src/raw_rwlock.rs` of
//! parking_lot 0.11 and 0.12.

use stackglass_profile::thread_waits::LockKind;

/// Bits of a `RwLock` of std with the number of readers. All of them are set while it is written.
const STD_READERS: u64 = (1 << 30) - 1;
/// The bit of a mutex of parking_lot that says that it is locked. The other one says that threads wait.
const PARKING_LOCKED: u64 = 1;
/// Bits of its `RwLock` that say that threads wait, and where the number of readers begins. Those between say that it is written, and
/// that a reader may write.
const PARKING_WAITS: u64 = 3;
const PARKING_READERS: u32 = 4;

/// The word of the state of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LockState {
    /// Whether it is a mutex.
    pub kind: LockKind,
    /// It is one of parking_lot, otherwise of std.
    pub is_of_parking_lot: bool,
    /// Its address.
    pub address: u64,
}

impl LockState {
    /// The word of 8 bytes with the state.
    pub fn word(&self) -> u64 {
        self.address & !7
    }

    /// The state in the value of that word.
    fn of(&self, word: u64) -> u64 {
        let value = word >> ((self.address & 7) * 8);
        match (self.kind == LockKind::Mutex, self.is_of_parking_lot) {
            (true, false) => value & u64::from(u32::MAX),
            (false, false) => value & STD_READERS,
            (true, true) => value & PARKING_LOCKED,
            (false, true) => value & !PARKING_WAITS,
        }
    }

    /// Whether nobody has the lock.
    pub fn is_free(&self, word: u64) -> bool {
        self.of(word) == 0
    }

    /// How many have the lock at most.
    pub fn count(&self, word: u64) -> u64 {
        let state = self.of(word);
        match (self.kind == LockKind::Mutex, self.is_of_parking_lot) {
            (true, _) => 1,
            (false, false) if state == STD_READERS => 1,
            (false, false) => state,
            // One that is to write waits for the readers.
            (false, true) => (state >> PARKING_READERS).max(1),
        }
    }

    /// Whether a change of the word gives the lock back.
    pub fn gives_back(&self, before: u64, after: u64) -> bool {
        let (before, after) = (self.of(before), self.of(after));
        match self.kind {
            LockKind::Mutex => before != 0 && after == 0,
            _ => after < before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states() {
        let lock = |kind, is_of_parking_lot, address| LockState { kind, is_of_parking_lot, address };
        let mutex = lock(LockKind::Mutex, false, 0x1004);
        assert_eq!(mutex.word(), 0x1000);
        // The other half of the word is of something else.
        assert!(mutex.gives_back(0x2_0000_0007, 0x8) && !mutex.gives_back(0x2_0000_0007, 0x2_0000_0000));
        assert!(mutex.is_free(7) && !mutex.gives_back(7, 0));
        let shared = lock(LockKind::RwLock, false, 0x1000);
        let waiting = 1 << 31;
        assert!(shared.gives_back(waiting | 2, waiting | 1) && !shared.gives_back(waiting | 1, 1));
        assert_eq!([2, STD_READERS, waiting].map(|word| shared.count(word)), [2, 1, 0]);
        let parked = lock(LockKind::Mutex, true, 0x1001);
        assert!(parked.gives_back(0x0300, 0x0200) && !parked.gives_back(0x0300, 0x0100));
        let parked = lock(LockKind::RwLock, true, 0x1000);
        assert!(
            parked.gives_back(0x21, 0x11) && parked.gives_back(0x0a, 0) && !parked.gives_back(0x13, 0x11)
        );
        assert_eq!([0x21, 0x29, 0x09].map(|word| parked.count(word)), [2, 2, 1]);
    }
}
