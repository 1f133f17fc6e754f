//! Live blocks as the allocation recorder knows them: its table, in the memory of the process.
//!
//! The table lies in leaves (see [`stackglass_wire::heap::blocks`]). A thread may have been stopped between the allocator and
//! the table, so a block more or less is possible; the table itself is one of whole words. It is input from a program: a
//! chain of leaves without end and blocks that overlap are left out.

use super::{Blocks, SiteId};
use foldhash::HashSet;
use stackglass_process_view::core_image::CoreImage;
use stackglass_wire::heap::MAX_THREADS;
use stackglass_wire::heap::blocks::{ADDRESS_BITS, BlockWord, LEAF_BITS, LeafTrailer, leaf_bytes};
use std::ops::Range;

/// Words that are read at once.
const WORDS: usize = 1 << 15;

/// Where a process has its table: two fields of its [`HeapPage`](stackglass_wire::heap::HeapPage).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TablePlace {
    /// Address of the word with the address of the last leaf.
    pub last_leaf: u64,
    /// Shift of the granule, 4 or 5.
    pub granule_shift: u32,
    /// Address of the addresses of the threads' reallocations.
    pub reallocations: u64,
    /// Address of their number.
    pub reallocation_count: u64,
}

/// The live blocks. The site of each is the number of its counter. `is_mapping`: this counter counts mappings of the program. Those that
/// hold other blocks, or of which several parts are in use, are memory of an allocator: they are left out. Of the others, the part that
/// can be read and written counts.
pub fn read(image: &CoreImage, place: TablePlace, is_mapping: &dyn Fn(u32) -> bool) -> Blocks {
    let mut found = Found { blocks: Blocks::default(), mapping: None, image, is_mapping };
    for (first_address, leaf) in leaves(image, place) {
        read_leaf(image, leaf, first_address, place.granule_shift, &mut |address, block| {
            found.push(address, block);
        });
    }
    found.flush(u64::MAX);
    let mut moving = Blocks::default();
    for (address, block) in reallocations(image, place) {
        if !is_mapping(block.counter) {
            moving.push(address, block.size, SiteId(block.counter));
        }
    }
    found.blocks.add(&moving);
    found.blocks
}

/// The blocks that threads are reallocating, by address: where they were until the allocator has returned, then where they are. No leaf
/// has them. Contents of the old place are intact until the allocator frees it, which is the last that it does.
fn reallocations(image: &CoreImage, place: TablePlace) -> Vec<(u64, BlockWord)> {
    let mut count = [0; 4];
    if place.reallocations == 0 || image.memory.read(place.reallocation_count, &mut count) < count.len() {
        return Vec::new();
    }
    let count = u64::from(u32::from_le_bytes(count)).min(MAX_THREADS as u64);
    let noted = (0..count).filter_map(|number| {
        let slot = image.word(place.reallocations.checked_add(number * 8)?).filter(|slot| *slot != 0)?;
        let not_address = image.word(slot).filter(|word| *word != 0)?;
        let word = image.word(slot.checked_add(size_of::<u64>() as u64)?)?;
        Some((!not_address, BlockWord::decode(word)?))
    });
    let mut noted: Vec<(u64, BlockWord)> = noted.collect();
    noted.sort_unstable_by_key(|(address, _)| *address);
    noted
}

/// The counters of the live blocks, mappings included.
pub fn counters(image: &CoreImage, place: TablePlace) -> HashSet<u32> {
    let mut counters = HashSet::default();
    let mut last = None;
    for (first_address, leaf) in leaves(image, place) {
        read_leaf(image, leaf, first_address, place.granule_shift, &mut |_, block| {
            if last.replace(block.counter) != Some(block.counter) {
                counters.insert(block.counter);
            }
        });
    }
    counters.extend(reallocations(image, place).into_iter().map(|(_, block)| block.counter));
    counters
}

/// Where the table lies: memory of the recorder, not of the program.
pub fn table_memory(image: &CoreImage, place: TablePlace) -> Vec<Range<u64>> {
    const PAGE: usize = 4096;
    let range = |(_, leaf): (u64, u64)| {
        let bytes = (leaf_bytes(place.granule_shift) + size_of::<LeafTrailer>()).next_multiple_of(PAGE);
        leaf..leaf.saturating_add(bytes as u64)
    };
    leaves(image, place).into_iter().map(range).collect()
}

/// Private mappings of the recorder: a table in the process of so many starts and lengths.
pub fn own_mappings(image: &CoreImage, table: u64, entries: u32) -> Vec<Range<u64>> {
    const MOST: u32 = 1 << 16;
    let mut bytes = vec![0; entries.min(MOST) as usize * 16];
    let read = if table == 0 { 0 } else { image.memory.read(table, &mut bytes) };
    let (pairs, _) = bytes[..read].as_chunks::<16>();
    let range = |pair: &[u8; 16]| {
        let (start, length) = pair.split_at(8);
        let word = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).unwrap_or_default();
        let (start, length) = (word(start), word(length));
        (start != 0 && length != 0).then(|| start..start.saturating_add(length))
    };
    pairs.iter().filter_map(range).collect()
}

