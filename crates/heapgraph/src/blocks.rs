//! The live blocks of a process, by address.

pub mod glibc;
pub mod lookup;
pub mod recorded;

use stackglass_profile::SmallNumbers;
use stackglass_profile::heap_graph::NodeIndex;

/// Where blocks were allocated, and with which type: an index into a table of [`Site`](crate::graph::Site)s. 0 is an unknown site.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SiteId(pub u32);

/// Live blocks, sorted by address, without overlaps.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    /// First address of each block.
    pub addresses: Vec<u64>,
    sizes: SmallNumbers,
    /// Where each block was allocated.
    pub sites: Vec<SiteId>,
}

/// Index of a block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct BlockIndex(pub u32);

impl BlockIndex {
    /// The node of this block in a graph whose first `roots` nodes are no blocks.
    pub fn node(self, roots: u32) -> NodeIndex {
        NodeIndex(self.0 + roots)
    }
}

impl Blocks {
    /// Number of blocks.
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Size of a block: bytes asked for, or usable bytes if that is not known.
    ///
    /// # Panics
    /// If there is no such block.
    #[inline]
    pub fn size(&self, index: usize) -> u64 {
        self.sizes.get(index)
    }

    /// Address and size of all blocks.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.addresses.iter().enumerate().map(|(index, address)| (*address, self.size(index)))
    }

    /// Address behind a block.
    ///
    /// # Panics
    /// If there is no such block.
    #[inline]
    pub fn end(&self, index: usize) -> u64 {
        self.addresses[index].saturating_add(self.size(index).max(1))
    }

    /// Adds a block, unless it overlaps the last one or lies before it.
    pub fn push(&mut self, address: u64, size: u64, site: SiteId) {
        if !self.is_empty() && address < self.end(self.len() - 1) {
            return;
        }
        self.addresses.push(address);
        self.sizes.push(size);
        self.sites.push(site);
    }

    /// Adds the blocks of another list that these do not overlap.
    pub fn add(&mut self, others: &Blocks) {
        let mut merged = Blocks::default();
        let mut next = 0;
        let mut add_before = |merged: &mut Blocks, end: u64| {
            while next < others.len() && others.addresses[next] < end {
                // A block that reaches into one of these is the same, with its usable size.
                if others.end(next) <= end {
                    merged.push(others.addresses[next], others.size(next), others.sites[next]);
                }
                next += 1;
            }
        };
        for index in 0..self.len() {
            add_before(&mut merged, self.addresses[index]);
            merged.push(self.addresses[index], self.size(index), self.sites[index]);
        }
        add_before(&mut merged, u64::MAX);
        *self = merged;
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(list: &[(u64, u64, u32)]) -> Blocks {
        let mut blocks = Blocks::default();
        list.iter().for_each(|(address, size, site)| blocks.push(*address, *size, SiteId(*site)));
        blocks
    }

    #[test]
    fn blocks_of_another_list_fill_the_gaps() {
        let mut known = blocks(&[(0x20, 5, 1), (0x60, 20, 2)]);
        // The same two with usable sizes, and others before, between and behind them; one overlaps.
        let others = blocks(&[(0x00, 24, 0), (0x20, 24, 0), (0x40, 24, 0), (0x5c, 8, 0), (0x80, 24, 0)]);
        known.add(&others);
        assert_eq!(known.addresses, [0x00, 0x20, 0x40, 0x60, 0x80]);
        assert_eq!((0..5).map(|index| known.size(index)).collect::<Vec<_>>(), [24, 5, 24, 20, 24]);
        assert_eq!(known.sites.iter().map(|site| site.0).collect::<Vec<_>>(), [0, 1, 0, 2, 0]);
    }
}
