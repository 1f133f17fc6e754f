//! Allocations of a process that is being recorded by another command, for a live view.

use super::drain::HeapFile;
use crate::session::clearing;
use stackglass_inspect::allocation_groups::{RateCounts, Scale, sampling_of};
use stackglass_wire::heap::{HEAP_FILE_PREFIX, MAX_COUNTERS};
use std::sync::atomic::Ordering::*;

/// The counts of a process at one moment: estimates, if allocations are sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocationsNow {
    /// Allocations since the recording began.
    pub count: u64,
    /// Bytes that are alive.
    pub live_bytes: u64,
}

/// The tables of a process.
pub struct LiveAllocations {
    file: HeapFile,
}

impl LiveAllocations {
    /// Opens the tables of process `pid`; `None` if its allocations are not recorded.
    pub fn open(pid: u32) -> Option<LiveAllocations> {
        let folder = clearing::session_of(pid)?;
        let prefix = format!("{HEAP_FILE_PREFIX}{pid}-");
        let entries = std::fs::read_dir(&folder).ok()?.flatten();
        let names = entries.map(|entry| entry.file_name());
        let name = names.filter(|name| name.to_string_lossy().starts_with(&prefix)).max()?;
        Some(LiveAllocations { file: HeapFile::open(&folder.join(&name), name)? })
    }

    /// The counts now.
    pub fn read(&self) -> AllocationsNow {
        let tables = self.file.tables();
        let page = tables.page();
        let counters = page.counters().load(Acquire).min(MAX_COUNTERS as u32);
        let count = (1..counters).map(|number| tables.counter(number).count.load(Relaxed)).sum();
        let scale = Scale::from_sampling(sampling_of(&tables, RateCounts::OfAll));
        let live_bytes = page.live_bytes().load(Relaxed).max(0) as u64;
        AllocationsNow { count: scale.count(count), live_bytes: scale.bytes(live_bytes) }
    }
}
