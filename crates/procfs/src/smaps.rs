//! The flags and the memory of mappings (proc_pid_smaps(5)).

use crate::maps::Line;
use std::collections::HashSet;
use std::ops::Range;
use std::{fs, io};

/// What the kernel tells of a mapping.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Usage {
    /// Its addresses.
    pub range: Range<u64>,
    /// Bytes in pages that are the process's own, in memory or swapped out: none of a file's or shared memory's pages.
    pub own_bytes: u64,
    flags: Box<str>,
}

impl Usage {
    /// Whether the mapping has a flag, such as `wf`.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.split_whitespace().any(|one| one == flag)
    }
}

/// What the kernel tells of all mappings of a process, by address.
///
/// ```
/// let all = stackglass_procfs::smaps::read(std::process::id())?;
/// let stack = all.iter().find(|usage| usage.has("gd")).expect("the main stack grows down");
/// assert!(stack.own_bytes > 0 && stack.has("mw"));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If `/proc/PID/smaps` cannot be read.
pub fn read(pid: u32) -> io::Result<Vec<Usage>> {
    Ok(parse(&fs::read(format!("/proc/{pid}/smaps"))?))
}

fn parse(smaps: &[u8]) -> Vec<Usage> {
    let mut all: Vec<Usage> = Vec::new();
    for line in smaps.split(|byte| *byte == b'\n') {
        // Names of files may look like other lines, but no line of a mapping begins like another one.
        if let Some(mapping) = Line::parse(line) {
            all.push(Usage { range: mapping.range, own_bytes: 0, flags: "".into() });
            continue;
        }
        let Some((usage, line)) = all.last_mut().zip(std::str::from_utf8(line).ok()) else { continue };
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            usage.flags = flags.trim().into();
        } else if let Some(size) = line.strip_prefix("Anonymous:").or(line.strip_prefix("Swap:")) {
            let kilobytes = size.split_whitespace().next().and_then(|number| number.parse::<u64>().ok());
            usage.own_bytes = usage.own_bytes.saturating_add(kilobytes.unwrap_or(0) << 10);
        }
    }
    all
}

/// Where the mappings of a process begin that have one of these flags, such as `wf`: a forked child finds them empty. Names of mapped
/// files may have any bytes.
///
/// ```
/// let emptied = stackglass_procfs::smaps::read_with_flags(std::process::id(), &["wf"])?;
/// assert!(emptied.is_empty(), "no mapping of this process asks for it");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If `/proc/PID/smaps` cannot be read.
pub fn read_with_flags(pid: u32, wanted: &[&str]) -> io::Result<HashSet<u64>> {
    let text = fs::read(format!("/proc/{pid}/smaps"))?;
    Ok(with_flags(&String::from_utf8_lossy(&text), wanted))
}

fn with_flags(smaps: &str, wanted: &[&str]) -> HashSet<u64> {
    let mut found = HashSet::new();
    let mut start = None;
    for line in smaps.lines() {
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            found
                .extend(start.take().filter(|_| flags.split_whitespace().any(|flag| wanted.contains(&flag))));
        } else if let Some((first, _)) = line.split_once('-')
            && let Ok(address) = u64::from_str_radix(first, 16)
        {
            start = Some(address);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_memory_of_each_mapping() {
        let smaps = b"7f00-7f10 rw-p 0 0:0 0 /a\nSize: 8 kB\nAnonymous:       4 kB\nSwap:   8 kB\nSwapPss:  8 kB\n\
                      VmFlags: rd wr mw wf \n7f10-7f20 rw-s 0 0:1 7 /dev/b\nAnonymous: 0 kB\nVmFlags: io pf\n";
        let all = parse(smaps);
        assert_eq!([&all[0].range, &all[1].range], [&(0x7f00..0x7f10), &(0x7f10..0x7f20)]);
        assert_eq!((all.len(), all[0].own_bytes, all[1].own_bytes), (2, 12 << 10, 0));
        assert!(all[0].has("wf") && !all[0].has("w") && all[1].has("pf"));
    }

    #[test]
    fn mappings_are_found_by_their_flag() {
        let smaps = "7f00-7f10 rw-p 0 0:0 0\nSize: 4 kB\nVmFlags: rd wr mr wf\n\
                     7f10-7f20 rw-p 0 0:0 0\nVmFlags: rd wr dc\n";
        assert_eq!(with_flags(smaps, &["wf"]), HashSet::from([0x7f00]));
        assert_eq!(with_flags(smaps, &["dc"]), HashSet::from([0x7f10]));
        assert_eq!(with_flags(smaps, &["dc", "wf", "um"]), HashSet::from([0x7f00, 0x7f10]));
    }
}
