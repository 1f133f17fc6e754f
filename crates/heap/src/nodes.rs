//! Interned stacks: a trie of frames in the shared table of nodes, with a private hash index of children.
//!
//! Inserting takes no lock. When the index is half full, one thread makes a larger one; meanwhile others use the old one. A
//! node that is inserted meanwhile may be missing in the new index and be inserted once more. Equal nodes are harmless: the
//! reader merges them.

use crate::commit::NODE_REGION;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering::*};
use stackglass_host::system;
use stackglass_wire::heap::{HeapTables, MAX_NODES, NodeEntry};

/// Places of the first index.
const FIRST_BITS: u32 = 13;

/// The index: a power of two of words. Each is 0, or the upper half of the hash and the number of a node.
static INDEX: AtomicPtr<AtomicU64> = AtomicPtr::new(core::ptr::null_mut());
static BITS: AtomicU32 = AtomicU32::new(0);
static GROWING: AtomicBool = AtomicBool::new(false);

/// Creates the index. False without memory.
pub fn prepare(tables: &HeapTables) -> bool {
    if !INDEX.load(Acquire).is_null() {
        return true;
    }
    let index = system::map_private(8 << FIRST_BITS);
    if index.is_null() {
        return false;
    }
    INDEX.store(index.cast(), Release);
    BITS.store(FIRST_BITS, Release);
    // Node 0 is the empty stack.
    let _ = tables.page().nodes().compare_exchange(0, 1, AcqRel, Relaxed);
    NODE_REGION.reserve(tables, size_of::<NodeEntry>())
}

#[inline(always)]
fn hash(parent: u32, lookup: u64) -> u64 {
    let mixed = (lookup ^ u64::from(parent).rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// The node of a frame whose caller is `parent`; `None` if it is new and the table is full.
#[inline]
pub fn intern(tables: &HeapTables, parent: u32, lookup: u64, generation: u32) -> Option<u32> {
    // Bits first: if an index is replaced meanwhile, the number of bits is too small for it, never too large.
    let bits = BITS.load(Acquire);
    let index = INDEX.load(Acquire);
    let hash = hash(parent, lookup);
    let tag = hash & !0xffff_ffff;
    let mask = (1usize << bits) - 1;
    let mut place = hash as usize & mask;
    let mut new = 0;
    for _ in 0..=mask {
        // SAFETY: the index has at least `mask + 1` words and is never unmapped.
        let word = unsafe { &*index.add(place) };
        let mut value = word.load(Acquire);
        if value == 0 {
            if new == 0 {
                new = insert(tables, parent, lookup, generation)?;
            }
            match word.compare_exchange(0, tag | u64::from(new), AcqRel, Acquire) {
                Ok(_) => {
                    if new as usize > mask / 2 {
                        grow(tables, bits);
                    }
                    return Some(new);
                }
                Err(other) => value = other,
            }
        }
        if value & !0xffff_ffff == tag {
            let number = value as u32;
            let node = tables.node(number);
            if node.parent.load(Relaxed) == parent && node.lookup.load(Relaxed) == lookup {
                // After a module was unloaded, its addresses may belong to another one.
                if node.generation.load(Relaxed) >= crate::modules::since_unload() {
                    return Some(number);
                }
            }
        }
        place = (place + 1) & mask;
    }
    // A full index: the node exists without an entry in it.
    insert(tables, parent, lookup, generation)
}

#[cold]
#[inline(never)]
fn insert(tables: &HeapTables, parent: u32, lookup: u64, generation: u32) -> Option<u32> {
    let nodes = tables.page().nodes();
    let number = nodes.load(Relaxed);
    if number as usize >= MAX_NODES - 64 {
        return None;
    }
    if !NODE_REGION.reserve(tables, (number as usize + 64) * size_of::<NodeEntry>()) {
        return None;
    }
    // At most 63 threads are between the check above and this line.
    let number = nodes.fetch_add(1, AcqRel);
    if number as usize >= MAX_NODES - 1
        || !NODE_REGION.reserve(tables, (number as usize + 1) * size_of::<NodeEntry>())
    {
        return None;
    }
    let node = tables.node(number);
    node.parent.store(parent, Relaxed);
    node.generation.store(generation, Relaxed);
    node.lookup.store(lookup, Release);
    Some(number)
}

/// Replaces the index by one four times as large.
#[cold]
#[inline(never)]
fn grow(tables: &HeapTables, bits: u32) {
    if GROWING.swap(true, Acquire) {
        return;
    }
    let larger = bits + 2;
    if BITS.load(Acquire) == bits && (1usize << larger) <= 4 * MAX_NODES {
        let errno = system::errno();
        let index: *mut AtomicU64 = system::map_private(8 << larger).cast();
        system::set_errno(errno);
        if !index.is_null() {
            let mask = (1usize << larger) - 1;
            for number in 1..tables.page().nodes().load(Acquire) {
                let node = tables.node(number);
                let lookup = node.lookup.load(Acquire);
                let hash = hash(node.parent.load(Relaxed), lookup);
                let mut place = hash as usize & mask;
                // SAFETY: `mask + 1` words just mapped, more than twice as many as nodes.
                while unsafe { (*index.add(place)).load(Relaxed) } != 0 {
                    place = (place + 1) & mask;
                }
                // SAFETY: as above.
                unsafe { (*index.add(place)).store(hash & !0xffff_ffff | u64::from(number), Relaxed) };
            }
            INDEX.store(index, Release);
            BITS.store(larger, Release);
        }
    }
    GROWING.store(false, Release);
}

/// In a forked child: the nodes were not inherited. The index is a copy, which is left.
pub fn after_fork() {
    INDEX.store(core::ptr::null_mut(), Release);
    GROWING.store(false, Release);
}
