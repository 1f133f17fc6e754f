//! Which process has the lock of a file that a thread waits for: `/proc/locks` lists each lock with those that wait for it
//! (proc_locks(5)).

use super::calls::FileLockKind;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// The path of a descriptor's file, and the process whose lock of it this process waits for.
pub(super) fn owner(pid: u32, descriptor: u64, kind: FileLockKind) -> Option<(String, u32)> {
    let link = format!("/proc/{pid}/fd/{descriptor}");
    let inode = fs::metadata(&link).ok()?.ino();
    let owner = find(&fs::read_to_string("/proc/locks").ok()?, pid, inode, kind)?;
    let path = fs::read_link(link).ok()?.to_string_lossy().into_owned();
    Some((path, owner))
}

/// The owner of the lock behind which this process is listed. A line is `1: FLOCK ADVISORY WRITE 4200 fe:00:131 0 EOF`; one that
/// waits for it has the same number, and `->` before the kind.
fn find(locks: &str, pid: u32, inode: u64, kind: FileLockKind) -> Option<u32> {
    let word = match kind {
        FileLockKind::Flock => "FLOCK",
        FileLockKind::Posix => "POSIX",
    };
    let parse = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let number = fields.next()?.to_owned();
        let mut waits = false;
        let is_kind = fields.find(|field| {
            waits |= *field == "->";
            *field != "->"
        })? == word;
        let owner: u32 = fields.nth(2)?.parse().ok()?;
        let of: u64 = fields.next()?.rsplit(':').next()?.parse().ok()?;
        (is_kind && of == inode).then_some((number, waits, owner))
    };
    let lines: Vec<_> = locks.lines().filter_map(parse).collect();
    let mut waited = lines.iter().filter(|(_, waits, owner)| *waits && *owner == pid);
    let (number, ..) = waited.next()?;
    // With two, it is not known which of them the thread waits for.
    if waited.any(|(other, ..)| other != number) {
        return None;
    }
    let holder = lines.iter().find(|(of, waits, _)| of == number && !waits);
    holder.map(|(.., owner)| *owner).filter(|owner| *owner != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_before_the_waiting_line_is_meant() {
        let locks = "\
            1: FLOCK  ADVISORY  WRITE 10 fe:00:131 0 EOF\n\
            2: POSIX  ADVISORY  WRITE 11 fe:00:131 0 EOF\n\
            2: -> POSIX  ADVISORY  WRITE 20 fe:00:131 0 EOF\n\
            3: FLOCK  ADVISORY  WRITE 12 fe:00:132 0 EOF\n\
            3: -> FLOCK  ADVISORY  READ  20 fe:00:132 0 EOF\n\
            3: -> FLOCK  ADVISORY  READ  21 fe:00:132 0 EOF\n";
        assert_eq!(find(locks, 20, 131, FileLockKind::Posix), Some(11));
        assert_eq!(find(locks, 21, 132, FileLockKind::Flock), Some(12));
        assert_eq!(find(locks, 20, 131, FileLockKind::Flock), None);
        assert_eq!(find("", 20, 131, FileLockKind::Flock), None);
        assert_eq!(find("1: -> FLOCK\n:\n1: x", 20, 131, FileLockKind::Flock), None);
    }
}
