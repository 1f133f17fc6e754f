//! The live blocks of a process, by address.

pub mod glibc;
pub mod lookup;
pub mod recorded;

use stackglass_profile::heap_graph::NodeIndex;

/// Where blocks were allocated, and with which type: an index into a table of [`Site`](crate::graph::Site)s. 0 is an unknown site.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SiteId(pub u32);

/// Live blocks, sorted by address, without overlaps.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    /// First address of each block.
    pub addresses: Vec<u64>,
    /// Size of each block: bytes asked for, or usable bytes if that is not known.
    pub sizes: Vec<u64>,
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

    /// Address behind a block.
    ///
    /// # Panics
    /// If there is no such block.
    #[inline]
    pub fn end(&self, index: usize) -> u64 {
        self.addresses[index].saturating_add(self.sizes[index].max(1))
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

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }
}
