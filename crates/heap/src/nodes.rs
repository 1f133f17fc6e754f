//! Interned stacks: a trie of frames in the shared table of nodes, with a private hash index of children.
//!
//! Inserting takes no lock. When the index is half full, one thread makes a larger one; meanwhile others use the old one. A
//! node that is inserted meanwhile may be missing in the new index and be inserted once more. Equal nodes are harmless: the
//! reader merges them.
//!
//! Recursion makes a node of each path through it. When a large part of the tables is in use, new nodes are *folded*: a frame
//! whose function is called at an address that the stack contains already gets the node of that earlier frame. The inner frames of stacks, which tell
//! types and sites, stay as they are.

use crate::commit::{COUNTER_REGION, NODE_REGION};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering::*};
use stackglass_host::system;
use stackglass_wire::heap::{CounterEntry, HeapTables, MAX_NODES, NODE_NOWHERE, NodeEntry};

/// Places of the first index.
const FIRST_BITS: u32 = 13;

/// A place of the index. The number is stored after the key; until then, the place is taken and holds no node.
#[repr(C)]
struct Place {
    /// 0 for an empty place; else lookup address (47 bits) and lower bits of the parent (17 bits).
    key: AtomicU64,
    /// Upper bits of the parent (32 bits) and number (32 bits).
    number: AtomicU64,
}

static INDEX: AtomicPtr<Place> = AtomicPtr::new(core::ptr::null_mut());
static BITS: AtomicU32 = AtomicU32::new(0);
static GROWING: AtomicBool = AtomicBool::new(false);

/// In the number of a node that [`intern`] returns, and in that of a place: the address was in no module when the node was made.
pub const NOWHERE: u32 = 1 << 30;
const _: () = assert!(MAX_NODES <= NOWHERE as usize);

/// A node's number with its mark.
fn marked(tables: &HeapTables, number: u32) -> u32 {
    let is_nowhere = tables.node(number).generation.load(Relaxed) & NODE_NOWHERE != 0;
    if is_nowhere { number | NOWHERE } else { number }
}

/// Addresses of programs have 47 bits.
const LOOKUP_BITS: u32 = 47;

#[inline(always)]
fn key_of(parent: u32, lookup: u64) -> (u64, u64) {
    (lookup << (64 - LOOKUP_BITS) | u64::from(parent & 0x1_ffff), u64::from(parent >> 17) << 32)
}

