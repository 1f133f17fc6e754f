//! Counts of allocations in scopes, without stacks: of the calling thread, or of the whole process.
//!
//! A thread's counts lie in its thread-local storage, without constructor or destructor, so that they are exact whatever other
//! threads do. Counts of the process are shared. Each scope has a place that keeps the peak since its begin.

use crate::switch::Switch;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::*};

/// Most scopes at a time: of each thread, and of the process.
pub const MOST_SCOPES: usize = 16;

/// Numbers of allocations in a scope.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct StatsCounts {
    /// Number of allocations. A reallocation is one allocation of the new size.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Allocations minus frees. Negative if older blocks were freed. For a thread: if it freed blocks of other threads.
    pub live_blocks: i64,
    /// Allocated bytes minus freed bytes.
    pub live_bytes: i64,
    /// The highest value of `live_bytes` since the begin of the scope.
    pub peak_bytes: u64,
}

impl fmt::Display for StatsCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StatsCounts { blocks, bytes, live_blocks, live_bytes, peak_bytes } = self;
        write!(
            f,
            "{blocks} blocks, {bytes} bytes; live: {live_blocks} blocks, {live_bytes} bytes; peak: {peak_bytes} bytes"
        )
    }
}

/// Sums since the begin of the thread or process.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    blocks: u64,
    bytes: u64,
    live_blocks: i64,
    live_bytes: i64,
}

impl Sums {
    /// What was added since `begin`. `peak` is the highest number of live bytes.
    fn since(&self, begin: &Sums, peak: i64) -> StatsCounts {
        StatsCounts {
            blocks: self.blocks.wrapping_sub(begin.blocks),
            bytes: self.bytes.wrapping_sub(begin.bytes),
            live_blocks: self.live_blocks.wrapping_sub(begin.live_blocks),
            live_bytes: self.live_bytes.wrapping_sub(begin.live_bytes),
            peak_bytes: peak.wrapping_sub(begin.live_bytes).max(0) as u64,
        }
    }
}

struct ThreadCounts {
    sums: Cell<Sums>,
    /// One bit for each place in use.
    used: Cell<u32>,
    peaks: [Cell<i64>; MOST_SCOPES],
}

thread_local! {
    static THREAD: ThreadCounts = const {
        ThreadCounts {
            sums: Cell::new(Sums { blocks: 0, bytes: 0, live_blocks: 0, live_bytes: 0 }),
            used: Cell::new(0),
            peaks: [const { Cell::new(0) }; MOST_SCOPES],
        }
    };
}

#[repr(align(64))]
struct ProcessCounts {
    blocks: AtomicU64,
    bytes: AtomicU64,
    live_blocks: AtomicI64,
    live_bytes: AtomicI64,
    used: AtomicU32,
    peaks: [AtomicI64; MOST_SCOPES],
}

static PROCESS: ProcessCounts = ProcessCounts {
    blocks: AtomicU64::new(0),
    bytes: AtomicU64::new(0),
    live_blocks: AtomicI64::new(0),
    live_bytes: AtomicI64::new(0),
    used: AtomicU32::new(0),
    peaks: [const { AtomicI64::new(0) }; MOST_SCOPES],
};

impl ProcessCounts {
    fn sums(&self) -> Sums {
        Sums {
            blocks: self.blocks.load(SeqCst),
            bytes: self.bytes.load(SeqCst),
            live_blocks: self.live_blocks.load(SeqCst),
            live_bytes: self.live_bytes.load(SeqCst),
        }
    }
}

/// The places whose bits are set.
fn places(mut bits: u32) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let place = bits.trailing_zeros();
        bits &= bits.wrapping_sub(1);
        (place < 32).then_some(place as usize)
    })
}