struct Found<'a> {
    blocks: Blocks,
    /// A mapping, as long as no block is found in it.
    mapping: Option<(u64, u64, SiteId)>,
    image: &'a CoreImage,
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
            && let Some(part) = part_in_use(self.image, start..start + size)
        {
            self.blocks.push(part.start, part.end - part.start, site);
        }
    }
}

/// The part of a mapping that can be read and written. The rest is reserved. `None` if there is no such part, or several.
fn part_in_use(image: &CoreImage, range: Range<u64>) -> Option<Range<u64>> {
    let first = image.mappings.partition_point(|mapping| mapping.range.end <= range.start);
    let inside = image.mappings[first..].iter().take_while(|mapping| mapping.range.start < range.end);
    let mut found: Option<Range<u64>> = None;
    for mapping in inside.filter(|mapping| mapping.readable && mapping.writable) {
        let part = mapping.range.start.max(range.start)..mapping.range.end.min(range.end);
        match &mut found {
            None => found = Some(part),
            Some(found) if found.end == part.start => found.end = part.end,
            Some(_) => return None,
        }
    }
    found
}

/// First address of the blocks and address of each leaf, by the former.
fn leaves(image: &CoreImage, place: TablePlace) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    if !(4..=5).contains(&place.granule_shift) {
        return found;
    }
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
    image: &CoreImage,
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

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_process_view::core_image::{Mapping, Memory};

    struct NoMemory;

    impl Memory for NoMemory {
        fn read(&self, _: u64, _: &mut [u8]) -> usize {
            0
        }
    }

    /// Ranges with whether they can be accessed.
    fn blocks(mapped: &[(Range<u64>, bool)], found: &[(u64, u64, u32)]) -> Vec<(u64, u64)> {
        let mapping = |(range, accessible): &(Range<u64>, bool)| Mapping {
            range: range.clone(),
            readable: *accessible,
            writable: *accessible,
            executable: false,
            shared: false,
            offset: 0,
            inode: 0,
            path: String::new(),
        };
        let mappings = mapped.iter().map(mapping).collect();
        let image = CoreImage {
            pid: 1,
            executable: String::new(),
            mappings,
            threads: Vec::new(),
            memory: Box::new(NoMemory),
        };
        let is_mapping = |counter| counter == 2;
        let mut list =
            Found { blocks: Blocks::default(), mapping: None, image: &image, is_mapping: &is_mapping };
        for (address, size, counter) in found {
            list.push(*address, BlockWord { counter: *counter, size: *size, upper: false });
        }
        list.flush(u64::MAX);
        list.blocks.iter().collect()
    }

    #[test]
    fn reserved_memory_is_no_block() {
        let mapping = [(0x1_0000, 0x1_0000, 2)];
        assert_eq!(blocks(&[(0x1_0000..0x2_0000, true)], &mapping), [(0x1_0000, 0x1_0000)]);
        assert_eq!(blocks(&[(0x1_0000..0x2_0000, false)], &mapping), []);
        assert_eq!(blocks(&[], &mapping), []);
        // The kernel joins mappings, and divides those with parts of different properties.
        assert_eq!(blocks(&[(0..0x3_0000, true)], &mapping), [(0x1_0000, 0x1_0000)]);
        let two = [(0x1_0000..0x1_4000, true), (0x1_4000..0x2_0000, true)];
        assert_eq!(blocks(&two, &mapping), [(0x1_0000, 0x1_0000)]);
    }

    #[test]
    fn of_a_reservation_the_part_in_use_is_a_block() {
        let mapping = [(0x1_0000, 0x1_0000, 2), (0x3_0000, 24, 1)];
        let begin = [(0x1_0000..0x1_3000, true), (0x1_3000..0x2_0000, false), (0x3_0000..0x3_1000, true)];
        assert_eq!(blocks(&begin, &mapping), [(0x1_0000, 0x3000), (0x3_0000, 24)]);
        let middle = [(0x1_0000..0x1_3000, false), (0x1_3000..0x1_4000, true)];
        assert_eq!(blocks(&middle, &mapping), [(0x1_3000, 0x1000), (0x3_0000, 24)]);
        // Several parts: an allocator divides it.
        let parts = [(0x1_0000..0x1_3000, true), (0x1_3000..0x1_4000, false), (0x1_4000..0x2_0000, true)];
        assert_eq!(blocks(&parts, &mapping), [(0x3_0000, 24)]);
        // And one that holds a block.
        let holds = [(0x1_0000, 0x1_0000, 2), (0x1_8000, 24, 1)];
        assert_eq!(blocks(&[(0x1_0000..0x2_0000, true)], &holds), [(0x1_8000, 24)]);
    }
}