/// Creates the index. False without memory.
pub fn prepare(tables: &HeapTables) -> bool {
    if !INDEX.load(Acquire).is_null() {
        return true;
    }
    let index = system::map_private(size_of::<Place>() << FIRST_BITS);
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

/// A thread's own copies of places of the index, in the fastest cache of the CPU. All zeros is empty.
#[repr(C)]
pub struct NearNodes {
    places: [(u64, u64); NEAR],
    /// The generation of modules for which they hold; 0 for none.
    pub since: u32,
}

const NEAR: usize = 512;

impl NearNodes {
    /// As [`intern`].
    #[inline(always)]
    pub fn intern(&mut self, tables: &HeapTables, parent: u32, lookup: u64, generation: u32) -> Option<u32> {
        let (key, upper) = key_of(parent, lookup);
        if lookup >> LOOKUP_BITS != 0 {
            return intern(tables, parent, lookup, generation);
        }
        let place = &mut self.places[(lookup ^ (lookup >> 9) ^ (u64::from(parent) * 7)) as usize % NEAR];
        if place.0 == key && place.1 & !0xffff_ffff == upper && place.1 != upper {
            return Some(place.1 as u32);
        }
        let number = intern(tables, parent, lookup, generation)?;
        *place = (key, upper | u64::from(number));
        Some(number)
    }

    /// Forgets all copies of another generation.
    #[cold]
    pub fn begin(&mut self, generation: u32) {
        if self.since != 0 {
            self.forget();
        }
        self.since = generation;
    }

    /// Forgets all copies.
    pub fn forget(&mut self) {
        self.places.fill((0, 0));
    }
}

/// The node of a frame whose caller is `parent`, marked with [`NOWHERE`]; `None` if it is new and the table is full.
#[inline]
pub fn intern(tables: &HeapTables, parent: u32, lookup: u64, generation: u32) -> Option<u32> {
    // Bits first: if an index is replaced meanwhile, the number of bits is too small for it, never too large.
    let bits = BITS.load(Acquire);
    let index = INDEX.load(Acquire);
    if lookup >> LOOKUP_BITS != 0 || lookup == 0 {
        return insert(tables, parent, lookup, generation);
    }
    let (key, upper) = key_of(parent, lookup);
    let mask = (1usize << bits) - 1;
    let mut at = hash(parent, lookup) as usize & mask;
    let mut new = 0;
    for _ in 0..=mask {
        // SAFETY: the index has at least `mask + 1` places and is never unmapped.
        let place = unsafe { &*index.add(at) };
        let mut found = place.key.load(Acquire);
        if found == 0 {
            if new == 0 {
                new = match folded(tables, parent, lookup) {
                    Some(earlier) => earlier,
                    None => insert(tables, parent, lookup, generation)?,
                };
            }
            match place.key.compare_exchange(0, key, AcqRel, Acquire) {
                Ok(_) => {
                    let marked = marked(tables, new);
                    place.number.store(upper | u64::from(marked), Release);
                    if new as usize > mask / 2 {
                        grow(tables, bits);
                    }
                    return Some(marked);
                }
                Err(other) => found = other,
            }
        }
        let number = place.number.load(Acquire);
        if found == key && number & !0xffff_ffff == upper && number != upper {
            let number = number as u32;
            if number & NOWHERE != 0 {
                // By now its address may be in a module.
                let made_in = tables.node(number & !NOWHERE).generation.load(Relaxed);
                if made_in == generation | NODE_NOWHERE {
                    return Some(number);
                }
                at = (at + 1) & mask;
                continue;
            }
            // After a module was unloaded, its addresses may belong to another one.
            let since = crate::modules::since_unload();
            if since == 0 || tables.node(number).generation.load(Relaxed) >= since {
                return Some(number);
            }
        }
        at = (at + 1) & mask;
    }
    // A full index: the node exists without an entry in it.
    insert(tables, parent, lookup, generation)
}

/// Nodes are folded when more than this part of the tables is in use.
const FOLDED_FROM: usize = 8;
/// Most callers that are compared.
const FOLDED_AMONG: usize = 512;

/// The node of an earlier call at the same address in the same stack, if nodes are to be folded.
#[cold]
#[inline(never)]
fn folded(tables: &HeapTables, parent: u32, lookup: u64) -> Option<u32> {
    let nodes = NODE_REGION.limit() / size_of::<NodeEntry>();
    let counters = COUNTER_REGION.limit() / size_of::<CounterEntry>();
    if (tables.page().nodes().load(Relaxed) as usize) < nodes / FOLDED_FROM
        && (tables.page().counters().load(Relaxed) as usize) < counters / FOLDED_FROM
    {
        return None;
    }
    let mut number = parent;
    for _ in 0..FOLDED_AMONG {
        if number == 0 {
            return None;
        }
        let node = tables.node(number);
        if node.lookup.load(Relaxed) == lookup {
            return Some(number);
        }
        number = node.parent.load(Relaxed);
    }
    None
}

#[cold]
#[inline(never)]
fn insert(tables: &HeapTables, parent: u32, lookup: u64, generation: u32) -> Option<u32> {
    // Its page is reserved before it is taken, so that all nodes in use can be read.
    let reserved = tables.page().nodes().fetch_update(AcqRel, Acquire, |number| {
        let end = number as usize + 1;
        let fits = end < MAX_NODES && NODE_REGION.reserve(tables, end * size_of::<NodeEntry>());
        fits.then_some(number + 1)
    });
    let number = reserved.ok()?;
    let node = tables.node(number);
    node.parent.store(parent, Relaxed);
    let nowhere = if crate::modules::is_nowhere(lookup) { NODE_NOWHERE } else { 0 };
    node.generation.store(generation | nowhere, Relaxed);
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
        let index: *mut Place = system::map_private(size_of::<Place>() << larger).cast();
        system::set_errno(errno);
        if !index.is_null() {
            let mask = (1usize << larger) - 1;
            for number in 1..tables.page().nodes().load(Acquire).min(MAX_NODES as u32) {
                let node = tables.node(number);
                let (parent, lookup) = (node.parent.load(Relaxed), node.lookup.load(Acquire));
                if lookup == 0 || lookup >> LOOKUP_BITS != 0 {
                    continue;
                }
                let (key, upper) = key_of(parent, lookup);
                let mut at = hash(parent, lookup) as usize & mask;
                // SAFETY: `mask + 1` places just mapped, more than twice as many as nodes.
                unsafe {
                    while (*index.add(at)).key.load(Relaxed) != 0 {
                        at = (at + 1) & mask;
                    }
                    (*index.add(at)).key.store(key, Relaxed);
                    let marked = u64::from(marked(tables, number));
                    (*index.add(at)).number.store(upper | marked, Relaxed);
                }
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
