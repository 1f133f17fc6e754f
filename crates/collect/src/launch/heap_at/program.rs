//! The program of which snapshots are taken: its tables of allocations, and what it is called.

use crate::allocations::table_file::TableFile;
use stackglass_attach::frozen::FrozenProcess;
use stackglass_wire::heap::HEAP_FILE_PREFIX;
use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::Ordering::*;

/// Why there is no snapshot if the program did not wait for one.
pub(super) const NOT_WAITED: &str = "the program did not end by exit, its allocations are not recorded, or it has a \
    sanitizer or a filter of system calls; \
    other programs that it starts have none either";

/// The name and id of the process that was copied: a script is one, and the programs that it starts are others.
pub(super) fn program_of(copy: &FrozenProcess) -> String {
    let name = copy.threads().first().map_or("", |thread| &thread.name);
    format!("{name} (process {})", copy.pid())
}

/// The tables of the program: those of the image that it executed last.
pub(super) struct ProgramTables {
    name: OsString,
    file: TableFile,
}

impl ProgramTables {
    /// Opens newer tables, if there are any. Returns whether there are tables.
    pub(super) fn find_newest(tables: &mut Option<ProgramTables>, pid: u32, folder: &Path) -> bool {
        let prefix = format!("{HEAP_FILE_PREFIX}{pid}-");
        let names = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let newest = names
            .filter(|name| name.to_string_lossy().starts_with(&prefix))
            // Names end in a number.
            .max_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        if let Some(name) = newest.filter(|name| tables.as_ref().is_none_or(|known| known.name != *name))
            && let Some(file) = TableFile::open(&folder.join(&name))
        {
            *tables = Some(ProgramTables { name, file });
        }
        tables.is_some()
    }

    /// Whether the program has called `exit`. It then waits, if the session page says so.
    pub(super) fn has_ended(&self) -> bool {
        self.file.tables().page().ended.load(Acquire) != 0
    }

    pub(super) fn live_bytes(&self) -> u64 {
        self.file.tables().page().live_bytes().load(Relaxed).max(0) as u64
    }

    pub(super) fn peak_bytes(&self) -> u64 {
        self.file.tables().page().peak_bytes().load(Relaxed).max(0) as u64
    }
}
