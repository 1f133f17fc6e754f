//! The mappings of a process.

use stackglass_procfs::maps::Line;
use std::fs;
use std::io;
use std::ops::Range;

/// A mapping.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// Its addresses.
    pub range: Range<u64>,
    /// May be read.
    pub readable: bool,
    /// May be written.
    pub writable: bool,
    /// May be executed.
    pub executable: bool,
    /// Shared with other processes.
    pub shared: bool,
    /// Offset in the file.
    pub offset: u64,
    /// Inode of the file, 0 if there is none.
    pub inode: u64,
    /// Path of the file, a name in brackets, or empty.
    pub path: String,
}

/// The mappings of the process with the thread `tid`, by address.
pub(super) fn read(tid: u32) -> io::Result<Vec<Mapping>> {
    let text = fs::read(format!("/proc/{tid}/maps"))?;
    let mapping = |line: Line| Mapping {
        range: line.start..line.end,
        readable: line.readable,
        writable: line.writable,
        executable: line.executable,
        shared: line.shared,
        offset: line.offset,
        inode: line.inode,
        path: String::from_utf8_lossy(line.path).into_owned(),
    };
    Ok(text.split(|byte| *byte == b'\n').filter_map(Line::parse).map(mapping).collect())
}

/// The mapping with this address.
pub(super) fn at(mappings: &[Mapping], address: u64) -> Option<&Mapping> {
    let behind = mappings.partition_point(|mapping| mapping.range.start <= address);
    mappings.get(behind.checked_sub(1)?).filter(|mapping| mapping.range.contains(&address))
}
