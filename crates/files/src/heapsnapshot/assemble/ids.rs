//! Ids of nodes: odd, below 2^32, each used once, and in most cases the same in all snapshots of one process.
//!
//! Viewers compare two snapshots by ids, but keep only 32 bits of them. Ids in part files are addresses. A folded address is an
//! id of 32 bits. Where two are the same, the later node gets the next free one. Used ids are bits
//! in pages, which exist where there are nodes: blocks are close to each other, so that this takes little memory.

use crate::heapsnapshot::addresses::region_and_number;

/// Ids in a page.
const PAGE: usize = 512;

/// All pages: an id without its last bit has 31 bits.
const PAGES: usize = (1 << 31) / PAGE;

/// Pages that any snapshot may have: 4 MiB.
const MOST_PAGES: usize = 1 << 16;

/// The used ids.
pub(super) struct Ids {
    /// Of each page: its index in `used` plus 1; 0 if no id of it is used.
    pages: Vec<u32>,
    used: Vec<[u64; PAGE / 64]>,
    /// The largest number of pages that nodes get by their addresses: 8 bytes for each node, at least 4 MiB.
    most: usize,
    /// Where the search for any free id continues.
    any: usize,
}

impl Ids {
    pub(super) fn new(nodes: u64) -> Self {
        Self { pages: vec![0; PAGES], used: Vec::new(), most: MOST_PAGES.max(nodes as usize / 8), any: 0 }
    }

    /// The id of a node, which was stored as `id`.
    pub(super) fn take(&mut self, id: u64) -> u32 {
        let (_, wanted) = region_and_number(id);
        let page = wanted as usize / PAGE;
        if self.pages[page] == 0 && self.used.len() >= self.most {
            return self.take_any();
        }
        match take_from(self.page(page), wanted as usize % PAGE) {
            Some(bit) => id_of(page, bit),
            None => self.take_any(),
        }
    }

    fn page(&mut self, page: usize) -> &mut [u64; PAGE / 64] {
        if self.pages[page] == 0 {
            self.used.push([0; PAGE / 64]);
            self.pages[page] = self.used.len() as u32;
        }
        &mut self.used[self.pages[page] as usize - 1]
    }

    /// The lowest free id. There are more ids than nodes.
    #[cold]
    fn take_any(&mut self) -> u32 {
        loop {
            let page = self.any % PAGES;
            if let Some(bit) = take_from(self.page(page), 0) {
                return id_of(page, bit);
            }
            self.any += 1;
        }
    }
}

fn id_of(page: usize, bit: usize) -> u32 {
    2 * (page * PAGE + bit) as u32 + 1
}

/// Takes the first free bit from `first` on.
#[inline]
fn take_from(page: &mut [u64; PAGE / 64], first: usize) -> Option<usize> {
    let mut mask = u64::MAX << (first % 64);
    for (index, word) in page.iter_mut().enumerate().skip(first / 64) {
        let free = !*word & mask;
        if free != 0 {
            let bit = free.trailing_zeros() as usize;
            *word |= 1 << bit;
            return Some(64 * index + bit);
        }
        mask = u64::MAX;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Ids of blocks at these addresses.
    fn ids(addresses: impl Iterator<Item = u64>) -> Vec<u32> {
        let mut ids = Ids::new(30_000);
        addresses.map(|address| ids.take(address)).collect()
    }

    #[test]
    fn a_block_keeps_its_id_when_others_come_and_go() {
        let heap = |index: u64| 0x5581_2345_0000 + 48 * index;
        let arena = |index: u64| 0x7f12_0000_0030 + 32 * index;
        let address = |index: u64| if index.is_multiple_of(3) { arena(index) } else { heap(index) };
        let before = ids((0..30_000).map(address));
        let kept: Vec<u64> = (0..30_000).filter(|index| index % 7 != 0).collect();
        let after = ids(kept.iter().map(|index| address(*index)));
        for (index, id) in kept.iter().zip(after) {
            assert_eq!(id, before[*index as usize]);
        }
    }

    #[test]
    fn all_ids_are_odd_and_used_once_whatever_is_stored() {
        let stored: [fn(u64) -> u64; 5] = [
            |_| 7,
            |row| row,
            |row| row << 20,
            |row| row.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            |row| u64::MAX - row,
        ];
        for stored in stored {
            let mut ids = Ids::new(200_000);
            let taken: HashSet<u32> = (0..200_000).map(|row| ids.take(stored(row))).collect();
            assert_eq!(taken.len(), 200_000);
            assert!(taken.iter().all(|id| id % 2 == 1));
            assert!(ids.used.len() <= ids.most + 200_000 / PAGE + 1);
        }
    }
}
