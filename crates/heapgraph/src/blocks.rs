//! The live blocks of a process, by address.

pub mod glibc;

use stackglass_profile::heap_graph::NodeIndex;

/// Where blocks were allocated, and with which type: an index into a table of [`Site`](crate::references::BlockType)s of the
/// caller. 0 is an unknown site.
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

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }
}
