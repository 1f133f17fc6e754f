//! Counting: the counter of a stack, task and size class for the calling thread, and what happens to it.
//!
//! A counter belongs to the thread that allocates. Only that thread writes to its first half, so no atomic addition is needed
//! there. Other threads that free its blocks add to the second half. Each half keeps its value at the last peak by itself.

use crate::commit::COUNTER_REGION;
use crate::draw::Weight;
use core::sync::atomic::{AtomicU64, Ordering::*};
use stackglass_host::system;
use stackglass_wire::heap::{CounterEntry, HeapTables, MAX_COUNTERS};

/// Counters that a thread reserves at a time.
const BLOCK: u32 = 8;
/// Places of a thread's first index.
const FIRST_PLACES: usize = 128;

/// A thread with more counters than this does not tell async tasks apart any more.
const MANY: usize = 1 << 14;

/// A place in an index: 0 or a node and class, a task, and the number of the counter.
#[derive(Clone, Copy)]
#[repr(C)]
struct Place {
    key: u64,
    task: u64,
    counter: u64,
}

/// The counters of a thread. All zeros has none.
#[repr(C)]
pub struct Counters {
    index: *mut Place,
    places: usize,
    used: usize,
    next: u32,
    end: u32,
    /// Counts what finds no counter any more.
    fallback: u32,
}

/// What a counter counts.
#[derive(Clone, Copy)]
pub struct Key {
    /// The stack.
    pub node: u32,
    /// Size class, and kind in the second byte.
    pub class: u32,
    /// The async task, 0 for none.
    pub task: u64,
}

impl Key {
    fn word(self) -> u64 {
        u64::from(self.node) << 32 | u64::from(self.class) << 1 | 1
    }
}

/// The counter of a key.
pub struct Found {
    /// Its number.
    pub number: u32,
    /// Its entry.
    pub entry: &'static CounterEntry,
    /// It is the fallback, which has no stack.
    pub is_fallback: bool,
}

impl Counters {
    /// Reserves the fallback of a thread. False without memory.
    pub fn begin(&mut self, tables: &HeapTables, thread: u32) -> bool {
        if self.fallback == 0 {
            let Some(number) = self.take(tables, thread, Key { node: 0, class: 0, task: 0 }) else {
                return false;
            };
            self.fallback = number;
        }
        true
    }

    /// Makes the counters usable again after a change that was interrupted. Their memory is left.
    pub fn recover(&mut self) {
        (self.index, self.places, self.used) = (core::ptr::null_mut(), 0, 0);
        (self.next, self.end) = (0, 0);
    }

    /// Forgets all counters: the memory serves another thread, which has a number of its own.
    pub fn forget(&mut self) {
        if !self.index.is_null() {
            // SAFETY: `places` places, used by the owner of this struct alone.
            unsafe { core::ptr::write_bytes(self.index, 0, self.places) };
        }
        (self.used, self.fallback) = (0, 0);
    }

    /// Whether there are so many that tasks are not distinguished any more.
    #[inline(always)]
    pub fn are_many(&self) -> bool {
        self.used > MANY
    }

    /// The thread's counter for a key.
    #[inline]
    pub fn find(&mut self, tables: &HeapTables, thread: u32, key: Key) -> Found {
        if self.places != 0 {
            let word = key.word();
            let mask = self.places - 1;
            let mut at = place_of(word, key.task) & mask;
            loop {
                // SAFETY: `at <= mask`, and the index has `mask + 1` places, at least half of them empty.
                let place = unsafe { &*self.index.add(at) };
                if place.key == word && place.task == key.task {
                    let number = place.counter as u32;
                    return Found { number, entry: tables.counter(number), is_fallback: false };
                }
                if place.key == 0 {
                    break;
                }
                at = (at + 1) & mask;
            }
        }
        self.insert(tables, thread, key)
    }

    #[cold]
    #[inline(never)]
    fn insert(&mut self, tables: &HeapTables, thread: u32, key: Key) -> Found {
        if self.has_room()
            && let Some(number) = self.take(tables, thread, key)
        {
            self.put(Place { key: key.word(), task: key.task, counter: u64::from(number) });
            return Found { number, entry: tables.counter(number), is_fallback: false };
        }
        Found { number: self.fallback, entry: tables.counter(self.fallback), is_fallback: true }
    }

    /// Whether the index has room for one more, after growing if needed.
    fn has_room(&mut self) -> bool {
        if (self.used + 1) * 2 <= self.places {
            return true;
        }
        let places = if self.places == 0 { FIRST_PLACES } else { self.places * 2 };
        let errno = system::errno();
        let index: *mut Place = system::map_private(places * size_of::<Place>()).cast();
        system::set_errno(errno);
        if index.is_null() {
            return false;
        }
        let (old, count) = (self.index, self.places);
        (self.index, self.places, self.used) = (index, places, 0);
        for at in 0..count {
            // SAFETY: the old index has `count` places.
            let place = unsafe { *old.add(at) };
            if place.key != 0 {
                self.put(place);
            }
        }
        if !old.is_null() {
            // SAFETY: nothing refers to the old index any more.
            unsafe { system::munmap(old.cast(), count * size_of::<Place>()) };
        }
        true
    }

