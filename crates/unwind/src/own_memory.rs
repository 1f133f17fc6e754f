//! Which memory of the process belongs to the profiler: a table of its private mappings.
//!
//! They hold copies of stacks and addresses of blocks, but own nothing of the program. A reader of the process's memory leaves them
//! out.
//!
//! The table has a fixed size, takes no lock and does not allocate, so that a signal handler may use it. When it is full, further
//! mappings are missing in it. A forked child has a copy.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};

/// Number of entries.
const ENTRIES: usize = 1024;

/// A mapping; all zeros is an entry that is not used.
#[repr(C)]
struct Entry {
    start: AtomicU64,
    /// Bytes; 0 while the entry is written.
    length: AtomicU64,
}

static TABLE: [Entry; ENTRIES] =
    [const { Entry { start: AtomicU64::new(0), length: AtomicU64::new(0) } }; ENTRIES];
/// Entries behind these were never used.
static USED: AtomicUsize = AtomicUsize::new(0);

/// For readers of this process: the address of the table and its number of entries. Each has two words: start and length in bytes.
pub fn place() -> (u64, u32) {
    ((&raw const TABLE).addr() as u64, ENTRIES as u32)
}

/// Adds a mapping.
pub fn add(start: *const u8, length: usize) {
    let start = start.addr() as u64;
    for (index, entry) in TABLE.iter().enumerate() {
        let is_free = entry.start.load(Relaxed) == 0;
        if is_free && entry.start.compare_exchange(0, start, Relaxed, Relaxed).is_ok() {
            entry.length.store(length as u64, Release);
            USED.fetch_max(index + 1, Relaxed);
            return;
        }
    }
}

/// Removes a mapping, if it is in the table. To be called before it is unmapped: another thread may get its addresses then.
pub fn remove(start: *const u8) {
    let start = start.addr() as u64;
    let used = USED.load(Relaxed).min(ENTRIES);
    if let Some(entry) = TABLE[..used].iter().find(|entry| entry.start.load(Relaxed) == start) {
        entry.length.store(0, Relaxed);
        entry.start.store(0, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the table as another process does.
    fn listed() -> Vec<(u64, u64)> {
        let (address, entries) = place();
        let words = std::ptr::with_exposed_provenance::<[AtomicU64; 2]>(address as usize);
        let _ = (&raw const TABLE).expose_provenance();
        // SAFETY: the table is a static of so many pairs of words.
        let entries = (0..entries as usize).map(|index| unsafe { &*words.add(index) });
        let pairs = entries.map(|entry| (entry[0].load(Relaxed), entry[1].load(Relaxed)));
        pairs.filter(|(start, length)| *start != 0 && *length != 0).collect()
    }

    #[test]
    fn mappings_are_listed_until_they_are_unmapped() {
        let mapped = crate::pages::map_private(3 * 4096).unwrap();
        let other = crate::pages::map_private(4096).unwrap();
        let entry = (mapped.addr() as u64, 3 * 4096);
        assert!(listed().contains(&entry) && listed().contains(&(other.addr() as u64, 4096)));
        crate::pages::unmap(mapped, 3 * 4096);
        assert!(!listed().iter().any(|(start, _)| *start == entry.0));
        assert!(listed().contains(&(other.addr() as u64, 4096)));
        crate::pages::unmap(other, 4096);
    }
}