/// One allocation replaced `ended` bytes of an old block, if there was one.
#[inline]
pub(crate) fn allocated(on: Switch, bytes: usize, ended: Option<usize>) {
    let (blocks, change) = (1 - i64::from(ended.is_some()), bytes as i64 - ended.unwrap_or(0) as i64);
    if on.has_thread_scopes() {
        // Without a destructor, the thread's counts exist as long as the thread.
        let _ = THREAD.try_with(|thread| {
            let mut sums = thread.sums.get();
            sums.blocks += 1;
            sums.bytes += bytes as u64;
            sums.live_blocks += blocks;
            sums.live_bytes += change;
            thread.sums.set(sums);
            for place in places(thread.used.get()) {
                thread.peaks[place].set(thread.peaks[place].get().max(sums.live_bytes));
            }
        });
    }
    if on.has_process_scopes() {
        PROCESS.blocks.fetch_add(1, Relaxed);
        PROCESS.bytes.fetch_add(bytes as u64, Relaxed);
        PROCESS.live_blocks.fetch_add(blocks, Relaxed);
        let live = PROCESS.live_bytes.fetch_add(change, Relaxed) + change;
        for place in places(PROCESS.used.load(Relaxed)) {
            if PROCESS.peaks[place].load(Relaxed) < live {
                PROCESS.peaks[place].fetch_max(live, Relaxed);
            }
        }
    }
}

/// A block of this size was freed.
#[inline]
pub(crate) fn freed(on: Switch, bytes: usize) {
    if on.has_thread_scopes() {
        let _ = THREAD.try_with(|thread| {
            let mut sums = thread.sums.get();
            sums.live_blocks -= 1;
            sums.live_bytes -= bytes as i64;
            thread.sums.set(sums);
        });
    }
    if on.has_process_scopes() {
        PROCESS.live_blocks.fetch_sub(1, Relaxed);
        PROCESS.live_bytes.fetch_sub(bytes as i64, Relaxed);
    }
}

/// A scope of the calling thread. It counts what this thread allocates and frees.
#[derive(Debug)]
pub struct ThreadScope {
    place: usize,
    begin: Sums,
    /// The counts are those of this thread.
    _stays: PhantomData<*const ()>,
}

/// A scope of the whole process. It counts what all threads allocate and free.
#[derive(Debug)]
pub struct ProcessScope {
    place: usize,
    begin: Sums,
}

impl ThreadScope {
    /// Begins a scope. `None` if this thread has [`MOST_SCOPES`] already.
    pub fn begin() -> Option<ThreadScope> {
        let begun = THREAD.with(|thread| {
            let place = (!thread.used.get()).trailing_zeros() as usize;
            if place >= MOST_SCOPES {
                return None;
            }
            let sums = thread.sums.get();
            thread.used.set(thread.used.get() | 1 << place);
            thread.peaks[place].set(sums.live_bytes);
            Some(ThreadScope { place, begin: sums, _stays: PhantomData })
        });
        if begun.is_some() {
            Switch::add_thread_scope();
        }
        begun
    }

    /// The counts since the begin of the scope.
    pub fn counts(&self) -> StatsCounts {
        THREAD.with(|thread| thread.sums.get().since(&self.begin, thread.peaks[self.place].get()))
    }
}

impl Drop for ThreadScope {
    fn drop(&mut self) {
        Switch::remove_thread_scope();
        let _ = THREAD.try_with(|thread| thread.used.set(thread.used.get() & !(1 << self.place)));
    }
}

impl ProcessScope {
    /// Begins a scope. `None` if the process has [`MOST_SCOPES`] already.
    pub fn begin() -> Option<ProcessScope> {
        let before = PROCESS
            .used
            .fetch_update(AcqRel, Acquire, |used| {
                (used.trailing_ones() < MOST_SCOPES as u32).then_some(used | (used + 1))
            })
            .ok()?;
        let place = before.trailing_ones() as usize;
        Switch::add_process_scope();
        let sums = PROCESS.sums();
        PROCESS.peaks[place].store(sums.live_bytes, Relaxed);
        Some(ProcessScope { place, begin: sums })
    }

    /// The counts since the begin of the scope.
    pub fn counts(&self) -> StatsCounts {
        PROCESS.sums().since(&self.begin, PROCESS.peaks[self.place].load(Relaxed))
    }
}

impl Drop for ProcessScope {
    fn drop(&mut self) {
        Switch::remove_process_scope();
        PROCESS.used.fetch_and(!(1 << self.place), AcqRel);
    }
}
