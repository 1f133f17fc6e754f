//! The live blocks of a process, in its own memory: a word for each granule of addresses, in leaves of 64 MiB of addresses.
//!
//! A heap snapshot reads them in a copy of the process. Leaves are linked: [`HeapPage::last_leaf`](super::HeapPage::last_leaf)
//! is the address of a word that holds the address of the last one.

use core::sync::atomic::AtomicU64;

/// Bits of user addresses.
pub const ADDRESS_BITS: u32 = 47;
/// Address bits below a leaf.
pub const LEAF_BITS: u32 = 26;

// The word of a block, from the top: live (1), upper half of a granule of 32 bytes (1), size (38), counter (24).

/// In the word of a live block.
pub const LIVE: u64 = 1 << 63;
/// In the word of a block that begins in the upper half of a granule of 32 bytes.
pub const UPPER: u64 = 1 << 62;
/// Bits of the number of a counter. The size lies above them.
pub const COUNTER_BITS: u32 = 24;
/// Largest size that is stored, in bytes. Larger blocks have this one.
pub const MAX_SIZE: u64 = (1 << 38) - 1;

/// Bytes of the words of a leaf, whose [`LeafTrailer`] follows.
pub const fn leaf_bytes(granule_shift: u32) -> usize {
    (1usize << LEAF_BITS >> granule_shift) * 8
}

/// What follows the words of a leaf.
#[repr(C)]
pub struct LeafTrailer {
    /// First address of the leaf's blocks.
    pub first_address: AtomicU64,
    /// Address of the leaf that was made before, 0 for the first.
    pub previous: AtomicU64,
}

/// A block that a thread is reallocating. No leaf has it from before the allocator is called until the place of the new block is known
/// to the recorder: meanwhile another thread may get the old address.
#[repr(C)]
pub struct Reallocation {
    /// The complement of the block's address, 0 if there is none. An address would look like a pointer that holds the block, in a heap
    /// snapshot. It is the old address until the allocator has returned.
    pub not_address: AtomicU64,
    /// Its word, as in a leaf.
    pub word: AtomicU64,
}

/// A live block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockWord {
    /// Number of its counter.
    pub counter: u32,
    /// Its size in bytes.
    pub size: u64,
    /// Begins in the upper half of a granule of 32 bytes.
    pub upper: bool,
}

impl BlockWord {
    /// The block of a word; `None` for a word without a block.
    pub fn decode(word: u64) -> Option<BlockWord> {
        (word & LIVE != 0).then_some(BlockWord {
            counter: word as u32 & ((1 << COUNTER_BITS) - 1),
            size: word >> COUNTER_BITS & MAX_SIZE,
            upper: word & UPPER != 0,
        })
    }
}