    fn put(&mut self, place: Place) {
        let mask = self.places - 1;
        let mut at = place_of(place.key, place.task) & mask;
        // SAFETY: `at <= mask`, and at least half of the `mask + 1` places are empty.
        unsafe {
            while (*self.index.add(at)).key != 0 {
                at = (at + 1) & mask;
            }
            *self.index.add(at) = place;
        }
        self.used += 1;
    }

    /// A new counter in the shared table.
    fn take(&mut self, tables: &HeapTables, thread: u32, key: Key) -> Option<u32> {
        if self.next == self.end {
            // Counters are reserved before they are taken, so that none is ever given back: another thread may have taken the
            // next ones meanwhile.
            let reserved = tables.page().counters().fetch_update(AcqRel, Acquire, |first| {
                let end = first as usize + BLOCK as usize;
                let fits =
                    end <= MAX_COUNTERS && COUNTER_REGION.reserve(tables, end * size_of::<CounterEntry>());
                fits.then_some(end as u32)
            });
            let first = reserved.ok()?;
            // Entry 0 is not used.
            (self.next, self.end) = (first.max(1), first + BLOCK);
        }
        let number = self.next;
        self.next += 1;
        let entry = tables.counter(number);
        entry.node.store(key.node, Relaxed);
        entry.class.store(key.class, Relaxed);
        entry.task.store(key.task, Relaxed);
        entry.thread.store(thread, Release);
        Some(number)
    }
}

/// Sets the counts of all counters to zero. Their stacks stay.
pub fn clear(tables: &HeapTables) {
    for number in 1..tables.page().counters().load(Acquire).min(MAX_COUNTERS as u32) {
        let entry = tables.counter(number);
        for word in
            [&entry.count, &entry.bytes, &entry.freed_count, &entry.freed_bytes, &entry.temporary_count]
        {
            word.store(0, Relaxed);
        }
        for word in [&entry.others_count, &entry.others_bytes] {
            word.store(0, Relaxed);
        }
        entry.saved_for.store(0, Relaxed);
        entry.others_saved_for.store(0, Relaxed);
    }
}

fn place_of(word: u64, task: u64) -> usize {
    ((word ^ task.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 29) as usize
}

/// Adds to a word that only this thread writes.
#[inline(always)]
fn add(word: &AtomicU64, n: u64) {
    word.store(word.load(Relaxed).wrapping_add(n), Relaxed);
}

/// Saves the first half at a peak, before the first change after it.
#[inline(always)]
fn save(entry: &CounterEntry, peak: u32) {
    if entry.saved_for.load(Relaxed) != peak {
        let difference =
            |all: &AtomicU64, gone: &AtomicU64| all.load(Relaxed).wrapping_sub(gone.load(Relaxed)) as i64;
        entry.peak_bytes.store(difference(&entry.bytes, &entry.freed_bytes), Relaxed);
        entry.peak_count.store(difference(&entry.count, &entry.freed_count), Relaxed);
        entry.saved_for.store(peak, Relaxed);
    }
}

/// Counts an allocation. Only for the counter's own thread.
#[inline(always)]
pub fn allocated(entry: &CounterEntry, weight: Weight, peak: u32) {
    save(entry, peak);
    add(&entry.count, weight.count);
    add(&entry.bytes, weight.bytes);
}

/// Counts a free by the counter's own thread.
#[inline(always)]
pub fn freed(entry: &CounterEntry, weight: Weight, peak: u32, temporary: bool) {
    save(entry, peak);
    add(&entry.freed_count, weight.count);
    add(&entry.freed_bytes, weight.bytes);
    if temporary {
        add(&entry.temporary_count, weight.count);
    }
}

/// Counts a free by another thread.
#[inline]
pub fn freed_elsewhere(entry: &CounterEntry, weight: Weight, peak: u32) {
    let saved = entry.others_saved_for.load(Relaxed);
    // Of several threads, one saves. A free of another one in the same nanoseconds may come before or after.
    if saved != peak && entry.others_saved_for.compare_exchange(saved, peak, AcqRel, Relaxed).is_ok() {
        entry.others_peak_bytes.store(entry.others_bytes.load(Relaxed) as i64, Relaxed);
        entry.others_peak_count.store(entry.others_count.load(Relaxed) as i64, Relaxed);
    }
    entry.others_count.fetch_add(weight.count, Relaxed);
    entry.others_bytes.fetch_add(weight.bytes, Relaxed);
}
