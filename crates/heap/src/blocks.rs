//! The live blocks: for each address, the counter and the size of the block that begins there.
//!
//! One word for each *granule* of the address space, in leaves of 64 MiB of addresses, touched where the program has blocks. An
//! insertion is one store and a removal is one load and one store, without a lock, at places as close together as the blocks are.
//! A granule is as large as the smallest distance between two blocks of the allocator.
//!
//! With a rate, most freed blocks are not in the table, and a look at their words would be a miss in the CPU's cache for many of
//! them. So each granule has a *mark*, one bit, while the recorder keeps only some of the allocations: 64 times as dense.

use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering::*};
use stackglass_host::system;
use stackglass_wire::heap::blocks::{
    ADDRESS_BITS, COUNTER_BITS, LEAF_BITS, LIVE, LeafTrailer, MAX_SIZE as LARGEST, UPPER, leaf_bytes,
};

/// Smallest distance between two blocks of an allocator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Granule {
    /// 16 bytes: allocators with size classes, if smaller requests than 9 bytes are rounded up.
    Of16 = 4,
    /// 32 bytes: glibc, whose smallest chunk this is.
    Of32 = 5,
}

const LEAVES: usize = 1 << (ADDRESS_BITS - LEAF_BITS);

/// Largest size that is stored. Larger blocks count as this large.
pub const MAX_SIZE: u64 = LARGEST;

static DIRECTORY: AtomicPtr<AtomicPtr<AtomicU64>> = AtomicPtr::new(core::ptr::null_mut());
/// Address of the leaf that was made last. Each leaf ends with the address of the one before.
static LAST_LEAF: AtomicU64 = AtomicU64::new(0);
static SHIFT: AtomicU32 = AtomicU32::new(Granule::Of32 as u32);
/// Whether all blocks of the table are marked.
static MARKED: AtomicBool = AtomicBool::new(false);
/// The marks of a leaf begin at the next page after its trailer.
const PAGE: usize = 4096;

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

/// For readers of this process: the address of the word with the address of the last leaf, and the granule.
pub fn place() -> (u64, u32) {
    ((&raw const LAST_LEAF).addr() as u64, SHIFT.load(Relaxed))
}

/// Whether no two blocks of the allocator are in one granule, whatever their size.
pub fn are_apart() -> bool {
    SHIFT.load(Relaxed) == Granule::Of32 as u32
}

