//! What a copy gives back: descriptors, the current folder and mapped files.
//!
//! Otherwise it would keep in use what the program closes, leaves and unmaps while the copy lives: locks of flock(2), seals of
//! memfd_create(2), file systems, counts of shmctl(2). Shared memory is never of the moment of the copy, since the program goes on to
//! write it. What a copy gives back is read in the process itself.

use super::Mapping;
use super::inject::{Call, Injection};
use stackglass_procfs::maps;
use std::collections::HashSet;
use std::io;
use std::ops::Range;

/// Calls of munmap(2) at most. The program stands still meanwhile, for a tenth of a millisecond each on a virtual machine.
const MOST_UNMAPPED: usize = 64;

/// Whether a copy gives these mappings back, in the same order.
///
/// It gives back shared memory, and files that are mapped privately to be read. It keeps private memory that can be written, and all
/// mappings of files that contain code or such memory.
pub(super) fn are_given_back(mappings: &[Mapping]) -> Vec<bool> {
    let has_name = |mapping: &&Mapping| mapping.inode != 0 && mapping.path.starts_with('/');
    let is_own = |mapping: &&Mapping| !mapping.shared && (mapping.writable || mapping.executable);
    let kept: HashSet<&str> =
        mappings.iter().filter(has_name).filter(is_own).map(|mapping| &*mapping.path).collect();
    let is_given_back =
        |mapping: &Mapping| mapping.shared || has_name(&mapping) && !kept.contains(&*mapping.path);
    mappings.iter().map(is_given_back).collect()
}

/// Makes a stopped copy give back what it has of the program's. Returns its mappings before that.
///
/// # Errors
/// If its mappings cannot be read.
pub(super) fn give_back(injection: &mut Injection<'_>, copy: u32) -> io::Result<Vec<Mapping>> {
    /// `CLOSE_RANGE_UNSHARE`: the copy gets an empty table of descriptors. The program's own would cost it its record locks (fcntl(2))
    /// when it executes another program. Kernels before 5.9 do not know the call.
    const UNSHARE: u64 = 2;
    let mappings = maps::read(copy)?;
    let mut calls: Vec<Call> = vec![
        (libc::SYS_close_range, [0, u64::from(u32::MAX), UNSHARE, 0]),
        (libc::SYS_chdir, [injection.root_path(), 0, 0, 0]),
    ];
    let ranges = ranges(&mappings, &injection.needed_by_tasks()).into_iter().take(MOST_UNMAPPED);
    calls.extend(ranges.map(|range| (libc::SYS_munmap, [range.start, range.end - range.start, 0, 0])));
    // What fails leaves something in use.
    let _ = injection.calls_in(copy, &calls);
    Ok(mappings)
}

/// The addresses to unmap, by address: one range for mappings between which nothing is kept. None has an address that is needed.
fn ranges(mappings: &[Mapping], needed: &[u64]) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    let mut is_behind_kept = true;
    for (mapping, is_given_back) in mappings.iter().zip(are_given_back(mappings)) {
        let is_needed = needed.iter().any(|address| mapping.range.contains(address));
        match ranges.last_mut() {
            _ if !is_given_back || is_needed => is_behind_kept = true,
            Some(last) if !is_behind_kept => last.end = mapping.range.end,
            _ => {
                ranges.push(mapping.range.clone());
                is_behind_kept = false;
            }
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
1000-2000 r--p 00000000 fd:00 11 /bin/program
2000-3000 r-xp 00001000 fd:00 11 /bin/program
3000-4000 rw-p 00000000 00:00 0 [heap]
5000-6000 rw-s 00000000 00:01 12 /memfd:queue (deleted)
8000-9000 r--p 00000000 fd:00 13 /usr/share/names
9000-a000 rw-s 00000000 00:01 0 /SYSV00000000 (deleted)
a000-b000 r--p 00000000 fd:00 14 /lib/plugin.so
b000-c000 rw-s 00000000 00:01 15 /dev/zero (deleted)
c000-d000 rw-p 00001000 fd:00 14 /lib/plugin.so
d000-e000 rw-s 00000000 00:01 16 anon_inode:[io_uring]
e000-f000 r--p 00000000 00:00 0 [vvar]
";

    #[test]
    fn shared_memory_and_read_files_are_given_back_and_code_and_data_kept() {
        let mappings = maps::parse(MAPS.as_bytes());
        assert_eq!(mappings.len(), MAPS.lines().count());
        // Nothing that is kept lies between the first two.
        assert_eq!(ranges(&mappings, &[]), [0x5000..0xa000, 0xb000..0xc000, 0xd000..0xe000]);
        assert_eq!(ranges(&mappings, &[0x8010, 0xd000]), [0x5000..0x6000, 0x9000..0xa000, 0xb000..0xc000]);
    }
}
