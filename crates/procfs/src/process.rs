//! Facts about a process: its executable, its command line, its ancestors, and whether it is still the same image.

use crate::status::Status;
use crate::threads;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

/// Whether a process is in the pid namespace that the kernel starts with, whose first process is init. `false` if that cannot be
/// read.
///
/// Source: `PROC_PID_INIT_INO` in `include/uapi/linux/nsfs.h` (before Linux 6.18: `include/linux/proc_ns.h`).
pub fn is_in_initial_pid_namespace(pid: u32) -> bool {
    const INITIAL: &str = "pid:[4026531836]";
    fs::read_link(format!("/proc/{pid}/ns/pid")).is_ok_and(|namespace| namespace == Path::new(INITIAL))
}

/// Path of the executable; empty if it cannot be read.
pub fn executable(pid: u32) -> PathBuf {
    let path = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let bytes = path.into_os_string().into_vec();
    let bytes = bytes.strip_suffix(b" (deleted)").unwrap_or(&bytes).to_vec();
    OsString::from_vec(bytes).into()
}

/// The path by which an executable was started, if the file has another name: `/usr/bin/redis-server`, which is a link to
/// `redis-check-rdb` in the same folder. `name`: what the kernel calls the process after its exec. A longer name of the
/// file is more exact: `python3.11` for `python3`.
pub fn started_as(exe: &str, name: &str) -> Option<Arc<str>> {
    let (folder, file) = exe.rsplit_once('/')?;
    if name.is_empty() || name.contains('/') || file.contains(name) {
        return None;
    }
    Some(format!("{folder}/{name}")).filter(|path| is_same_file(path, exe)).map(Arc::from)
}

/// Whether two paths name one file.
pub fn is_same_file(one: impl AsRef<Path>, other: impl AsRef<Path>) -> bool {
    let id = |path: &Path| fs::metadata(path).map(|meta| (meta.dev(), meta.ino())).ok();
    id(one.as_ref()).is_some_and(|one| Some(one) == id(other.as_ref()))
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

/// Ids of the children that a process has now; empty if the kernel does not list them.
pub fn children(pid: u32) -> Vec<u32> {
    let mut children = Vec::new();
    for tid in threads::list(pid) {
        let list = fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")).unwrap_or_default();
        children.extend(list.split_ascii_whitespace().filter_map(|child| child.parse::<u32>().ok()));
    }
    children
}

/// What a process is called, and how much CPU time it has used, in all its images.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CpuUsage {
    /// Name of the main thread, at most 15 bytes.
    pub name: String,
    /// Process id of the parent.
    pub parent: u32,
    /// When it started, in ticks since boot. The id of a process and its start are unique.
    pub started: u64,
    /// CPU time, in ticks, rounded down.
    pub ticks: u64,
    /// CPU time of children that have ended and for which it has waited, with theirs.
    pub ticks_of_children: u64,
}

impl CpuUsage {
    /// Reads the usage of a process, also of one that has ended, until its parent waits for it.
    pub fn read(pid: u32) -> Option<CpuUsage> {
        CpuUsage::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(stat: &[u8]) -> Option<CpuUsage> {
        let name = stat.get(stat.iter().position(|b| *b == b'(')? + 1..)?;
        let name = &name[..name.iter().rposition(|b| *b == b')')?];
        let fields = fields_after_name(stat)?;
        let times = fields.get(11..15)?;
        Some(CpuUsage {
            name: String::from_utf8_lossy(name).into_owned(),
            parent: *fields.get(1)? as u32,
            started: *fields.get(19)?,
            ticks: times[..2].iter().sum(),
            ticks_of_children: times[2..].iter().sum(),
        })
    }
}

/// The fields of proc_pid_stat(5) from the third on; 0 for those that are no number. The second, the name, may contain
/// anything between its parentheses.
fn fields_after_name(stat: &[u8]) -> Option<Vec<u64>> {
    let behind = stat.iter().rposition(|b| *b == b')')?;
    let number = |field: &[u8]| std::str::from_utf8(field).ok().and_then(|f| f.trim().parse().ok());
    Some(stat.get(behind + 2..)?.split(|b| *b == b' ').map(|field| number(field).unwrap_or(0)).collect())
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
        (other.code != 0 || other.stack != 0).then_some(ImageKey { started: key.started, ..other })
    }

    /// Fields 22, 26 and 28 of proc_pid_stat(5).
    fn parse(stat: &[u8]) -> Option<ImageKey> {
        let fields = fields_after_name(stat)?;
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
    #[test]
    fn a_link_to_an_executable_is_found_by_its_name() {
        let folder = std::env::temp_dir().join(format!("started-as-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let exe = folder.join("check-rdb2");
        fs::write(&exe, "").unwrap();
        std::os::unix::fs::symlink("check-rdb2", folder.join("server")).unwrap();
        fs::hard_link(&exe, folder.join("check")).unwrap();
        fs::write(folder.join("other"), "").unwrap();
        let as_name = |name: &str| started_as(exe.to_str().unwrap(), name);
        assert_eq!(as_name("server").as_deref(), folder.join("server").to_str());
        assert_eq!([as_name("check"), as_name("other"), as_name("none"), as_name("")], [const { None }; 4]);
        assert_eq!(as_name("../server"), None);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn usage_is_read_whatever_the_name() {
        let line = b"9 (a) R (b) S 77 2 3 4 5 6 7 8 9 10 120 30 13 14 15 16 17 18 1234 20 21";
        let usage =
            CpuUsage { name: "a) R (b".into(), parent: 77, started: 1234, ticks: 150, ticks_of_children: 27 };
        assert_eq!(CpuUsage::parse(line), Some(usage));
        assert_eq!(CpuUsage::parse(b"9 (a) S 1"), None);
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(children(std::process::id()).contains(&child.id()));
        assert_eq!(CpuUsage::read(child.id()).unwrap().parent, std::process::id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!children(std::process::id()).contains(&child.id()));
    }
}
