//! The file in which a process shares its tables of allocations.

use crate::session::bus_guard::GuardedMap;
use stackglass_wire::heap::{HEAP_BYTES, HeapTables};
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

/// The tables of one process.
pub(crate) struct TableFile {
    map: GuardedMap,
}

impl TableFile {
    /// Maps the file; `None` if it has no tables that are ready.
    pub(crate) fn open(path: &Path) -> Option<TableFile> {
        let file = File::open(path).and_then(|_| File::options().read(true).write(true).open(path)).ok()?;
        if file.metadata().ok()?.len() < HEAP_BYTES as u64 {
            return None;
        }
        let opened = TableFile { map: GuardedMap::new(file.as_fd(), HEAP_BYTES).ok()? };
        opened.tables().page().is_ready().then_some(opened)
    }

    /// The tables. What it gives must not be used any more when `self` is dropped.
    pub(crate) fn tables(&self) -> HeapTables {
        // SAFETY: a mapping of this size, which stays until `self` is dropped; accesses behind the end of a truncated file are
        // guarded.
        unsafe { HeapTables::at(self.map.base()) }
    }
}
