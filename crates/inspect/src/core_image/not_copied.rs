//! Memory that a copy of a process lacks, because the program excludes it from forks (`MADV_DONTFORK`), or because a copy would keep
//! in use what is mapped: shared memory and files. V8's heap is memory of the first kind.
//!
//! It is read in the process itself, which runs on meanwhile: what it holds is that of a later moment. Without it, the blocks
//! that only it holds would count as leaked.

use stackglass_attach::frozen::ProcessMemory;
use stackglass_procfs::maps::{self, Mapping};
use stackglass_procfs::{process, smaps};
use std::ops::Range;

/// The flag of mappings that a forked child does not get.
const EXCLUDED: &str = "dc";

/// Memory that a copy lacks.
#[derive(Debug, Default)]
pub(super) struct NotCopied {
    /// Private memory that the program excludes, by address. The copy does not list it.
    pub excluded: Vec<Mapping>,
    /// All of it, by address.
    all: Vec<Mapping>,
    /// That of the process.
    memory: Option<ProcessMemory>,
}

impl NotCopied {
    /// What a copy lacks that lists the mappings `copied`, and has given back `given_back`. Nothing, if the process may not be read.
    pub fn find(pid: u32, copied: &[Mapping], given_back: Vec<Mapping>) -> NotCopied {
        // The main thread may have ended.
        let living = process::living_thread(pid).unwrap_or(pid);
        let excluded = excluded(living, copied);
        let mut all = given_back;
        all.extend_from_slice(&excluded);
        all.sort_by_key(|mapping| mapping.range.start);
        match ProcessMemory::open(living) {
            Ok(memory) => NotCopied { excluded, all, memory: Some(memory) },
            Err(_) => NotCopied::default(),
        }
    }

    /// Whether an address lies in this memory.
    pub fn contains(&self, address: u64) -> bool {
        maps::at(&self.all, address).is_some()
    }

    /// Copies as many bytes from `address` on as can be read at once, and returns how many.
    pub fn read(&self, address: u64, into: &mut [u8]) -> usize {
        self.memory.as_ref().map_or(0, |memory| memory.read(address, into))
    }

    /// The memory of the process, if there is a copy and the process may be read.
    pub fn memory(&self) -> Option<&ProcessMemory> {
        self.memory.as_ref()
    }
}

/// The memory that a process excludes from forks, and a copy does not have.
fn excluded(living: u32, copied: &[Mapping]) -> Vec<Mapping> {
    let Ok(now) = maps::read(living) else { return Vec::new() };
    let mut mappings: Vec<Mapping> = now
        .into_iter()
        .filter(|mapping| !mapping.shared)
        .filter(|mapping| is_missing(copied, &mapping.range))
        .collect();
    if !mappings.is_empty() {
        // Others are new.
        let starts = smaps::read_with_flags(living, &[EXCLUDED]).unwrap_or_default();
        mappings.retain(|mapping| starts.contains(&mapping.range.start));
    }
    mappings
}

/// Whether none of the sorted mappings lies in a range.
fn is_missing(copied: &[Mapping], range: &Range<u64>) -> bool {
    let behind = copied.partition_point(|mapping| mapping.range.end <= range.start);
    copied.get(behind).is_none_or(|mapping| mapping.range.start >= range.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null_mut;

    #[test]
    fn memory_that_is_excluded_from_forks_is_found_and_read() {
        const BYTES: usize = 0x3000;
        // SAFETY: a new mapping, and advice on its second page, where a word is written. No thread forks here.
        let middle = unsafe {
            let (protection, flags) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            let at = libc::mmap(null_mut(), BYTES, protection, flags, -1, 0);
            assert_ne!(at, libc::MAP_FAILED);
            let middle = at.byte_add(0x1000);
            assert_eq!(libc::madvise(middle, 0x1000, libc::MADV_DONTFORK), 0);
            middle.cast::<u64>().write(0x1234_5678);
            middle as u64
        };
        let pid = std::process::id();
        let mut copied = maps::read(pid).unwrap();
        assert!(NotCopied::find(pid, &copied, Vec::new()).all.is_empty());
        // The mapping is missing in a copy. One that is missing for another reason does not count.
        copied.retain(|mapping| !mapping.range.contains(&middle) && mapping.path != "[heap]");
        let found = NotCopied::find(pid, &copied, Vec::new());
        let ranges: Vec<_> = found.excluded.iter().map(|mapping| mapping.range.clone()).collect();
        assert!(ranges.iter().eq([&(middle..middle + 0x1000)]));
        let mut bytes = [0; 8];
        assert!(found.contains(middle + 8) && !found.contains(middle + 0x1000));
        assert_eq!((found.read(middle, &mut bytes), u64::from_le_bytes(bytes)), (8, 0x1234_5678));
    }
}
