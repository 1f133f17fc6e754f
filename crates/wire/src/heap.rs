//! The tables in which a program counts its allocations, in memory that it shares with its launcher.
//!
//! The program writes, the launcher reads. Each table has a fixed place and a number of entries in use. The launcher copies
//! what it reads before it checks it. Memory behind the entries in use may not exist: the program gets pages as the tables
//! grow, so that a full file system is an error in the program and never a SIGBUS.
//!
//! | table | entry |
//! | --- | --- |
//! | [`HeapPage`] | settings, sizes of the tables, live bytes and their peak |
//! | threads | [`ThreadEntry`]: the threads that allocated, from number 1 on |
//! | modules | words of module events; the time of an event is the number of its *generation* |
//! | nodes | [`NodeEntry`]: interned stacks; entry 0 is the empty stack |
//! | counters | [`CounterEntry`]: counts by stack, thread, task and size class; entry 0 is not used |

pub mod blocks;

use crate::ready;
use core::ops::Range;
use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::*};

/// Prefix of the files in the session folder: `h-PID-START`, as for process files.
pub const HEAP_FILE_PREFIX: &str = "h-";

/// Prefix of files by which a process tells that it cannot record: `n-PID-ERRNO`. The content is the step that failed.
pub const REFUSED_FILE_PREFIX: &str = "n-";

/// `b"SGHEAP01"`.
const MAGIC: u64 = u64::from_le_bytes(*b"SGHEAP01");

/// Most threads with an entry.
pub const MAX_THREADS: usize = 1 << 16;
/// Words of the table of modules.
pub const MODULE_WORDS: usize = 1 << 17;
/// Most nodes.
pub const MAX_NODES: usize = 1 << 20;
/// Most counters.
pub const MAX_COUNTERS: usize = 1 << 18;

/// Places of the tables in the file, in bytes.
pub const THREADS: Range<usize> = 4096..4096 + MAX_THREADS * size_of::<ThreadEntry>();
/// As [`THREADS`].
pub const MODULES: Range<usize> = THREADS.end..THREADS.end + MODULE_WORDS * 8;
/// As [`THREADS`].
pub const NODES: Range<usize> = MODULES.end..MODULES.end + MAX_NODES * size_of::<NodeEntry>();
/// As [`THREADS`].
pub const COUNTERS: Range<usize> = NODES.end..NODES.end + MAX_COUNTERS * size_of::<CounterEntry>();
/// Size of all tables.
pub const HEAP_BYTES: usize = COUNTERS.end;

/// Counts of one sample in a number of bytes have this factor, since a sample stands for a fraction of allocations.
pub const COUNT_SCALE: u64 = 1 << 10;

/// The class of a size: steps of 8 bytes up to 128, then four for each doubling.
#[inline(always)]
pub fn size_class(size: u64) -> u32 {
    if size <= 128 {
        return size.div_ceil(8) as u32;
    }
    let below = size - 1;
    let doubling = 63 - below.leading_zeros();
    17 + (doubling - 7) * 4 + (below >> (doubling - 2) & 3) as u32
}

/// Whether the [class of a counter](CounterEntry::class) counts mappings of the program itself, not blocks of an allocator.
#[inline(always)]
pub fn is_mapping_class(class: u32) -> bool {
    class >> 8 & 1 == 1
}

/// Which allocations are recorded, as a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum HeapSampling {
    /// None.
    Off = 0,
    /// Every allocation.
    Every = 1,
    /// Each with a probability, whose bits are in the parameter.
    Rate = 2,
    /// One sample in a number of bytes, which is the parameter.
    Bytes = 3,
}

impl HeapSampling {
    /// The sampling with this number; off for unknown numbers.
    pub fn from_number(n: u32) -> HeapSampling {
        match n {
            1 => HeapSampling::Every,
            2 => HeapSampling::Rate,
            3 => HeapSampling::Bytes,
            _ => HeapSampling::Off,
        }
    }
}

