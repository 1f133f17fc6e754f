//! The process-wide memory of unwind rules already found: one atomic word for each remembered address.
//!
//! A rule is a pure function of the address (and of which modules are loaded, counted by the epoch), so a
//! word is written with one relaxed store and no order between words matters: whoever loses a race has
//! stored the same truth or a different address's. The address is scrambled by an invertible function; one
//! part of the result is the place in the table, the rest is kept in the word, so a match is exact.

use crate::rules::Rule;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

const INDEX_BITS: u32 = 18;
const TAG_BITS: u32 = 47 - INDEX_BITS;
const ADDRESS_MASK: u64 = (1 << 47) - 1;
const ENTRIES: usize = 1 << INDEX_BITS;

// The word, from the top: tag (29), epoch (8), in use (1), kind (2), from rbp (1), rbp slot (7), CFA (16).
const IN_USE: u64 = 1 << 26;
const KIND_SHIFT: u32 = 24;
const FROM_RBP: u64 = 1 << 23;
const RBP_SHIFT: u32 = 16;
const EPOCH_SHIFT: u32 = 27;
const TAG_SHIFT: u32 = 35;
const _: () = assert!(TAG_SHIFT + TAG_BITS == 64);

/// 2 MiB of address space, touched where used. Empty (and harmless) until [`RuleTable::reserve`].
pub struct RuleTable {
    words: AtomicPtr<AtomicU64>,
}

impl RuleTable {
    /// A table that remembers nothing yet.
    pub const fn new() -> RuleTable {
        RuleTable { words: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Reserves the memory. Once is enough; later calls do nothing.
    /// Returns whether the table is usable; without it every rule is found anew.
    pub fn reserve(&self) -> bool {
        if !self.words.load(Ordering::Acquire).is_null() {
            return true;
        }
        let size = ENTRIES * size_of::<AtomicU64>();
        let Some(place) = crate::memory::map_private(size) else { return false };
        if self
            .words
            .compare_exchange(std::ptr::null_mut(), place.cast(), Ordering::AcqRel, Ordering::Acquire)
            .is_err()
        {
            crate::memory::unmap(place, size); // somebody else was faster
        }
        true
    }

    #[inline(always)]
    fn place(&self, address: u64) -> Option<(&AtomicU64, u64)> {
        let words = self.words.load(Ordering::Acquire);
        if words.is_null() || address > ADDRESS_MASK {
            return None;
        }
        let scrambled = scramble(address);
        let index = scrambled as usize & (ENTRIES - 1);
        // SAFETY: `words` points to ENTRIES zeroed words that are never unmapped while `self` lives; the mask
        // above keeps the index below ENTRIES.
        let word = unsafe { &*words.add(index) };
        Some((word, scrambled >> INDEX_BITS))
    }

    /// The remembered rule of a lookup address.
    #[inline(always)]
    pub(crate) fn get(&self, address: u64, epoch: u8) -> Option<Rule> {
        let (word, tag) = self.place(address)?;
        let word = word.load(Ordering::Relaxed);
        let wanted = tag << TAG_SHIFT | u64::from(epoch) << EPOCH_SHIFT | IN_USE;
        if (word ^ wanted) >> 26 != 0 {
            return None;
        }
        Some(unpack(word))
    }

    pub(crate) fn put(&self, address: u64, epoch: u8, rule: Rule) {
        if let Some((word, tag)) = self.place(address) {
            let value = tag << TAG_SHIFT | u64::from(epoch) << EPOCH_SHIFT | IN_USE | pack(rule);
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Forgets everything; walks may go on meanwhile.
    pub(crate) fn clear(&self) {
        let words = self.words.load(Ordering::Acquire);
        if !words.is_null() {
            for index in 0..ENTRIES {
                // SAFETY: as in `place`.
                let word = unsafe { &*words.add(index) };
                if word.load(Ordering::Relaxed) != 0 {
                    word.store(0, Ordering::Relaxed);
                }
            }
        }
    }
}

impl Default for RuleTable {
    fn default() -> Self {
        RuleTable::new()
    }
}

impl Drop for RuleTable {
    fn drop(&mut self) {
        let words = *self.words.get_mut();
        if !words.is_null() {
            crate::memory::unmap(words.cast(), ENTRIES * size_of::<AtomicU64>());
        }
    }
}

/// A permutation of the 47-bit addresses: odd multiplication and shifted exclusive or are each invertible.
#[inline(always)]
fn scramble(address: u64) -> u64 {
    let x = address ^ address >> 23;
    let x = x.wrapping_mul(0x2545_f491_4f6c_dd1d) & ADDRESS_MASK;
    x ^ x >> 24
}

fn pack(rule: Rule) -> u64 {
    match rule {
        Rule::Frame { from_rbp, cfa, rbp } => {
            u64::from(cfa) | u64::from(rbp & 0x7f) << RBP_SHIFT | if from_rbp { FROM_RBP } else { 0 }
        }
        Rule::Outermost => 1 << KIND_SHIFT,
        Rule::Missing => 2 << KIND_SHIFT,
        Rule::Complex => 3 << KIND_SHIFT,
    }
}

#[inline(always)]
fn unpack(word: u64) -> Rule {
    match word >> KIND_SHIFT & 3 {
        0 => Rule::Frame {
            from_rbp: word & FROM_RBP != 0,
            cfa: word as u16,
            rbp: (word >> RBP_SHIFT & 0x7f) as u8,
        },
        1 => Rule::Outermost,
        2 => Rule::Missing,
        _ => Rule::Complex,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unscramble(value: u64) -> u64 {
        let unshift = |x: u64, by: u32| {
            let mut y = x;
            for _ in 0..47 / by + 1 {
                y = x ^ y >> by;
            }
            y
        };
        // The inverse of an odd number modulo a power of two, by Newton's iteration.
        let factor = 0x2545_f491_4f6c_dd1du64;
        let mut inverse = factor;
        for _ in 0..6 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(factor.wrapping_mul(inverse)));
        }
        unshift(unshift(value, 24).wrapping_mul(inverse) & ADDRESS_MASK, 23)
    }

    #[test]
    fn an_address_can_be_told_from_its_scrambled_form() {
        let mut address = 1u64;
        for _ in 0..100_000 {
            address = address.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1) & ADDRESS_MASK;
            assert_eq!(unscramble(scramble(address)), address);
        }
    }

    #[test]
    fn rules_come_back_and_only_for_their_address_and_epoch() {
        let table = RuleTable::new();
        assert_eq!(table.get(0x1000, 0), None, "not reserved yet");
        assert!(table.reserve());
        let rules = [
            Rule::Frame { from_rbp: false, cfa: 1, rbp: 0 },
            Rule::Frame { from_rbp: true, cfa: 2, rbp: 2 },
            Rule::Frame { from_rbp: false, cfa: u16::MAX, rbp: 127 },
            Rule::Outermost,
            Rule::Missing,
            Rule::Complex,
        ];
        for (i, rule) in rules.into_iter().enumerate() {
            let address = 0x7fff_ffff_f000 + i as u64;
            table.put(address, 255, rule);
            assert_eq!(table.get(address, 255), Some(rule));
            assert_eq!(table.get(address, 254), None);
            assert_eq!(table.get(address ^ 0x40_0000, 255), None);
        }
        table.clear();
        assert_eq!(table.get(0x7fff_ffff_f000, 255), None);
        table.put(u64::MAX, 0, Rule::Outermost);
        assert_eq!(table.get(u64::MAX, 0), None, "kernel addresses are not remembered");
    }
}
