//! Live blocks as the allocation recorder knows them: its table, in the memory of the process.
//!
//! The table lies in leaves (see [`stackglass_wire::heap::blocks`]). A thread may have been stopped between the allocator and
//! the table, so a block more or less is possible; the table itself is one of whole words. It is input from a program: a
//! chain of leaves without end and blocks that overlap are left out.

use super::{Blocks, SiteId};
use crate::image::Image;
use foldhash::HashSet;
use stackglass_wire::heap::blocks::{ADDRESS_BITS, BlockWord, LEAF_BITS, leaf_bytes};

/// Words that are read at once.
const WORDS: usize = 1 << 15;

/// Where a process has its table: two fields of its [`HeapPage`](stackglass_wire::heap::HeapPage).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TablePlace {
    /// Address of the word with the address of the last leaf.
    pub last_leaf: u64,
    /// Shift of the granule, 4 or 5.
    pub granule_shift: u32,
}

/// The live blocks. The site of each is the number of its counter. `is_mapping`: this counter counts mappings of the program; those that hold
/// other blocks, as the memory of an allocator of its own, are left out.
pub fn read(image: &Image, place: TablePlace, is_mapping: &dyn Fn(u32) -> bool) -> Blocks {
    if !(4..=5).contains(&place.granule_shift) {
        return Blocks::default();
    }
    let mut found = Found { blocks: Blocks::default(), mapping: None, is_mapping };
    for (first_address, leaf) in leaves(image, place) {
        read_leaf(image, leaf, first_address, place.granule_shift, &mut |address, block| {
            found.push(address, block);
        });
    }
    found.flush(u64::MAX);
    found.blocks
}

/// The counters of the live blocks, mappings included.
pub fn counters(image: &Image, place: TablePlace) -> HashSet<u32> {
    let mut counters = HashSet::default();
    let mut last = None;
    if (4..=5).contains(&place.granule_shift) {
        for (first_address, leaf) in leaves(image, place) {
            read_leaf(image, leaf, first_address, place.granule_shift, &mut |_, block| {
                if last.replace(block.counter) != Some(block.counter) {
                    counters.insert(block.counter);
                }
            });
        }
    }
    counters
}

struct Found<'a> {
    blocks: Blocks,
    /// A mapping, as long as no block is found in it.
    mapping: Option<(u64, u64, SiteId)>,
    is_mapping: &'a dyn Fn(u32) -> bool,
}

impl Found<'_> {
    fn push(&mut self, address: u64, block: BlockWord) {
        self.flush(address);
        let site = SiteId(block.counter);
        if (self.is_mapping)(block.counter) {
            self.mapping = Some((address, block.size, site));
        } else {
            self.blocks.push(address, block.size, site);
        }
    }

    /// Adds the last mapping, if it ends before `address`.
    fn flush(&mut self, address: u64) {
        if let Some((start, size, site)) =
            self.mapping.take().filter(|(start, size, _)| start + size <= address)
        {
            self.blocks.push(start, size, site);
        }
    }
}

/// First address of the blocks and address of each leaf, by the former.
fn leaves(image: &Image, place: TablePlace) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let mut next = image.word(place.last_leaf).unwrap_or(0);
    while next != 0 && found.len() <= 1 << (ADDRESS_BITS - LEAF_BITS) {
        let trailer = next.saturating_add(leaf_bytes(place.granule_shift) as u64);
        let fields = image.word(trailer).zip(image.word(trailer.saturating_add(8)));
        let Some((first_address, previous)) = fields else { break };
        if first_address >> ADDRESS_BITS == 0 && first_address & ((1 << LEAF_BITS) - 1) == 0 {
            found.push((first_address, next));
        }
        next = previous;
    }
    found.sort_unstable();
    found.dedup_by_key(|(first_address, _)| *first_address);
    found
}

fn read_leaf(
    image: &Image,
    leaf: u64,
    first_address: u64,
    shift: u32,
    found: &mut impl FnMut(u64, BlockWord),
) {
    let mut bytes = vec![0; WORDS * 8];
    let words = leaf_bytes(shift) / 8;
    for begin in (0..words).step_by(WORDS) {
        let count = image.memory.read(leaf + begin as u64 * 8, &mut bytes) / 8;
        for (index, word) in bytes.chunks_exact(8).take(count).enumerate() {
            let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
            let Some(block) = BlockWord::decode(word) else { continue };
            let address = first_address + ((begin + index) as u64) * (1 << shift);
            found(address + if block.upper { 16 } else { 0 }, block);
        }
    }
}
