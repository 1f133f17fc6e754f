//! Facts about a process: its executable, its command line, its ancestors, and whether it is still the same image.

use crate::status::Status;
use crate::threads;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A thread by whose id the files and the memory of a process can be read: the main thread, unless it has ended
/// before the others (`pthread_exit`). `None` if all threads have ended.
pub fn living_thread(pid: u32) -> Option<u32> {
    let lives = |tid: u32| Status::read(tid).is_some_and(|status| !status.has_ended());
    if lives(pid) {
        return Some(pid);
    }
    threads::list(pid).into_iter().find(|tid| *tid != pid && lives(*tid))
}

/// Threads of the program itself: without threads of a profiler inside it, and without a main thread that has ended
/// before the others.
pub fn program_threads(pid: u32) -> Vec<u32> {
    let mut tids = threads::list(pid);
    let main_has_ended = living_thread(pid) != Some(pid);
    tids.retain(|tid| !(threads::is_ours(pid, *tid) || main_has_ended && *tid == pid));
    tids
}

/// Whether a process is `ancestor` or a descendant of it, as far as the parents still exist.
pub fn descends_from(process: u32, ancestor: u32) -> bool {
    // No tree is deeper. If a process id is reused meanwhile, the chain could be a loop.
    const DEEPEST: usize = 100;
    let parent =
        |process: &u32| Status::read(*process).map(|status| status.parent).filter(|parent| *parent > 1);
    std::iter::successors(Some(process), parent).take(DEEPEST).any(|process| process == ancestor)
}

/// Path of the executable; empty if it cannot be read.
pub fn executable(pid: u32) -> PathBuf {
    let path = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let bytes = path.into_os_string().into_vec();
    let bytes = bytes.strip_suffix(b" (deleted)").unwrap_or(&bytes).to_vec();
    OsString::from_vec(bytes).into()
}

/// The command line: arguments that end with a zero byte each.
pub fn command_line(pid: u32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}

/// The arguments of the command line, or the name of the process if there are none.
pub fn arguments(pid: u32) -> Vec<String> {
    let line = command_line(living_thread(pid).unwrap_or(pid));
    let line = line.strip_suffix(&[0]).unwrap_or(&line);
    if line.is_empty() {
        return Status::read(pid).map(|status| status.name).into_iter().collect();
    }
    line.split(|b| *b == 0).map(|argument| String::from_utf8_lossy(argument).into_owned()).collect()
}

/// Identifies one image of a process: the time of its start, and the addresses of code and stack, which each exec
/// chooses at random (unless the program forbids that).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ImageKey {
    started: u64,
    code: u64,
    stack: u64,
}

impl ImageKey {
    /// Reads the key of a process; `None` if it has ended.
    pub fn read(pid: u32) -> Option<ImageKey> {
        let read = |tid: u32| ImageKey::parse(&fs::read(format!("/proc/{tid}/stat")).ok()?);
        let key = read(pid)?;
        if key.code != 0 || key.stack != 0 {
            return Some(key);
        }
        // A main thread that has ended has no memory, but still a start time.
        let other = read(living_thread(pid)?)?;
        Some(ImageKey { started: key.started, ..other })
    }

    /// Fields 22, 26 and 28 of proc_pid_stat(5). The second field may contain anything between its parentheses.
    fn parse(stat: &[u8]) -> Option<ImageKey> {
        let behind = stat.iter().rposition(|b| *b == b')')?;
        let fields: Vec<u64> = stat
            .get(behind + 2..)?
            .split(|b| *b == b' ')
            .map(|field| std::str::from_utf8(field).ok().and_then(|f| f.trim().parse().ok()).unwrap_or(0))
            .collect();
        // The first field after the name is field 3.
        Some(ImageKey { started: *fields.get(19)?, code: *fields.get(23)?, stack: *fields.get(25)? })
    }
}

/// Whether a process has not ended. A process in another pid namespace looks ended.
pub fn is_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read(format!("/proc/{pid}/stat")) else { return false };
    // The state follows the name, which is in parentheses and may contain anything.
    let state = stat.iter().rposition(|b| *b == b')').and_then(|at| stat.get(at + 2));
    !matches!(state, None | Some(b'Z' | b'X'))
}

#[cfg(test)]
mod tests {
    use super::*;

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
