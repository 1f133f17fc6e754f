//! The live blocks: for each address, the counter and the size of the block that begins there.
//!
//! One word for each *granule* of the address space, in leaves of 64 MiB of addresses, touched where the program has blocks. An
//! insertion is one store and a removal is one load and one store, without a lock, at places as close together as the blocks are.
//! A granule is as large as the smallest distance between two blocks of the allocator.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*};
use stackglass_host::system;

/// Smallest distance between two blocks of an allocator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Granule {
    /// 16 bytes: allocators with size classes, if smaller requests than 9 bytes are rounded up.
    Of16 = 4,
    /// 32 bytes: glibc, whose smallest chunk this is.
    Of32 = 5,
}

/// Address bits below a leaf.
const LEAF_BITS: u32 = 26;
/// User addresses have 47 bits.
const ADDRESS_BITS: u32 = 47;
const LEAVES: usize = 1 << (ADDRESS_BITS - LEAF_BITS);

// The word of a block, from the top: live (1), upper half of a granule of 32 bytes (1), size (38), counter (24).
const LIVE: u64 = 1 << 63;
const UPPER: u64 = 1 << 62;
const SIZE_SHIFT: u32 = 24;

/// Largest size that is stored. Larger blocks count as this large.
pub const MAX_SIZE: u64 = (1 << 38) - 1;

static DIRECTORY: AtomicPtr<AtomicPtr<AtomicU64>> = AtomicPtr::new(core::ptr::null_mut());
static SHIFT: AtomicU32 = AtomicU32::new(Granule::Of32 as u32);

/// A live block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// Number of its counter.
    pub counter: u32,
    /// Its size in bytes.
    pub size: u64,
}

/// Reserves the directory. False without memory. The granule must not change afterwards.
pub fn prepare(granule: Granule) -> bool {
    if !DIRECTORY.load(Acquire).is_null() {
        return true;
    }
    SHIFT.store(granule as u32, Relaxed);
    let directory = map(LEAVES * 8);
    DIRECTORY.store(directory.cast(), Release);
    !directory.is_null()
}

/// Memory that children get empty and that is never filled in huge pages, of which most would stay unused.
fn map(bytes: usize) -> *mut u8 {
    let errno = system::errno();
    let at = system::map_private(bytes);
    if !at.is_null() {
        // SAFETY: advice on the mapping just made.
        unsafe {
            libc::madvise(at.cast(), bytes, libc::MADV_NOHUGEPAGE);
            libc::madvise(at.cast(), bytes, libc::MADV_WIPEONFORK);
        }
    }
    system::set_errno(errno);
    at
}

#[inline(always)]
fn leaf(address: usize) -> Option<&'static AtomicPtr<AtomicU64>> {
    let directory = DIRECTORY.load(Relaxed);
    let index = address >> LEAF_BITS;
    if directory.is_null() || index >= LEAVES {
        return None;
    }
    // SAFETY: the directory has LEAVES entries and is never unmapped.
    Some(unsafe { &*directory.add(index) })
}

/// The word for an address in a leaf.
///
/// # Safety
/// `leaf` must be the leaf of `address`.
#[inline(always)]
unsafe fn word(leaf: *mut AtomicU64, address: usize) -> &'static AtomicU64 {
    let index = (address & ((1 << LEAF_BITS) - 1)) >> SHIFT.load(Relaxed);
    // SAFETY: a leaf has a word for each granule of its addresses and is never unmapped.
    unsafe { &*leaf.add(index) }
}

#[inline(always)]
fn half(address: usize) -> u64 {
    if address & 16 != 0 && SHIFT.load(Relaxed) == Granule::Of32 as u32 { UPPER } else { 0 }
}

/// Remembers a block. False without memory.
#[inline(always)]
pub fn insert(address: usize, block: Block) -> bool {
    let Some(entry) = leaf(address) else { return false };
    let mut at = entry.load(Acquire);
    if at.is_null() {
        at = new_leaf(entry);
        if at.is_null() {
            return false;
        }
    }
    let value = LIVE | half(address) | block.size.min(MAX_SIZE) << SIZE_SHIFT | u64::from(block.counter);
    // SAFETY: the leaf of this address.
    unsafe { word(at, address) }.store(value, Relaxed);
    true
}

#[cold]
#[inline(never)]
fn new_leaf(entry: &AtomicPtr<AtomicU64>) -> *mut AtomicU64 {
    let bytes = (1usize << LEAF_BITS >> SHIFT.load(Relaxed)) * 8;
    let new = map(bytes);
    if new.is_null() {
        return core::ptr::null_mut();
    }
    match entry.compare_exchange(core::ptr::null_mut(), new.cast(), AcqRel, Acquire) {
        Ok(_) => new.cast(),
        Err(other) => {
            // SAFETY: no one has seen the new mapping.
            unsafe { system::munmap(new.cast(), bytes) };
            other
        }
    }
}

/// Removes the block that begins at an address; `None` if none is known.
#[inline(always)]
pub fn remove(address: usize) -> Option<Block> {
    let at = leaf(address)?.load(Acquire);
    if at.is_null() {
        return None;
    }
    // SAFETY: the leaf of this address.
    let word = unsafe { word(at, address) };
    let value = word.load(Relaxed);
    if value == 0 || (value ^ half(address)) & UPPER != 0 {
        return None;
    }
    word.store(0, Relaxed);
    Some(Block { counter: value as u32 & ((1 << SIZE_SHIFT) - 1), size: value >> SIZE_SHIFT & MAX_SIZE })
}

/// Forgets all blocks. Blocks that other threads insert meanwhile may be forgotten or not.
pub fn forget() {
    let directory = DIRECTORY.load(Acquire);
    if directory.is_null() {
        return;
    }
    let bytes = (1usize << LEAF_BITS >> SHIFT.load(Relaxed)) * 8;
    for index in 0..LEAVES {
        // SAFETY: the directory has LEAVES entries and is never unmapped. Leaves are private and anonymous: without their
        // pages they read as zeros.
        unsafe {
            let leaf = (*directory.add(index)).load(Acquire);
            if !leaf.is_null() {
                libc::madvise(leaf.cast(), bytes, libc::MADV_DONTNEED);
            }
        }
    }
}

/// In a forked child: the leaves were not inherited.
pub fn after_fork() {
    DIRECTORY.store(core::ptr::null_mut(), Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_found_by_its_first_byte_only() {
        assert!(prepare(Granule::Of32));
        let block = Block { counter: 0xff_fffe, size: 123 };
        for address in [0x10, 0x7fff_ffff_ffe0, 0x5555_0000_0030, 0x3ff_fff0] {
            assert!(insert(address, block));
            assert_eq!(remove(address ^ 16), None, "{address:#x}");
            assert_eq!(remove(address), Some(block));
            assert_eq!(remove(address), None);
        }
        assert_eq!(remove(0x1234_5670), None, "no leaf");
        assert!(!insert(1 << 47, block));
        assert_eq!(remove(usize::MAX), None);
        assert!(insert(32, Block { counter: 1, size: u64::MAX }));
        assert_eq!(remove(32), Some(Block { counter: 1, size: MAX_SIZE }));
    }
}
