//! The flags of mappings (proc_pid_smaps(5)).

use std::collections::HashSet;
use std::{fs, io};

/// Where the mappings of a process begin that have one of these flags. Names of mapped files may have any bytes.
///
/// # Errors
/// If `/proc/PID/smaps` cannot be read.
pub fn read_with_flags(pid: u32, wanted: &[&str]) -> io::Result<HashSet<u64>> {
    let text = fs::read(format!("/proc/{pid}/smaps"))?;
    let text = String::from_utf8_lossy(&text);
    Ok(wanted.iter().flat_map(|flag| with_flag(&text, flag)).collect())
}

/// Where the mappings begin that have a flag, such as `wf`: a forked child finds them empty.
///
/// ```
/// let smaps = "7f00-7f10 rw-p 0 0:0 0\nVmFlags: rd wr wf\n";
/// assert!(stackglass_procfs::smaps::with_flag(smaps, "wf").contains(&0x7f00));
/// ```
pub fn with_flag(smaps: &str, wanted: &str) -> HashSet<u64> {
    let mut found = HashSet::new();
    let mut start = None;
    for line in smaps.lines() {
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            found.extend(start.take().filter(|_| flags.split_whitespace().any(|flag| flag == wanted)));
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
    fn mappings_are_found_by_their_flag() {
        let smaps = "7f00-7f10 rw-p 0 0:0 0\nSize: 4 kB\nVmFlags: rd wr mr wf\n\
                     7f10-7f20 rw-p 0 0:0 0\nVmFlags: rd wr dc\n";
        assert_eq!(with_flag(smaps, "wf"), HashSet::from([0x7f00]));
        assert_eq!(with_flag(smaps, "dc"), HashSet::from([0x7f10]));
    }
}
