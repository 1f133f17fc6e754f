//! Which pages of a process may hold addresses that it has written, by the kind of mapping.
//!
//! | mapping | pages |
//! | --- | --- |
//! | private memory of no file | all; without the right to read, those that were written |
//! | private mapping of a file | those that were written: the process has copies of its own |
//! | shared memory, file that is mapped to be written | those that the process has used; of shared memory also those that others have |
//! | device | none: to read a register may change the device |
//!
//! Only pages that are in memory are read in a running process: to read another one would add it to the process. The others count as
//! unread, except those of shared memory that this user may read by its file (`/proc/PID/map_files`), and its holes, which nobody has
//! written.

use stackglass_attach::frozen::{Page, ProcessMemory};
use stackglass_process_view::core_image::{Mapping, Written, WrittenPart};
use stackglass_procfs::smaps::{self, Usage};
use std::fs::{self, File};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

const PAGE: u64 = 4096;
/// Pages of which the kernel is asked at once.
const BATCH: u64 = 1 << 15;
/// Shared memory that is read of a process at most. It takes about a second.
const MOST_SHARED: u64 = 1 << 30;

/// What the kernel tells of the mappings of a process, and how much shared memory may still be read.
#[derive(Debug)]
pub(super) struct Usages {
    all: Vec<Usage>,
    shared_left: u64,
}

/// Memory that is read elsewhere than in a copy of the process.
#[derive(Debug)]
pub(super) struct Elsewhere {
    pub range: Range<u64>,
    pub source: Source,
}

/// Where memory is read.
#[derive(Debug)]
pub(super) enum Source {
    /// In the process.
    Process,
    /// In a file from this offset on.
    File(File, u64),
}

impl Source {
    /// Copies as many bytes as can be read at once from `offset` bytes behind the start at `address`.
    pub(super) fn read(&self, process: &ProcessMemory, address: u64, offset: u64, into: &mut [u8]) -> usize {
        match self {
            Source::Process => process.read(address, into),
            Source::File(file, start) => file.read_at(into, start.saturating_add(offset)).unwrap_or(0),
        }
    }
}

impl Usages {
    pub(super) fn read(pid: u32) -> Usages {
        Usages { all: smaps::read(pid).unwrap_or_default(), shared_left: MOST_SHARED }
    }

    fn of(&self, mapping: &Mapping) -> Option<&Usage> {
        let at = self.all.partition_point(|usage| usage.range.end <= mapping.range.start);
        self.all.get(at).filter(|usage| usage.range.contains(&mapping.range.start))
    }

    /// Whether a forked child finds this memory empty.
    pub(super) fn is_wiped(&self, mapping: &Mapping) -> bool {
        !mapping.shared && self.of(mapping).is_some_and(|usage| usage.has("wf"))
    }

    /// Which parts of a private mapping may have addresses. `memory` has its pages; `is_whole`: all of it may be read.
    pub(super) fn private(&self, mapping: &Mapping, memory: &ProcessMemory, is_whole: bool) -> Written {
        let usage = self.of(mapping);
        let whole = WrittenPart { range: mapping.range.clone(), has_other_writers: false };
        if usage.is_some_and(is_device) {
            return of_device(mapping, usage);
        }
        if mapping.inode == 0 && mapping.readable && is_whole {
            return Written { parts: vec![whole], unread: 0 };
        }
        let mut written = Written::default();
        // Most have none. Reservations without pages are as large as terabytes.
        if usage.is_some_and(|usage| usage.own_bytes == 0) {
            return written;
        }
        each_run(memory, &mapping.range, &mut |range, page| {
            if matches!(page, Page::Own | Page::Unknown) {
                written.parts.push(WrittenPart { range, has_other_writers: false });
            }
        });
        written
    }

