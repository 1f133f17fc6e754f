//! What `/proc` tells of a process that is not ours: who it is, and whether it is still the same image.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Facts from `/proc/PID/status`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Status {
    /// Its name, as the kernel keeps it.
    pub name: String,
    /// Process id; another than the one asked for where that was a thread's.
    pub process: u32,
    /// Its parent.
    pub parent: u32,
    /// Who traces it; 0 for nobody.
    pub tracer: u32,
    /// Real user id.
    pub user: u32,
    /// `R`, `S`, `Z`, …
    pub state: u8,
    /// It has memory of its own; kernel threads have none.
    pub has_memory: bool,
    /// Signals that it has handlers for, bit N-1 for signal N.
    pub caught: u64,
    /// Signals that wait to be delivered, to this thread or to any of its process.
    pub pending: u64,
    /// Signals that it blocks now.
    pub blocked: u64,
    /// A seccomp filter holds it.
    pub filtered: bool,
    /// Capabilities in force, as bits.
    pub capabilities: u64,
}

impl Status {
    /// Reads it; `None` when there is no such process (or thread), or it may not be seen.
    pub fn read(pid: u32) -> Option<Status> {
        Some(Status::parse(&String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/status")).ok()?)))
    }

    /// Its own.
    pub fn own() -> Status {
        Status::read(std::process::id()).unwrap_or_default()
    }

    fn parse(text: &str) -> Status {
        let mut status = Status::default();
        for line in text.lines() {
            let Some((key, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            let first = value.split_ascii_whitespace().next().unwrap_or("");
            let number = first.parse().unwrap_or(0);
            match key {
                "Name" => status.name = value.to_owned(),
                "Tgid" => status.process = number,
                "PPid" => status.parent = number,
                "TracerPid" => status.tracer = number,
                "Uid" => status.user = number,
                "State" => status.state = first.bytes().next().unwrap_or(0),
                "VmSize" => status.has_memory = true,
                "SigCgt" => status.caught = u64::from_str_radix(first, 16).unwrap_or(0),
                "SigPnd" | "ShdPnd" => status.pending |= u64::from_str_radix(first, 16).unwrap_or(0),
                "SigBlk" => status.blocked = u64::from_str_radix(first, 16).unwrap_or(0),
                "Seccomp" => status.filtered = first == "2",
                "CapEff" => status.capabilities = u64::from_str_radix(first, 16).unwrap_or(0),
                _ => {}
            }
        }
        status
    }

    /// It has a handler for this signal.
    pub fn catches(&self, signal: i32) -> bool {
        (1..=64).contains(&signal) && self.caught >> (signal - 1) & 1 == 1
    }

    /// It has ended; only its parent has not asked for its status yet.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

/// A thread by whose files and id the memory of a process can be read: the main one, unless it has ended before the others
/// (`pthread_exit`). `None` when all have ended.
pub fn living_thread(pid: u32) -> Option<u32> {
    let lives = |tid: u32| Status::read(tid).is_some_and(|status| !status.has_ended());
    if lives(pid) {
        return Some(pid);
    }
    super::threads::list(pid).into_iter().find(|tid| *tid != pid && lives(*tid))
}

/// Whether a process is `ancestor`, or was started by it or by one that it has started, as far as parents can still be
/// asked.
pub fn descends_from(process: u32, ancestor: u32) -> bool {
    // No tree is deeper; a number that was used again while we looked could lead round in a circle.
    const DEEPEST: usize = 100;
    let parent =
        |process: &u32| Status::read(*process).map(|status| status.parent).filter(|parent| *parent > 1);
    std::iter::successors(Some(process), parent).take(DEEPEST).any(|process| process == ancestor)
}

/// Path of the executable; empty where it cannot be read.
pub fn executable(pid: u32) -> PathBuf {
    let path = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let bytes = path.into_os_string().into_vec();
    let bytes = bytes.strip_suffix(b" (deleted)").unwrap_or(&bytes).to_vec();
    OsString::from_vec(bytes).into()
}

/// The command line, each argument ended by a zero byte.
pub fn command_line(pid: u32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}

/// The command line as arguments; the kernel's name for it where it has none.
pub fn arguments(pid: u32) -> Vec<String> {
    let line = command_line(living_thread(pid).unwrap_or(pid));
    let line = line.strip_suffix(&[0]).unwrap_or(&line);
    if line.is_empty() {
        return Status::read(pid).map(|status| status.name).into_iter().collect();
    }
    line.split(|b| *b == 0).map(|argument| String::from_utf8_lossy(argument).into_owned()).collect()
}

/// Tells one image of a process from the next: the moment it was started, and where code and stack of
/// what it has exec'ed begin (both by chance, unless the program forbids that).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ImageKey {
    started: u64,
    code: u64,
    stack: u64,
}

impl ImageKey {
    /// Reads it; `None` when the process is gone.
    pub fn read(pid: u32) -> Option<ImageKey> {
        let read = |tid: u32| ImageKey::parse(&fs::read(format!("/proc/{tid}/stat")).ok()?);
        let key = read(pid)?;
        if key.code != 0 || key.stack != 0 {
            return Some(key);
        }
        // A main thread that has ended has no memory; when it was started is told still.
        let other = read(living_thread(pid)?)?;
        Some(ImageKey { started: key.started, ..other })
    }

    /// Fields 22, 26 and 28 of proc_pid_stat(5); the second may hold anything in its parentheses.
    fn parse(stat: &[u8]) -> Option<ImageKey> {
        let behind = stat.iter().rposition(|b| *b == b')')?;
        let fields: Vec<u64> = stat
            .get(behind + 2..)?
            .split(|b| *b == b' ')
            .map(|field| std::str::from_utf8(field).ok().and_then(|f| f.trim().parse().ok()).unwrap_or(0))
            .collect();
        // The third field is the first behind the name.
        Some(ImageKey { started: *fields.get(19)?, code: *fields.get(23)?, stack: *fields.get(25)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_read_whatever_the_name() {
        let status = Status::parse(
            "Name:\tTgid:\t9\nState:\tS (sleeping)\nTgid:\t77\nPPid:\t1\nTracerPid:\t5\nUid:\t1000\t0\t0\t0\n\
             VmSize:\t  100 kB\nSigPnd:\t0000000000000001\nShdPnd:\t0000000000000400\nSigBlk:\t0000000000000004\nSigCgt:\t0000000000000200\nCapEff:\t0000000000080000\nSeccomp:\t2\n",
        );
        assert_eq!((status.process, status.parent, status.tracer, status.user), (77, 1, 5, 1000));
        assert_eq!((status.state, status.has_memory, status.filtered), (b'S', true, true));
        assert_eq!((status.caught, status.capabilities), (1 << 9, 1 << 19));
        assert_eq!((status.pending, status.blocked), (0x401, 4));
        assert!(!status.has_ended());
        let own = Status::own();
        assert_eq!(own.process, std::process::id());
    }

    #[test]
    fn an_image_keeps_its_key_and_another_has_its_own() {
        let me = std::process::id();
        let key = ImageKey::read(me).unwrap();
        assert_eq!(ImageKey::read(me), Some(key));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert_ne!(ImageKey::read(child.id()), Some(key));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(ImageKey::read(child.id()), None);
        let line =
            b"9 (a) R (b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 1234 20 21 22 5000 24 6000 26";
        assert_eq!(ImageKey::parse(line), Some(ImageKey { started: 1234, code: 5000, stack: 6000 }));
        assert_eq!(ImageKey::parse(b"9 (a) S 1"), None);
    }
}
