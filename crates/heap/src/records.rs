//! Single records: one for each recorded allocation, for a reader in the same process that wants them.
//!
//! Each thread appends to a log of its own, in chunks of memory from the kernel. A record names the counter, which has stack,
//! thread, task and size class, and adds the size within the class, the time and the address. Numbers are differences, in
//! groups of 7 bits (LEB128). A record usually has 5 to 9 bytes.
//!
//! Records are written only when they are [wanted](want). Counts do not depend on them: without memory for a record, it alone is
//! lost.

use crate::cycles;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering::*};
use stackglass_host::system;
use stackglass_wire::heap::HeapTables;

/// Bytes that a chunk takes.
const CHUNK: usize = 64 << 10;
/// Bytes of records in a chunk.
const ROOM: usize = CHUNK - 32;
/// Longest record.
const LONGEST: usize = 40;

// Lowest bits of a record's first number.
const HAS_DIFFERENCE: u64 = 1;
const IS_ODD_ADDRESS: u64 = 2;
const FLAGS: u32 = 2;

static WANTED: AtomicBool = AtomicBool::new(false);
/// Most bytes of chunks.
static LIMIT: AtomicU64 = AtomicU64::new(0);
/// Bytes of chunks.
static USED: AtomicU64 = AtomicU64::new(0);
/// Cycles and nanoseconds at the same moment; 0 before the first recording.
static BEGIN_CYCLES: AtomicU64 = AtomicU64::new(0);
static BEGIN_NS: AtomicU64 = AtomicU64::new(0);

#[repr(C)]
struct Chunk {
    next: AtomicPtr<Chunk>,
    used: AtomicU32,
    /// What the first record's differences refer to.
    time: u64,
    address: u64,
    bytes: UnsafeCell<[u8; ROOM]>,
}

const _: () = assert!(size_of::<Chunk>() == CHUNK);

/// The records of one thread. All zeros has none.
#[repr(C)]
pub struct Log {
    /// What other threads read.
    pub published: Published,
    last: *mut Chunk,
    time: u64,
    address: u64,
}

/// The part of a log that other threads read.
#[repr(C)]
pub struct Published {
    first: AtomicPtr<Chunk>,
    lost: AtomicU64,
}

/// One recorded allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// The number of its counter in the tables.
    pub counter: u32,
    /// Its size in bytes.
    pub size: u64,
    /// Its address.
    pub address: u64,
    /// CLOCK_MONOTONIC, ns.
    pub clock: u64,
}

/// Sets whether records are written, and in how many bytes of memory at most.
pub fn want(limit: u64) {
    if BEGIN_CYCLES.load(Relaxed) == 0 {
        BEGIN_CYCLES.store(cycles::now(), Relaxed);
        BEGIN_NS.store(system::now(), Relaxed);
    }
    LIMIT.store(limit, Relaxed);
    WANTED.store(limit > 0, Relaxed);
}

/// Whether records are written.
#[inline(always)]
pub fn wanted() -> bool {
    WANTED.load(Relaxed)
}

/// The largest size of the class that holds `size`, by the rule of `profile::SizeClass`.
#[inline(always)]
fn largest_like(size: u64) -> u64 {
    if size <= 128 {
        return size.next_multiple_of(8);
    }
    let below = size - 1;
    let step = (63 - below.leading_zeros()) - 2;
    ((below >> step) + 1) << step
}

/// The largest size of a class.
fn largest_of(class: u8) -> u64 {
    let class = u64::from(class);
    if class <= 16 {
        return class * 8;
    }
    let (doubling, quarter) = ((class - 17) / 4 + 7, (class - 17) % 4);
    (5 + quarter) << (doubling - 2).min(60)
}

impl Log {
    /// Appends a record.
    #[inline]
    pub fn push(&mut self, counter: u32, is_fallback: bool, size: u64, at: usize) {
        if self.last.is_null() && !self.extend() {
            return self.count_lost();
        }
        // SAFETY: chunks are unmapped only when no thread is inside the recorder.
        let mut chunk = unsafe { &*self.last };
        let mut used = chunk.used.load(Relaxed) as usize;
        if used + LONGEST > ROOM {
            if !self.extend() {
                return self.count_lost();
            }
            // SAFETY: as above; it is a new chunk.
            chunk = unsafe { &*self.last };
            used = 0;
        }
        let now = cycles::now().max(self.time);
        let address = at as u64;
        let moved = (address >> 3).wrapping_sub(self.address >> 3) as i64;
        // The counter for lack of counters has no size class.
        let difference = if is_fallback { size } else { largest_like(size) - size };
        let flags = if difference != 0 { HAS_DIFFERENCE } else { 0 }
            | if address & 7 != 0 { IS_ODD_ADDRESS } else { 0 };
        // SAFETY: only this thread writes to the chunk, behind the bytes that readers know, and a record fits.
        unsafe {
            let begin = chunk.bytes.get().cast::<u8>();
            let mut end = put(begin.add(used), u64::from(counter) << FLAGS | flags);
            end = put(end, now - self.time);
            end = put(end, (moved << 1 ^ moved >> 63) as u64);
            if flags & HAS_DIFFERENCE != 0 {
                end = put(end, difference);
            }
            if flags & IS_ODD_ADDRESS != 0 {
                end = put(end, address & 7);
            }
            used = end.offset_from_unsigned(begin);
        }
        (self.time, self.address) = (now, address);
        chunk.used.store(used as u32, Release);
    }

    fn count_lost(&self) {
        let lost = &self.published.lost;
        lost.store(lost.load(Relaxed) + 1, Relaxed);
    }

