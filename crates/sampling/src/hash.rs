//! The hash of all tables inside a program: one multiplication for each word.
//!
//! Keys are thread ids, addresses and stacks of the own process, so that nobody prepares collisions. Maps of the
//! collector, which reads hostile input, use foldhash.

/// Hash of some words. All words take part in the upper bits only: [`hash_index`] uses those.
pub fn hash(words: &[u64]) -> u64 {
    words.iter().fold(0, |hash: u64, word| (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Index for a key of some words in a table of `len` entries.
///
/// # Panics
/// When `len` is zero.
pub fn hash_index(words: &[u64], len: usize) -> usize {
    (hash(words) >> 32) as usize % len
}

#[cfg(test)]
mod tests {
    use super::{hash, hash_index};

    #[test]
    fn neighbouring_keys_spread_over_a_table() {
        for len in [256, 1000, 4096] {
            let mut used = vec![0u32; len];
            for key in 0..len as u64 {
                used[hash_index(
                    &[100 + key / 16, 0x7fff_f7dd_1000, 0x7fff_e000_0000 + key % 16 * 4096],
                    len,
                )] += 1;
            }
            let most = used.iter().max().expect("a table has entries");
            let empty = used.iter().filter(|n| **n == 0).count();
            assert!(*most <= 10 && empty < len / 2, "{len}: {most} at one index, {empty} free");
        }
    }

    #[test]
    fn a_different_word_order_or_length_gives_a_different_hash() {
        assert_ne!(hash(&[1, 2]), hash(&[2, 1]));
        assert_ne!(hash(&[1, 2]), hash(&[1, 3]));
        assert_ne!(hash(&[1]), hash(&[1, 0]));
    }
}