/// Settings, sizes and sums. All zeros is a page that is not ready.
#[repr(C, align(64))]
pub struct HeapPage {
    magic: AtomicU64,
    version: AtomicU32,
    /// Process id.
    pub pid: AtomicU32,
    /// CLOCK_MONOTONIC at the begin of the recording, ns.
    pub begin_ns: AtomicU64,
    /// A [`HeapSampling`].
    pub sampling: AtomicU32,
    /// 1: the process has reached its end.
    pub ended: AtomicU32,
    /// The sampling's parameter.
    pub parameter: AtomicU64,
    /// CLOCK_MONOTONIC at the end, ns.
    pub end_ns: AtomicU64,
    /// Threads in use, without entry 0.
    pub threads: AtomicU32,
    /// Words in use in the table of modules.
    pub module_words: AtomicU32,
    /// Address of the word with the address of the last leaf of live blocks; see [`blocks`].
    pub last_leaf: AtomicU64,
    /// Bytes of an address that one word of a leaf stands for, as a shift.
    pub granule_shift: AtomicU32,
    /// Entries of the table at [`HeapPage::own_memory`].
    pub own_memory_entries: AtomicU32,
    /// Address of the table with the private mappings of the recorder. An entry is two words: start and length in bytes, 0 if it is
    /// not used.
    pub own_memory: AtomicU64,
    /// Address of a list of addresses: one for each thread, of its [`Reallocation`](blocks::Reallocation), or 0.
    pub reallocations: AtomicU64,
    /// Address of the number of these addresses (4 bytes).
    pub reallocation_count: AtomicU64,
    growing: Line<Growing>,
    sums: Line<Sums>,
}

#[repr(C, align(64))]
struct Line<T>(T);

#[repr(C)]
struct Growing {
    nodes: AtomicU32,
    counters: AtomicU32,
    lost: AtomicU64,
    without_stack: AtomicU64,
    cut: AtomicU64,
}

#[repr(C)]
struct Sums {
    live_bytes: AtomicI64,
    peak_bytes: AtomicI64,
    peak_at_ns: AtomicU64,
    peak_number: AtomicU32,
}

impl HeapPage {
    /// Nodes in use, including the unused entry 0.
    pub fn nodes(&self) -> &AtomicU32 {
        &self.growing.0.nodes
    }

    /// Counters in use, including the unused entry 0.
    pub fn counters(&self) -> &AtomicU32 {
        &self.growing.0.counters
    }

    /// Allocations that were not recorded, for lack of memory.
    pub fn lost(&self) -> &AtomicU64 {
        &self.growing.0.lost
    }

    /// Allocations that were counted without their whole stack, for lack of memory.
    pub fn without_stack(&self) -> &AtomicU64 {
        &self.growing.0.without_stack
    }

    /// New stacks that could not be followed to their end.
    pub fn cut(&self) -> &AtomicU64 {
        &self.growing.0.cut
    }

    /// Bytes of recorded blocks that are alive; threads add their changes when they are large enough.
    pub fn live_bytes(&self) -> &AtomicI64 {
        &self.sums.0.live_bytes
    }

    /// The highest value of [`HeapPage::live_bytes`].
    pub fn peak_bytes(&self) -> &AtomicI64 {
        &self.sums.0.peak_bytes
    }

    /// CLOCK_MONOTONIC of the peak, ns.
    pub fn peak_at_ns(&self) -> &AtomicU64 {
        &self.sums.0.peak_at_ns
    }

    /// Number of the peak: how often a new one was reached.
    pub fn peak_number(&self) -> &AtomicU32 {
        &self.sums.0.peak_number
    }

    /// Marks the page as complete.
    pub fn publish(&self) {
        ready::publish(&self.magic, &self.version, MAGIC);
    }

    /// Whether the page is complete and of this version.
    pub fn is_ready(&self) -> bool {
        ready::is_ready(&self.magic, &self.version, MAGIC)
    }
}

const _: () = assert!(size_of::<HeapPage>() <= 4096);

/// A thread that allocated.
#[repr(C)]
pub struct ThreadEntry {
    /// Kernel id.
    pub tid: AtomicU32,
    _fill: u32,
    /// CLOCK_MONOTONIC of its first recorded allocation, ns.
    pub first_ns: AtomicU64,
}

/// In the generation of a node: its address was in no module. The other bits are the generation.
pub const NODE_NOWHERE: u32 = 1 << 31;

/// A stack: a frame and the stack of its caller.
#[repr(C)]
pub struct NodeEntry {
    /// The caller's node, 0 for outermost frames. Smaller than the node's own number.
    pub parent: AtomicU32,
    /// The generation of modules in which the address is to be looked up, and [`NODE_NOWHERE`].
    pub generation: AtomicU32,
    /// The frame's lookup address.
    pub lookup: AtomicU64,
}

