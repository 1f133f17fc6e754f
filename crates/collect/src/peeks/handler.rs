//! Whether a process answers peeks itself: checked from outside, without sending it a signal.
//!
//! A signal without a handler would kill the program. So two conditions must hold: the mapping that our handler
//! creates (forked children do not have it), and the kernel's list of caught signals.

use stackglass_procfs::Status;
use stackglass_wire::PEEK_MARK;
use std::{fs, io};

/// The signal that requests a peek.
pub const SIGNAL: i32 = libc::SIGUSR1;

/// Start of the names of memfd mappings in `/proc/PID/maps`.
const MEMFD: &[u8] = b"/memfd:";

/// Whether the handler is installed. False if that cannot be read.
pub fn carries_our_handler(pid: u32) -> bool {
    let caught = Status::read(pid).map_or(0, |status| status.caught);
    let Ok(maps) = fs::read(format!("/proc/{pid}/maps")) else { return false };
    says_so(caught, &maps)
}

/// Requests a peek, if the handler is installed.
///
/// # Errors
/// ENOENT if it is not, and those of kill(2).
pub fn ask(pid: u32) -> io::Result<()> {
    if !carries_our_handler(pid) {
        return Err(io::Error::from_raw_os_error(libc::ENOENT));
    }
    // SAFETY: a system call without pointers.
    match unsafe { libc::kill(pid as libc::pid_t, SIGNAL) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn says_so(caught: u64, maps: &[u8]) -> bool {
    let marked = maps.split(|b| *b == b'\n').any(|line| {
        // Five fields without blanks precede the name.
        let name = line.splitn(6, |b| *b == b' ').nth(5).unwrap_or(&[]).trim_ascii();
        let mark = name.strip_prefix(MEMFD).and_then(|name| name.strip_prefix(PEEK_MARK.to_bytes()));
        mark.is_some_and(|rest| rest.is_empty() || rest.starts_with(b" "))
    });
    caught >> (SIGNAL - 1) & 1 == 1 && marked
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKED: &[u8] = b"\
7f0000000000-7f0000001000 r--p 00000000 fe:00 77                         /lib/x.so
7f0000002000-7f0000003000 r--s 00000000 00:01 9                          /memfd:stackglass-peek (deleted)
";

    #[test]
    fn both_signs_are_needed() {
        assert!(says_so(1 << 9, MARKED));
        assert!(!says_so(0, MARKED) && !says_so(1 << 8 | 1 << 10, MARKED));
        assert!(
            !says_so(1 << 9, b"")
                && !says_so(1 << 9, b"7f00-7f01 r--p 0 0:0 7 /home/memfd:stackglass-peek\n")
        );
        let other = b"7f0000002000-7f0000003000 r--s 00000000 00:01 9 /memfd:stackglass-peekaboo (deleted)\n";
        assert!(!says_so(1 << 9, other));
    }

    #[test]
    fn a_stranger_does_not_carry_it() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(!carries_our_handler(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!carries_our_handler(child.id()));
    }
}
