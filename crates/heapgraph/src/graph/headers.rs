//! Recognises a `Vec` or `String` on a stack, whose words have no types: its length tells which elements are stale.
//!
//! Three words in a row hold the address of a buffer, a capacity that is exactly its size, and a length up to that. A `VecDeque` has four
//! words, of which the first three may look the same. If the fourth is no larger than the capacity, nothing is concluded.

use super::Input;
use crate::blocks::lookup::Lookup;
use crate::references::BlockType;

/// Calls `each` with blocks and the number of their initialized elements.
pub(super) fn find(input: &Input<'_>, lookup: &Lookup, bytes: &[u8], each: &mut dyn FnMut(usize, u64)) {
    let words: Vec<u64> =
        bytes.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_le_bytes)).collect();
    for (at, word) in words.iter().enumerate() {
        let Some(found) = lookup.find(input.blocks, *word).filter(|found| found.offset == 0) else {
            continue;
        };
        let index = found.block.0 as usize;
        let site = input.blocks.sites[index].0 as usize;
        let element = match input.sites.get(site).and_then(|site| site.contains) {
            Some(BlockType::Elements(id)) => input.layouts.get(id).size,
            Some(BlockType::Bytes) => 1,
            _ => continue,
        };
        if let Some(length) = length(&words, at, element, input.blocks.sizes[index]) {
            each(index, length);
        }
    }
}

/// The length of the vector whose pointer is the word at `at`.
fn length(words: &[u64], at: usize, element: u64, size: u64) -> Option<u64> {
    let capacity = size.checked_div(element).filter(|capacity| capacity * element == size)?;
    for start in at.saturating_sub(2)..=at {
        let three = words.get(start..start + 3)?;
        let mut others = three.iter().enumerate().filter(|(place, _)| start + place != at);
        let (Some((_, one)), Some((_, other))) = (others.next(), others.next()) else { continue };
        let length = match (*one == capacity, *other == capacity) {
            (true, _) if *other <= capacity => *other,
            (_, true) if *one <= capacity => *one,
            _ => continue,
        };
        let fourth = words.get(start + 3).copied().unwrap_or(0);
        return (fourth > capacity).then_some(length);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::length;

    #[test]
    fn lengths_of_vectors_on_stacks() {
        // A pointer, and what is no small number.
        const P: u64 = 0x7f00_0000_1000;
        for (words, at, expected) in [
            (&[8, P, 5, P + 8][..], 1, Some(5)),
            (&[P, 8, 0, P + 8], 0, Some(0)),
            (&[8, 5, P, P + 8], 2, Some(5)),
            (&[P + 8, 5, 8, P, P + 8], 3, Some(5)),
            // The capacity does not fit the block, or the length the capacity.
            (&[7, P, 5, P + 8], 1, None),
            (&[8, P, 9, P + 8], 1, None),
            // Perhaps a `VecDeque` with head 0 and 5 elements.
            (&[8, P, 0, 5], 1, None),
            (&[8, P], 1, None),
            // A full one.
            (&[8, P, 8, P], 1, Some(8)),
        ] {
            assert_eq!(length(words, at, 16, 128), expected, "{words:?}");
        }
        assert_eq!(length(&[0, P, 0, P], 1, 0, 0), None);
    }
}