    /// A new last chunk. False without memory.
    #[cold]
    #[inline(never)]
    fn extend(&mut self) -> bool {
        if USED.fetch_add(CHUNK as u64, Relaxed) + CHUNK as u64 > LIMIT.load(Relaxed) {
            USED.fetch_sub(CHUNK as u64, Relaxed);
            return false;
        }
        let errno = system::errno();
        let new: *mut Chunk = system::map_private(CHUNK).cast();
        if !new.is_null() {
            // SAFETY: advice on the mapping just made.
            unsafe { libc::madvise(new.cast(), CHUNK, libc::MADV_DONTFORK) };
        }
        system::set_errno(errno);
        if new.is_null() {
            USED.fetch_sub(CHUNK as u64, Relaxed);
            return false;
        }
        self.time = cycles::now();
        // SAFETY: a new mapping that only this thread knows, all zeros.
        unsafe { ((*new).time, (*new).address) = (self.time, self.address) };
        // SAFETY: null, or the last chunk, which only this thread extends.
        match unsafe { self.last.as_ref() } {
            Some(last) => last.next.store(new, Release),
            None => self.published.first.store(new, Release),
        }
        self.last = new;
        true
    }

    /// Forgets all records. No thread may be inside the recorder, and no reader read.
    pub fn clear(&mut self) {
        let mut chunk = self.published.first.swap(core::ptr::null_mut(), AcqRel);
        while !chunk.is_null() {
            // SAFETY: a chunk of this log; nothing refers to it any more.
            unsafe {
                let next = (*chunk).next.load(Acquire);
                system::munmap(chunk.cast(), CHUNK);
                chunk = next;
            }
            USED.fetch_sub(CHUNK as u64, Relaxed);
        }
        self.last = core::ptr::null_mut();
        self.published.lost.store(0, Relaxed);
    }
}

impl Published {
    /// Records that found no memory.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// Calls `each` with all records, the oldest first, and returns their bytes. New ones may be added meanwhile.
    pub fn read(&self, tables: &HeapTables, each: &mut dyn FnMut(Record)) -> u64 {
        let clock = Clock::new();
        let mut bytes = 0;
        let mut at = self.first.load(Acquire);
        // SAFETY: chunks stay mapped while no one clears.
        while let Some(chunk) = unsafe { at.as_ref() } {
            let used = chunk.used.load(Acquire) as usize;
            // SAFETY: the first `used` bytes do not change any more.
            let all = unsafe { core::slice::from_raw_parts(chunk.bytes.get().cast::<u8>(), used) };
            let (mut rest, mut time, mut address) = (all, chunk.time, chunk.address);
            while !rest.is_empty() {
                let first = take(&mut rest);
                let counter = (first >> FLAGS) as u32;
                time += take(&mut rest);
                let moved = take(&mut rest);
                let moved = (moved >> 1) as i64 ^ -((moved & 1) as i64);
                let difference = if first & HAS_DIFFERENCE != 0 { take(&mut rest) } else { 0 };
                let low = if first & IS_ODD_ADDRESS != 0 { take(&mut rest) } else { 0 };
                address = (address >> 3).wrapping_add(moved as u64) << 3 | low;
                let entry = tables.counter(counter);
                let class = entry.class.load(Relaxed) as u8;
                let size = match class {
                    0 => difference,
                    _ => largest_of(class).saturating_sub(difference),
                };
                each(Record { counter, size, address, clock: clock.at(time) });
            }
            bytes += used as u64;
            at = chunk.next.load(Acquire);
        }
        bytes
    }
}

/// Writes a number and returns the place behind it.
///
/// # Safety
/// `at` must be valid for writes of 10 bytes.
#[inline(always)]
unsafe fn put(mut at: *mut u8, mut number: u64) -> *mut u8 {
    // SAFETY: a number has at most 10 groups of 7 bits.
    unsafe {
        while number >= 0x80 {
            at.write(number as u8 | 0x80);
            at = at.add(1);
            number >>= 7;
        }
        at.write(number as u8);
        at.add(1)
    }
}

fn take(bytes: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    while let Some((first, rest)) = bytes.split_first() {
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        shift += 7;
        if first & 0x80 == 0 || shift > 63 {
            break;
        }
    }
    number
}

/// From cycles to nanoseconds, by two moments at which both are known.
struct Clock {
    begin: (u64, u64),
    now: (u64, u64),
}

impl Clock {
    fn new() -> Clock {
        Clock {
            begin: (BEGIN_CYCLES.load(Relaxed), BEGIN_NS.load(Relaxed)),
            now: (cycles::now(), system::now()),
        }
    }

    fn at(&self, cycles: u64) -> u64 {
        let whole = self.now.0.saturating_sub(self.begin.0).max(1);
        let part = cycles.saturating_sub(self.begin.0);
        let ns = self.now.1.saturating_sub(self.begin.1);
        self.begin.1 + (u128::from(part) * u128::from(ns) / u128::from(whole)) as u64
    }
}

/// In a forked child: the chunks were not inherited.
pub fn after_fork() {
    WANTED.store(false, Relaxed);
    USED.store(0, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_classes_agree() {
        for size in (1..5000).chain([1 << 20, (1 << 20) + 1, (1 << 38) - 1]) {
            let class = stackglass_wire::heap::size_class(size) as u8;
            assert_eq!(largest_like(size), largest_of(class), "{size}");
            assert!(largest_like(size) >= size);
        }
    }

    #[test]
    fn numbers_are_read_as_written() {
        let mut buffer = [0u8; 10];
        for number in [0, 1, 127, 128, 300, 1 << 40, u64::MAX] {
            // SAFETY: a buffer of 10 bytes.
            let end = unsafe { put(buffer.as_mut_ptr(), number) };
            let written = end.addr() - buffer.as_ptr().addr();
            let mut bytes = &buffer[..written];
            assert_eq!(take(&mut bytes), number);
            assert!(bytes.is_empty());
        }
    }
}
