//! Where glibc's malloc keeps what on x86-64, in the versions 2.26 to 2.43.
//!
//! Sources: `malloc/malloc.c` (`struct malloc_state`, `struct malloc_par`, `tcache_perthread_struct`, `struct malloc_chunk`)
//! and `malloc/arena.c` (`heap_info`) of each version.

/// Bytes of a page.
pub(super) const PAGE: u64 = 4096;
/// Bytes before the memory of a chunk: the size of the chunk before it, and its own head.
pub(super) const HEAD: u64 = 16;
/// Smallest chunk.
pub(super) const SMALLEST: u64 = 32;
/// Bit of a head: the chunk before this one is in use.
pub(super) const BEFORE_IN_USE: u64 = 1;
/// Bit of a head: a chunk in a mapping of its own.
pub(super) const MAPPED: u64 = 2;
/// Bit of a head: a chunk of another arena than the main one.
pub(super) const THREAD_ARENA: u64 = 4;
/// All bits of a head that are not its size.
pub(super) const FLAGS: u64 = 7;
/// Bins of free chunks in an arena.
pub(super) const BINS: u64 = 127;
/// Largest heap of a thread arena, and its alignment, unless huge pages are configured.
pub(super) const HEAP_MAX: u64 = 64 << 20;

/// Offsets in an arena. From [`ArenaLayout::top`] to [`ArenaLayout::next`] all versions are the same.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ArenaLayout {
    /// First of the fast bins, and their number.
    pub fast_bins: (u64, u64),
    /// The chunk at the end of the heap.
    pub top: u64,
    /// The next arena of the ring.
    pub next: u64,
    /// Bytes of the arena.
    pub size: u64,
}

/// From 2.27 to 2.42, 2.26, and from 2.43.
pub(super) const ARENAS: [ArenaLayout; 3] = [
    ArenaLayout { fast_bins: (16, 10), top: 96, next: 2160, size: 2200 },
    ArenaLayout { fast_bins: (8, 10), top: 88, next: 2152, size: 2192 },
    ArenaLayout { fast_bins: (8, 0), top: 8, next: 2072, size: 2112 },
];

/// A thread's cache of free chunks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CacheLayout {
    /// Size of its own chunk; 16 bytes more if the rest was too small for a chunk.
    pub chunk: u64,
    /// Bytes of a counter.
    pub counter: u64,
    /// Whether counters count chunks; else places that are left.
    pub counts_chunks: bool,
    /// Lists.
    pub bins: u64,
    /// Lists of chunks of one size. Those behind hold chunks of several sizes.
    pub small_bins: u64,
    /// Whether links are mangled: `None` if the layout does not tell.
    pub mangled: Option<bool>,
}

impl CacheLayout {
    /// Offset of the first list.
    pub fn lists(&self) -> u64 {
        self.bins * self.counter
    }
}

/// Up to 2.29, from 2.30 to 2.41, from 2.42.
pub(super) const CACHES: [CacheLayout; 3] = [
    CacheLayout {
        chunk: 0x250,
        counter: 1,
        counts_chunks: true,
        bins: 64,
        small_bins: 64,
        mangled: Some(false),
    },
    CacheLayout { chunk: 0x290, counter: 2, counts_chunks: true, bins: 64, small_bins: 64, mangled: None },
    CacheLayout {
        chunk: 0x300,
        counter: 2,
        counts_chunks: false,
        bins: 76,
        small_bins: 64,
        mangled: Some(true),
    },
];

/// Offsets in malloc's parameters (`mp_`), from its field `sbrk_base`. The word before it is the most that was ever mapped, and
/// the one before that what is mapped now.
#[derive(Debug)]
pub(super) struct ParameterLayout {
    /// `n_mmaps`, then `n_mmaps_max`, `max_n_mmaps`, `no_dyn_threshold`: four 32-bit numbers.
    pub counts: u64,
    /// `hp_pagesize`.
    pub huge_page: Option<u64>,
    /// `arena_max`, and before it `arena_test`.
    pub arena_max: u64,
}

/// From 2.35 to 2.42, from 2.43, and up to 2.34. Offsets count backwards.
pub(super) const PARAMETERS: [ParameterLayout; 3] = [
    ParameterLayout { counts: 36, huge_page: Some(48), arena_max: 64 },
    ParameterLayout { counts: 36, huge_page: Some(48), arena_max: 72 },
    ParameterLayout { counts: 32, huge_page: None, arena_max: 40 },
];
