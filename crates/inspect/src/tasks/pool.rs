//! Finds the table of wrapped tasks in the memory of a process, and reads it.
//!
//! The table is wiped in copies of the process (`MADV_WIPEONFORK`), so that it is read in the process itself, which may run
//! meanwhile. Mappings with that advice are few. The table begins with a mark, at a page of one of them.

use stackglass_awaits::WrappedTask;
use stackglass_procfs::maps::{self, Mapping};
use stackglass_procfs::{clock, smaps};
use stackglass_profile::Nanos;
use stackglass_wire::task::{POOL_BYTES, PoolHead, ReadEntry};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

const PAGE: u64 = 4096;
/// The flag of mappings that a forked child finds empty.
const WIPED: &str = "wf";
/// Most places in a mapping at which a table is searched.
const MOST_PLACES: u64 = 1 << 16;
/// Entries that are read at once.
const ENTRIES: usize = 4096;

/// The table of a process.
pub(crate) struct Pool {
    memory: File,
    address: u64,
}

/// The table of a process that is looked at repeatedly. It is searched again when mappings have come that may have it.
#[derive(Default)]
pub(super) struct LivePool {
    pool: Option<Pool>,
    /// Where mappings begin that do not have it.
    without: Vec<u64>,
}

impl LivePool {
    /// Adds the tasks as of now to others, by id.
    pub fn read_into(&mut self, pid: u32, tasks: &mut BTreeMap<u64, WrappedTask>) {
        if self.pool.as_ref().is_none_or(|pool| !pool.is_there()) {
            let large = large_mappings(pid);
            let starts: Vec<u64> = large.iter().map(|mapping| mapping.range.start).collect();
            self.pool = (starts != self.without).then(|| Pool::find_in(pid, &large)).flatten();
            self.without = if self.pool.is_none() { starts } else { Vec::new() };
        }
        if let Some(pool) = &self.pool {
            pool.read_into(tasks);
        }
    }
}

/// The mappings that may have a table.
fn large_mappings(pid: u32) -> Vec<Mapping> {
    let is_large = |mapping: &Mapping| {
        let size = mapping.range.end - mapping.range.start;
        mapping.readable
            && mapping.writable
            && !mapping.shared
            && mapping.inode == 0
            && size >= POOL_BYTES as u64
    };
    maps::read(pid).unwrap_or_default().into_iter().filter(is_large).collect()
}

impl Pool {
    /// Finds the table. `None` if the process has none, or may not be read.
    pub fn find(pid: u32) -> Option<Pool> {
        Pool::find_in(pid, &large_mappings(pid))
    }

    fn find_in(pid: u32, large: &[Mapping]) -> Option<Pool> {
        if large.is_empty() {
            return None;
        }
        let wiped = smaps::read_with_flags(pid, &[WIPED]).ok()?;
        let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
        for mapping in large.iter().filter(|mapping| wiped.contains(&mapping.range.start)) {
            let last = mapping.range.end - POOL_BYTES as u64;
            let places = (mapping.range.start..=last).step_by(PAGE as usize).take(MOST_PLACES as usize);
            for address in places {
                if head(&memory, address).is_some() {
                    return Some(Pool { memory, address });
                }
            }
        }
        None
    }

    /// Whether the process still has it.
    fn is_there(&self) -> bool {
        head(&self.memory, self.address).is_some()
    }

    /// Adds its tasks as of now to others, by id. Returns whether it was all there.
    pub fn read_into(&self, tasks: &mut BTreeMap<u64, WrappedTask>) -> bool {
        let Some(head) = head(&self.memory, self.address) else { return false };
        let now = clock::monotonic();
        let mut bytes = vec![0; ENTRIES * ReadEntry::BYTES];
        let entries = head.entries();
        for at in entries.clone().step_by(bytes.len()) {
            let part = (entries.end - at).min(bytes.len());
            if self.memory.read_exact_at(&mut bytes[..part], self.address + at as u64).is_err() {
                return false;
            }
            for entry in bytes[..part].chunks_exact(ReadEntry::BYTES).filter_map(ReadEntry::parse) {
                tasks.insert(entry.id, self.task(&entry, head.is_timed, now));
            }
        }
        true
    }

    fn task(&self, entry: &ReadEntry<'_>, is_timed: bool, now: u64) -> WrappedTask {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let owner = || {
            let mut tid = [0; 4];
            self.memory.read_exact_at(&mut tid, self.address + entry.owner_at()? as u64).ok()?;
            Some(u32::from_le_bytes(tid)).filter(|tid| *tid != 0)
        };
        let is_known = is_timed && entry.since != 0 && entry.since <= now;
        WrappedTask {
            id: entry.id,
            future: entry.future,
            vtable: entry.vtable,
            name: text(entry.name).into(),
            created: (entry.line != 0).then(|| (text(entry.file).into(), entry.line)),
            polled_by: if entry.polled_by == 0 { None } else { owner() },
            waited: is_known.then(|| Nanos(now - entry.since)),
        }
    }
}

fn head(memory: &File, address: u64) -> Option<PoolHead> {
    let mut bytes = [0; PoolHead::BYTES];
    memory.read_exact_at(&mut bytes, address).ok()?;
    PoolHead::parse(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_a_table_is_told_apart() {
        assert!(Pool::find(std::process::id()).is_none());
        assert!(Pool::find(u32::MAX).is_none());
    }
}
