//! Finds the block that holds an address.
//!
//! Blocks lie close together in areas of the address space. In an area, a table has the number of blocks before each step of
//! addresses, with about as many steps as blocks. A lookup compares with a few blocks behind the one that the table names.

use super::{BlockIndex, Blocks};

/// Areas end at gaps of this many bytes.
const GAP: u64 = 1 << 20;
/// An address at most so many bytes behind the end of a block may be that of its end: the size may be less than what the allocator
/// gave.
const NEAR: u64 = 24;
/// Smallest step: 256 bytes.
const SMALLEST_SHIFT: u32 = 8;

/// An index over [`Blocks`].
#[derive(Debug, Default)]
pub struct Lookup {
    areas: Vec<Area>,
    steps: Vec<u32>,
}

#[derive(Debug)]
struct Area {
    start: u64,
    end: u64,
    shift: u32,
    first_step: usize,
}

/// A block, and where in it an address lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// The block.
    pub block: BlockIndex,
    /// Bytes from its first.
    pub offset: u64,
}

impl Lookup {
    /// An index of these blocks, whose addresses must ascend.
    pub fn new(blocks: &Blocks) -> Lookup {
        let mut lookup = Lookup::default();
        let mut first = 0;
        while first < blocks.len() {
            let mut last = first;
            while last + 1 < blocks.len() && blocks.addresses[last + 1] - blocks.end(last) < GAP {
                last += 1;
            }
            lookup.add_area(blocks, first..last + 1);
            first = last + 1;
        }
        lookup
    }

    fn add_area(&mut self, blocks: &Blocks, range: std::ops::Range<usize>) {
        let start = blocks.addresses[range.start] & !((1 << SMALLEST_SHIFT) - 1);
        let end = blocks.end(range.end - 1);
        let mean = (end - start) / range.len() as u64;
        let shift = SMALLEST_SHIFT.max(63 - (mean | 1).leading_zeros());
        self.areas.push(Area { start, end, shift, first_step: self.steps.len() });
        let mut index = range.start;
        for step in 0..=(end - start) >> shift {
            let address = start + (step << shift);
            while index < range.end && blocks.addresses[index] < address {
                index += 1;
            }
            self.steps.push(index as u32);
        }
    }

    /// The block that holds an address; a block of no bytes holds its first.
    #[inline]
    pub fn find(&self, blocks: &Blocks, address: u64) -> Option<Found> {
        self.find_near(blocks, address).filter(|found| found.is_inside(blocks))
    }

    /// The block that holds an address, or else the one that ends there or a few bytes before: no other block begins in between.
    #[inline]
    pub fn find_near(&self, blocks: &Blocks, address: u64) -> Option<Found> {
        let behind = self.areas.partition_point(|area| area.start <= address);
        let area = &self.areas[behind.checked_sub(1)?];
        if address > area.end + NEAR {
            return None;
        }
        let steps = area.first_step + ((address.min(area.end) - area.start) >> area.shift) as usize;
        let mut index = self.steps[steps] as usize;
        while blocks.addresses.get(index).is_some_and(|start| *start <= address) {
            index += 1;
        }
        let index = index.checked_sub(1)?;
        let found =
            Found { block: BlockIndex(index as u32), offset: address.checked_sub(blocks.addresses[index])? };
        (found.offset <= blocks.size(index).saturating_add(NEAR)).then_some(found)
    }
}

impl Found {
    /// Whether the address is that of a byte of the block, or of a block of no bytes.
    #[inline]
    pub fn is_inside(&self, blocks: &Blocks) -> bool {
        self.offset < blocks.size(self.block.0 as usize).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::SiteId;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_lookup_finds_what_a_scan_finds(
            gaps in prop::collection::vec((0u64..100, prop_oneof![0u64..64, 0u64..10_000, 1u64..(8 << 20)]), 0..200),
            probes in prop::collection::vec(any::<prop::sample::Index>(), 50),
        ) {
            let mut blocks = Blocks::default();
            let mut next = 0x5555_0000_1230;
            for (gap, size) in gaps {
                next += gap * 16;
                blocks.push(next, size, SiteId(0));
                next += size.max(1).next_multiple_of(16);
            }
            let lookup = Lookup::new(&blocks);
            let first = 0x5555_0000_1000u64;
            let near = |probe: &prop::sample::Index| first + probe.index((next - first + 0x1000) as usize) as u64;
            let edges = (0..blocks.len()).flat_map(|index| {
                let (start, end) = (blocks.addresses[index], blocks.end(index));
                [start - 1, start, start + 1, end - 1, end]
            });
            for address in probes.iter().map(near).chain(edges).chain([0, u64::MAX]) {
                let expected = (0..blocks.len()).rev().find(|index| {
                    (blocks.addresses[*index]..blocks.end(*index)).contains(&address)
                });
                let found = lookup.find(&blocks, address);
                prop_assert_eq!(found.map(|found| found.block.0 as usize), expected);
                if let (Some(found), Some(index)) = (found, expected) {
                    prop_assert_eq!(found.offset, address - blocks.addresses[index]);
                }
                let last = (0..blocks.len()).rev().find(|index| blocks.addresses[*index] <= address);
                let near = last.filter(|index| address - blocks.addresses[*index] <= blocks.size(*index) + NEAR);
                prop_assert_eq!(lookup.find_near(&blocks, address).map(|found| found.block.0 as usize), near);
            }
        }
    }
}
