//! Lists of threads, and their files in `/proc/PID/task`. The two files that are read at every tick stay open.

use rustix::process::{Resource, getrlimit, setrlimit};
use stackglass_proc_text::{SchedStat, ThreadState};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// The files of one thread.
pub struct Files {
    pid: u32,
    tid: u32,
    stat: Option<File>,
    state: Option<File>,
}

impl Files {
    /// Files of thread `tid` of process `pid`, opened when needed.
    pub fn new(pid: u32, tid: u32) -> Files {
        Files { pid, tid, stat: None, state: None }
    }

    /// Scheduler statistics; `None` if the thread has ended.
    pub fn stat(&mut self) -> Option<SchedStat> {
        let mut text = [0u8; 96];
        let n = read(&mut self.stat, self.pid, self.tid, "schedstat", &mut text)?;
        SchedStat::parse(text.get(..n)?)
    }

    /// Whether the thread runs or sleeps, and where.
    pub fn state(&mut self) -> ThreadState {
        let mut text = [0u8; 256];
        let n = read(&mut self.state, self.pid, self.tid, "syscall", &mut text).unwrap_or(0);
        ThreadState::parse(text.get(..n).unwrap_or(&[]))
    }

    /// The name of the thread, padded with zeros.
    pub fn name(&self) -> Option<[u8; 16]> {
        let text = name_bytes(self.pid, self.tid)?;
        let mut name = [0u8; 16];
        for (to, from) in name.iter_mut().zip(text.iter().take(15)) {
            *to = *from;
        }
        Some(name)
    }
}

/// The name of a thread. Bytes that are no UTF-8 become U+FFFD.
pub fn name(pid: u32, tid: u32) -> Option<String> {
    Some(String::from_utf8_lossy(&name_bytes(pid, tid)?).into_owned())
}

fn name_bytes(pid: u32, tid: u32) -> Option<Vec<u8>> {
    let mut text = fs::read(format!("/proc/{pid}/task/{tid}/comm")).ok()?;
    if text.last() == Some(&b'\n') {
        text.pop();
    }
    Some(text)
}

/// Raises the limit on open files to its maximum: two files stay open for each thread.
pub fn allow_many_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If this is refused, the limit stays as it is.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Reads a file from its beginning and keeps it open. At the limit of open files, it is opened each time.
fn read(kept: &mut Option<File>, pid: u32, tid: u32, name: &str, text: &mut [u8]) -> Option<usize> {
    if let Some(file) = kept {
        return file.read_at(text, 0).ok();
    }
    let file = File::open(format!("/proc/{pid}/task/{tid}/{name}")).ok()?;
    let n = file.read_at(text, 0).ok()?;
    *kept = Some(file);
    Some(n)
}

/// Ids of all threads, the main thread first. Empty if the process has ended.
pub fn list(pid: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let mut tids: Vec<u32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    tids.sort_unstable_by_key(|tid| (*tid != pid, *tid));
    tids
}

/// Names of the profiler's threads inside a program: the sampler, and the threads of the crate that answer peeks,
/// read samples and write a file.
const OURS: [&[u8]; 4] = [b"stackglass", b"stackglass-peek", b"stackglass-read", b"stackglass-file"];

/// Whether a name, padded with zeros, is that of a profiler's thread. A program's own thread with such a name counts
/// as one, too. The main thread never does, nor a thread with its name: new threads inherit a name, and the command itself is called
/// `stackglass`.
pub fn is_our_name(pid: u32, tid: u32, name: &[u8; 16]) -> bool {
    let len = name.iter().position(|b| *b == 0).unwrap_or(name.len());
    tid != pid && OURS.contains(&&name[..len]) && Files::new(pid, pid).name().as_ref() != Some(name)
}

/// Whether a thread belongs to a profiler inside the program, by its name.
pub fn is_ours(pid: u32, tid: u32) -> bool {
    Files::new(pid, tid).name().is_some_and(|name| is_our_name(pid, tid, &name))
}

/// A number that changes when a thread begins or ends: the link count of the folder.
pub fn links(pid: u32) -> u64 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(format!("/proc/{pid}/task")).map_or(0, |meta| meta.nlink())
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_proc_text::{Call, Sleep};

    #[test]
    fn our_own_threads_are_known_by_their_names() {
        let me = std::process::id();
        let ours = |tid, name| is_our_name(me, tid, name);
        assert!(ours(8, b"stackglass\0\0\0\0\0\0") && ours(8, b"stackglass-peek\0"));
        assert!(!ours(me, b"stackglass\0\0\0\0\0\0"), "the main thread");
        assert!(!ours(8, b"stackglass-look\0") && !ours(8, &[0; 16]));
        let (tell, tid) = std::sync::mpsc::channel();
        let reader = std::thread::Builder::new().name("stackglass-read".into()).spawn(move || {
            tell.send(rustix::thread::gettid().as_raw_pid() as u32).unwrap();
            std::thread::park();
        });
        let (reader, tid) = (reader.unwrap(), tid.recv().unwrap());
        assert!(
            is_ours(me, tid)
                && list(me).contains(&tid)
                && !crate::process::program_threads(me).contains(&tid)
        );
        reader.thread().unpark();
        reader.join().unwrap();
    }

    #[test]
    fn a_child_that_sleeps_stands_still() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mut files = Files::new(child.id(), child.id());
        while !matches!(
            files.state(),
            ThreadState::Asleep(Sleep { call: Some(Call { number: 230, .. }), .. })
        ) {
            std::thread::yield_now();
        }
        let before = files.stat().unwrap();
        assert!(before.turns > 0);
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(files.stat(), Some(before));
        assert_eq!(list(child.id()), [child.id()]);
        assert_eq!(files.name().unwrap()[..6], *b"sleep\0");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(files.stat(), None);
        assert!(list(child.id()).is_empty());
    }
}