    /// Which parts of a shared mapping may have addresses, and its file, if absent pages are read there. `memory` is that of the process
    /// `pid`.
    pub(super) fn shared(
        &mut self,
        pid: u32,
        mapping: &Mapping,
        memory: &ProcessMemory,
    ) -> (Written, Option<File>) {
        let usage = self.of(mapping);
        if usage.is_some_and(is_device) {
            return (of_device(mapping, usage), None);
        }
        // Nobody can write it by this mapping: not now, and not before it lost the right.
        if usage.map_or(!mapping.writable, |usage| !usage.has("mw")) {
            return (Written::default(), None);
        }
        let file = if is_shared_memory(&mapping.path) { open_shared(pid, mapping) } else { None };
        let mut written = Written::default();
        let mut left = self.shared_left;
        let mut add = |written: &mut Written, range: Range<u64>, has_other_writers| {
            let size = range.end - range.start;
            let end = range.start + size.min(left);
            written.unread += range.end - end;
            left -= end - range.start;
            if range.start < end {
                written.parts.push(WrittenPart { range: range.start..end, has_other_writers });
            }
        };
        each_run(memory, &mapping.range, &mut |range, page| match (page, &file) {
            (Page::OfFile { is_exclusive: true } | Page::Own, _) => add(&mut written, range, false),
            (Page::OfFile { .. }, _) => add(&mut written, range, true),
            (_, Some(file)) => {
                each_data(file, mapping, &range, &mut |range| add(&mut written, range, true));
            }
            (_, None) => written.unread += range.end - range.start,
        });
        self.shared_left = left;
        (written, file)
    }
}

/// Whether the memory is a device's: it is read by its driver, if at all.
fn is_device(usage: &Usage) -> bool {
    usage.has("io") || usage.has("pf")
}

fn of_device(mapping: &Mapping, usage: Option<&Usage>) -> Written {
    let may_be_written = usage.is_some_and(|usage| usage.has("mw"));
    let size = mapping.range.end - mapping.range.start;
    Written { parts: Vec::new(), unread: if may_be_written { size } else { 0 } }
}

/// Calls `each` with runs of pages of which the kernel says the same.
fn each_run(memory: &ProcessMemory, range: &Range<u64>, each: &mut dyn FnMut(Range<u64>, Page)) {
    let mut pages = Vec::new();
    let mut run: Option<(Range<u64>, Page)> = None;
    let mut at = range.start;
    while at < range.end {
        let count = (range.end - at).div_ceil(PAGE).min(BATCH);
        pages.clear();
        pages.resize(count as usize, Page::Unknown);
        memory.pages(at, &mut pages);
        for page in &pages {
            let end = (at + PAGE).min(range.end);
            match &mut run {
                Some((run, of)) if of == page => run.end = end,
                _ => {
                    if let Some((run, of)) = run.replace((at..end, *page)) {
                        each(run, of);
                    }
                }
            }
            at = end;
        }
    }
    if let Some((run, of)) = run {
        each(run, of);
    }
}

/// Whether this is memory of tmpfs, by its name.
fn is_shared_memory(path: &str) -> bool {
    ["/dev/zero (deleted)", "/memfd:", "/SYSV", "/dev/shm/"].iter().any(|start| path.starts_with(start))
}

/// The file of shared memory. To open another one could wait for somebody, or act on a device.
fn open_shared(pid: u32, mapping: &Mapping) -> Option<File> {
    let Range { start, end } = mapping.range;
    let path = format!("/proc/{pid}/map_files/{start:x}-{end:x}");
    if !fs::metadata(&path).is_ok_and(|about| about.is_file()) {
        return None;
    }
    File::open(path).ok()
}

/// Calls `each` with the parts of a range that are no holes of the mapping's file.
fn each_data(file: &File, mapping: &Mapping, range: &Range<u64>, each: &mut dyn FnMut(Range<u64>)) {
    let to_file = |address: u64| address - mapping.range.start + mapping.offset;
    let to_address = |offset: u64| (offset - mapping.offset).saturating_add(mapping.range.start);
    let mut at = to_file(range.start);
    let end = to_file(range.end);
    while at < end {
        let Some(data) = seek(file, at, libc::SEEK_DATA).filter(|data| (at..end).contains(data)) else {
            break;
        };
        let hole = seek(file, data, libc::SEEK_HOLE).map_or(end, |hole| hole.min(end));
        if hole <= data {
            break;
        }
        each(to_address(data)..to_address(hole));
        at = hole;
    }
}

fn seek(file: &File, from: u64, to: libc::c_int) -> Option<u64> {
    // SAFETY: a call with integers. Reads of this file name their offset.
    let found = unsafe { libc::lseek(file.as_raw_fd(), from.try_into().ok()?, to) };
    found.try_into().ok()
}