/// Counts of one stack, thread, task and size class. The allocating thread writes the first half, other threads that free
/// such blocks the second.
#[repr(C, align(64))]
pub struct CounterEntry {
    /// Allocations.
    pub count: AtomicU64,
    /// Their bytes.
    pub bytes: AtomicU64,
    /// Frees by the allocating thread.
    pub freed_count: AtomicU64,
    /// Their bytes.
    pub freed_bytes: AtomicU64,
    /// Allocations that were freed before their thread allocated again.
    pub temporary_count: AtomicU64,
    /// `bytes - freed_bytes` just after peak number `saved_for`.
    pub peak_bytes: AtomicI64,
    /// The same of the counts.
    pub peak_count: AtomicI64,
    /// The peak that the two belong to. If a later one is the last, they are the current differences.
    pub saved_for: AtomicU32,
    /// The stack.
    pub node: AtomicU32,
    /// Frees by other threads.
    pub others_count: AtomicU64,
    /// Their bytes.
    pub others_bytes: AtomicU64,
    /// As `peak_bytes`, for frees by other threads.
    pub others_peak_bytes: AtomicI64,
    /// As `peak_count`.
    pub others_peak_count: AtomicI64,
    /// As `saved_for`.
    pub others_saved_for: AtomicU32,
    /// Number of the thread, from 1.
    pub thread: AtomicU32,
    /// The async task, 0 for none.
    pub task: AtomicU64,
    /// Size class in the lowest byte, kind of allocation in the next.
    pub class: AtomicU32,
    _fill: u32,
}

const _: () = assert!(size_of::<CounterEntry>() == 128 && size_of::<NodeEntry>() == 16);

/// The tables in a mapping.
#[derive(Clone, Copy)]
pub struct HeapTables {
    base: *mut u8,
}

// SAFETY: everything behind the pointer is atomic.
unsafe impl Send for HeapTables {}
// SAFETY: as above.
unsafe impl Sync for HeapTables {}

impl HeapTables {
    /// The tables at `base`.
    ///
    /// # Safety
    /// `base` must be aligned to 64 and valid for reads and writes of [`HEAP_BYTES`] for as long as the process lives, as
    /// far as pages exist. Only entries whose pages exist may be accessed.
    pub const unsafe fn at(base: *mut u8) -> HeapTables {
        HeapTables { base }
    }

    /// Address of the first byte.
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    /// The page.
    #[inline(always)]
    pub fn page(&self) -> &'static HeapPage {
        // SAFETY: by the constructor's contract; any bytes are a value.
        unsafe { &*self.base.cast() }
    }

    /// A thread's entry.
    ///
    /// # Panics
    /// If the number is out of range.
    #[inline]
    pub fn thread(&self, number: u32) -> &'static ThreadEntry {
        assert!((number as usize) < MAX_THREADS);
        // SAFETY: inside the table by the assertion.
        unsafe { &*self.base.add(THREADS.start).cast::<ThreadEntry>().add(number as usize) }
    }

    /// A word of the table of modules.
    ///
    /// # Panics
    /// If the index is out of range.
    pub fn module_word(&self, index: usize) -> &'static AtomicU64 {
        assert!(index < MODULE_WORDS);
        // SAFETY: inside the table by the assertion.
        unsafe { &*self.base.add(MODULES.start).cast::<AtomicU64>().add(index) }
    }

    /// A node.
    ///
    /// # Panics
    /// If the number is out of range.
    #[inline(always)]
    pub fn node(&self, number: u32) -> &'static NodeEntry {
        assert!((number as usize) < MAX_NODES);
        // SAFETY: inside the table by the assertion.
        unsafe { &*self.base.add(NODES.start).cast::<NodeEntry>().add(number as usize) }
    }

    /// A counter.
    ///
    /// # Panics
    /// If the number is out of range.
    #[inline(always)]
    pub fn counter(&self, number: u32) -> &'static CounterEntry {
        assert!((number as usize) < MAX_COUNTERS);
        // SAFETY: inside the table by the assertion.
        unsafe { &*self.base.add(COUNTERS.start).cast::<CounterEntry>().add(number as usize) }
    }
}

/// Appends an event to the table of modules. False, and nothing is written, without room for it, or if the memory for it
/// cannot be had: `reserve` is called with the number of words that must exist.
pub fn push_module_event(
    tables: &HeapTables,
    event: &crate::Event<'_>,
    reserve: impl FnOnce(usize) -> bool,
) -> bool {
    let (fixed, n, tail) = event.encode();
    let used = tables.page().module_words.load(Relaxed) as usize;
    let end = used + n + tail.len();
    if end > MODULE_WORDS || !reserve(end) {
        return false;
    }
    for (index, word) in fixed[..n].iter().chain(tail).enumerate() {
        tables.module_word(used + index).store(*word, Relaxed);
    }
    tables.page().module_words.store(end as u32, Release);
    true
}

/// Calls `each` with the events in a copy of the table of modules. Ends at the first that is malformed.
pub fn module_events(words: &[u64], mut each: impl FnMut(&crate::Event<'_>)) {
    let mut rest = words;
    while let Some(first) = rest.first() {
        let len = crate::event::head_len(*first);
        let Some((event, behind)) = rest.split_at_checked(len).filter(|_| len > 0) else { return };
        if let Ok(event) = crate::Event::decode(event) {
            each(&event);
        }
        rest = behind;
    }
}
