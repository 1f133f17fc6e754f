//! The flags of mappings (proc_pid_smaps(5)).

use std::collections::HashSet;
use std::{fs, io};

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
    fn mappings_are_found_by_their_flag() {
        let smaps = "7f00-7f10 rw-p 0 0:0 0\nSize: 4 kB\nVmFlags: rd wr mr wf\n\
                     7f10-7f20 rw-p 0 0:0 0\nVmFlags: rd wr dc\n";
        assert_eq!(with_flags(smaps, &["wf"]), HashSet::from([0x7f00]));
        assert_eq!(with_flags(smaps, &["dc"]), HashSet::from([0x7f10]));
        assert_eq!(with_flags(smaps, &["dc", "wf", "um"]), HashSet::from([0x7f00, 0x7f10]));
    }
}
