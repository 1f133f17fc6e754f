//! The process-wide cache of unwind rules: one atomic word for each address.
//!
//! A rule depends only on the address and on the loaded modules, which the epoch counts. A word is therefore written with
//! one relaxed store, and the order of words is irrelevant: a lost race stores an equal word, or that of another address.
//! The address is scrambled by an invertible function. One part of the result is the index in the table, the rest is in the
//! word, so a match is exact.

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

/// A cache of rules: 2 MiB of address space, in memory where used. It stays empty until [`RuleTable::reserve`].
pub struct RuleTable {
    words: AtomicPtr<AtomicU64>,
}

impl RuleTable {
    /// An empty table without memory.
    pub const fn new() -> RuleTable {
        RuleTable { words: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Reserves the memory; later calls do nothing. False if the kernel gives none: the table then stays empty.
    pub fn reserve(&self) -> bool {
        if !self.words.load(Ordering::Acquire).is_null() {
            return true;
        }
        let size = ENTRIES * size_of::<AtomicU64>();
        let Some(memory) = crate::pages::map_private(size) else { return false };
        if self
            .words
            .compare_exchange(std::ptr::null_mut(), memory.cast(), Ordering::AcqRel, Ordering::Acquire)
            .is_err()
        {
            crate::pages::unmap(memory, size); // another thread was faster
        }
        true
    }

    #[inline(always)]
    fn entry(&self, address: u64) -> Option<(&AtomicU64, u64)> {
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

    /// The cached rule of a lookup address.
    #[inline(always)]
    pub(crate) fn get(&self, address: u64, epoch: u8) -> Option<Rule> {
        let (word, tag) = self.entry(address)?;
        let word = word.load(Ordering::Relaxed);
        let wanted = tag << TAG_SHIFT | u64::from(epoch) << EPOCH_SHIFT | IN_USE;
        if (word ^ wanted) >> 26 != 0 {
            return None;
        }
        Some(unpack(word))
    }

    /// Caches the rule of a lookup address.
    pub(crate) fn put(&self, address: u64, epoch: u8, rule: Rule) {
        if let Some((word, tag)) = self.entry(address) {
            let value = tag << TAG_SHIFT | u64::from(epoch) << EPOCH_SHIFT | IN_USE | pack(rule);
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Empties the table. Walks may use it meanwhile.
    pub(crate) fn clear(&self) {
        let words = self.words.load(Ordering::Acquire);
        if !words.is_null() {
            for index in 0..ENTRIES {
                // SAFETY: as in `entry`.
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
            crate::pages::unmap(words.cast(), ENTRIES * size_of::<AtomicU64>());
        }
    }
}

/// A permutation of the 47-bit addresses: multiplication by an odd number and xor with a shift are invertible.
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
    fn scrambling_is_invertible() {
        let mut address = 1u64;
        for _ in 0..100_000 {
            address = address.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1) & ADDRESS_MASK;
            assert_eq!(unscramble(scramble(address)), address);
        }
    }

    #[test]
    fn a_rule_is_found_by_its_address_and_epoch_only() {
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
        assert_eq!(table.get(u64::MAX, 0), None, "kernel addresses are not cached");
    }
}