/// Memory that is never filled in huge pages, of which most would stay unused. A copy of the process has it, too: its blocks are
/// read there.
fn map(bytes: usize) -> *mut u8 {
    let errno = system::errno();
    let at = system::map_private(bytes);
    if !at.is_null() {
        // SAFETY: advice on the mapping just made.
        unsafe { libc::madvise(at.cast(), bytes, libc::MADV_NOHUGEPAGE) };
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

/// The mark of an address in a leaf: a word, and its bit.
///
/// # Safety
/// `leaf` must be the leaf of `address`.
#[inline(always)]
unsafe fn mark(leaf: *mut AtomicU64, address: usize) -> (&'static AtomicU64, u64) {
    let shift = SHIFT.load(Relaxed);
    let index = (address & ((1 << LEAF_BITS) - 1)) >> shift;
    // SAFETY: a leaf has a mark for each granule of its addresses behind its trailer and is never unmapped.
    let word = unsafe { &*leaf.byte_add(marks_at(shift)).add(index / 64) };
    (word, 1 << (index % 64))
}

/// Distance from the begin of a leaf to its marks.
#[inline(always)]
fn marks_at(shift: u32) -> usize {
    leaf_bytes(shift) + PAGE
}

/// Bytes of a leaf: words, trailer, marks.
fn whole_leaf(shift: u32) -> usize {
    marks_at(shift) + (1 << LEAF_BITS >> shift) / 8
}

/// Sets whether blocks are marked. The table must be empty and not be in use, unless marks end.
pub fn set_marked(marked: bool) {
    MARKED.store(marked, Relaxed);
}

/// False if no block of the table begins at an address: the usual case with a rate.
#[inline(always)]
pub fn may_have(address: usize) -> bool {
    if !MARKED.load(Relaxed) {
        return true;
    }
    let Some(entry) = leaf(address) else { return false };
    let at = entry.load(Acquire);
    if at.is_null() {
        return false;
    }
    // SAFETY: the leaf of this address.
    let (word, bit) = unsafe { mark(at, address) };
    word.load(Relaxed) & bit != 0
}

#[inline(always)]
fn half(address: usize) -> u64 {
    if address & 16 != 0 && SHIFT.load(Relaxed) == Granule::Of32 as u32 { UPPER } else { 0 }
}

/// The word of a block at an address.
#[inline(always)]
pub fn word_of(address: usize, block: Block) -> u64 {
    LIVE | half(address) | block.size.min(MAX_SIZE) << COUNTER_BITS | u64::from(block.counter)
}

/// Remembers a block. False without memory.
#[inline(always)]
pub fn insert(address: usize, block: Block) -> bool {
    let Some(entry) = leaf(address) else { return false };
    let mut at = entry.load(Acquire);
    if at.is_null() {
        at = new_leaf(entry, address);
        if at.is_null() {
            return false;
        }
    }
    // SAFETY: the leaf of this address.
    unsafe { word(at, address) }.store(word_of(address, block), Relaxed);
    if MARKED.load(Relaxed) {
        // SAFETY: the leaf of this address.
        let (word, bit) = unsafe { mark(at, address) };
        word.fetch_or(bit, Relaxed);
    }
    true
}

#[cold]
#[inline(never)]
fn new_leaf(entry: &AtomicPtr<AtomicU64>, address: usize) -> *mut AtomicU64 {
    const { assert!(size_of::<LeafTrailer>() <= PAGE) };
    let shift = SHIFT.load(Relaxed);
    let (bytes, size) = (leaf_bytes(shift), whole_leaf(shift));
    let new = map(size);
    if new.is_null() {
        return core::ptr::null_mut();
    }
    match entry.compare_exchange(core::ptr::null_mut(), new.cast(), AcqRel, Acquire) {
        Ok(_) => {
            // SAFETY: the mapping has room for the trailer behind the words, at a multiple of 8.
            let trailer = unsafe { &*new.add(bytes).cast::<LeafTrailer>() };
            trailer.first_address.store((address >> LEAF_BITS << LEAF_BITS) as u64, Relaxed);
            let mut last = LAST_LEAF.load(Relaxed);
            loop {
                trailer.previous.store(last, Relaxed);
                match LAST_LEAF.compare_exchange_weak(last, new.addr() as u64, AcqRel, Relaxed) {
                    Ok(_) => return new.cast(),
                    Err(other) => last = other,
                }
            }
        }
        Err(other) => {
            // SAFETY: no one has seen the new mapping.
            unsafe { system::munmap(new.cast(), size) };
            other
        }
    }
}

/// Removes the block that begins at an address; `None` if none is known.
#[inline(always)]
pub fn remove(address: usize) -> Option<Block> {
    remove_after(address, |_| {})
}

/// As [`remove`], after `before` was called with the word of the block.
#[inline(always)]
pub fn remove_after(address: usize, before: impl FnOnce(u64)) -> Option<Block> {
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
    before(value);
    word.store(0, Relaxed);
    if MARKED.load(Relaxed) {
        // SAFETY: the leaf of this address.
        let (word, bit) = unsafe { mark(at, address) };
        word.fetch_and(!bit, Relaxed);
    }
    Some(Block { counter: value as u32 & ((1 << COUNTER_BITS) - 1), size: value >> COUNTER_BITS & MAX_SIZE })
}

/// Calls `each` with all leaves.
fn for_each_leaf(mut each: impl FnMut(*mut u8)) {
    let mut next = LAST_LEAF.load(Acquire);
    while next != 0 {
        let leaf = core::ptr::with_exposed_provenance_mut::<u8>(next as usize);
        // SAFETY: a leaf of the list, which ends with a trailer.
        let trailer = unsafe { &*leaf.add(leaf_bytes(SHIFT.load(Relaxed))).cast::<LeafTrailer>() };
        next = trailer.previous.load(Relaxed);
        each(leaf);
    }
}

/// Forgets all blocks. Blocks that other threads insert meanwhile may be forgotten or not.
pub fn forget() {
    let shift = SHIFT.load(Relaxed);
    let (words, marks) = (leaf_bytes(shift), whole_leaf(shift) - marks_at(shift));
    // SAFETY: leaves are private and anonymous: without their pages they read as zeros. The page of the trailer stays.
    for_each_leaf(|leaf| unsafe {
        libc::madvise(leaf.cast(), words, libc::MADV_DONTNEED);
        libc::madvise(leaf.add(marks_at(shift)).cast(), marks, libc::MADV_DONTNEED);
    });
}

/// In a forked child: the leaves are its parent's. `is_unused`: no function of the recorder goes on in this child.
pub fn after_fork(is_unused: bool) {
    let directory = DIRECTORY.swap(core::ptr::null_mut(), AcqRel);
    if is_unused && !directory.is_null() {
        let size = whole_leaf(SHIFT.load(Relaxed));
        // SAFETY: this thread, the only one of the child, does not use them.
        unsafe {
            for_each_leaf(|leaf| {
                system::munmap(leaf.cast(), size);
            });
            system::munmap(directory.cast(), LEAVES * 8);
        }
    }
    LAST_LEAF.store(0, Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table is one for the process, so everything about it is one test.
    #[test]
    fn a_block_is_found_by_its_first_byte_only() {
        assert!(prepare(Granule::Of32));
        for marked in [false, true, false] {
            set_marked(marked);
            blocks_are_found(marked);
            // Forgotten with their marks.
            assert!(insert(0x4000, Block { counter: 1, size: 9 }));
            forget();
            assert_eq!((may_have(0x4000), remove(0x4000)), (!marked, None));
        }
    }

    fn blocks_are_found(marked: bool) {
        let block = Block { counter: 0xff_fffe, size: 123 };
        for address in [0x10, 0x7fff_ffff_ffe0, 0x5555_0000_0030, 0x3ff_fff0] {
            assert!(insert(address, block) && may_have(address));
            assert_eq!(remove(address ^ 16), None, "{address:#x}");
            // Neighbours have marks of their own.
            assert_eq!([address ^ 32, address ^ 64, address ^ 2048].map(may_have), [!marked; 3]);
            assert_eq!(remove(address), Some(block));
            assert_eq!((remove(address), may_have(address)), (None, !marked));
        }
        assert_eq!(remove(0x1234_5670), None, "no leaf");
        assert!(!insert(1 << 47, block));
        assert_eq!(remove(usize::MAX), None);
        assert!(insert(32, Block { counter: 1, size: u64::MAX }));
        assert_eq!(remove(32), Some(Block { counter: 1, size: MAX_SIZE }));
    }
}
