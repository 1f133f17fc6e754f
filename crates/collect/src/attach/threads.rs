//! What `/proc/PID/task/TID` tells of a thread: whether it has run, whether it sleeps and where.
//!
//! `schedstat` is exact for a thread that is off the processor: its first number moves when the thread
//! has run, its third when it was given a processor, however briefly. So a sleeper whose numbers stand
//! still has not moved, and need not be looked at again. The two files stay open.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// The three numbers of `schedstat`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Account {
    /// Time on processors, ns.
    pub ran: u64,
    /// Time ready to run without a processor, ns. A wait that still lasts is not in it.
    pub waited: u64,
    /// How often it was given a processor.
    pub turns: u64,
}

impl Account {
    fn parse(text: &[u8]) -> Option<Account> {
        let mut numbers =
            std::str::from_utf8(text).ok()?.split_ascii_whitespace().map(|number| number.parse().ok());
        Some(Account { ran: numbers.next()??, waited: numbers.next()??, turns: numbers.next()?? })
    }
}

/// A system call that a thread is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call {
    /// Its number.
    pub number: i64,
    /// What it was given; what it does not take is whatever the registers held.
    pub arguments: [u64; 6],
}

impl Call {
    /// Reads the number, and what it was given. `None` where there is none (-1).
    fn parse(number: &str, arguments: &[&str]) -> Option<Call> {
        let number = number.parse().ok().filter(|number| *number >= 0)?;
        let argument = |text: &&str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
        let given = |n: usize| arguments.get(n).and_then(argument).unwrap_or(u64::MAX);
        Some(Call { number, arguments: std::array::from_fn(given) })
    }
}

/// Where the kernel says a thread is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// On a processor, or ready to be.
    Running,
    /// Blocked in the kernel, or stopped.
    Asleep {
        /// Program counter in the program.
        pc: u64,
        /// Stack pointer in the program.
        sp: u64,
        /// The system call; `None` in a page fault, or when it is stopped.
        call: Option<Call>,
    },
    /// It cannot be read, or the thread is gone.
    Unknown,
}

impl Place {
    /// Reads what proc_pid_syscall(5) describes: `running`, or numbers of which the first is the call's
    /// and the last two are the stack pointer and the program counter.
    pub fn parse(text: &[u8]) -> Place {
        let Ok(text) = std::str::from_utf8(text) else { return Place::Unknown };
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let address = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok().filter(|a| *a != 0);
        match fields.as_slice() {
            ["running"] => Place::Running,
            [call, arguments @ .., sp, pc] => match (address(sp), address(pc)) {
                (Some(sp), Some(pc)) => Place::Asleep { pc, sp, call: Call::parse(call, arguments) },
                _ => Place::Unknown,
            },
            _ => Place::Unknown,
        }
    }

    /// Where a thread is now, for who asks once.
    pub fn read(pid: u32, tid: u32) -> Place {
        fs::read(format!("/proc/{pid}/task/{tid}/syscall")).map_or(Place::Unknown, |text| Place::parse(&text))
    }
}

/// The files of one thread.
pub struct Files {
    pid: u32,
    tid: u32,
    account: Option<File>,
    place: Option<File>,
}

impl Files {
    /// Of thread `tid` of process `pid`; opened when needed.
    pub fn new(pid: u32, tid: u32) -> Files {
        Files { pid, tid, account: None, place: None }
    }

    /// What it ran and waited; `None` when it is gone.
    pub fn account(&mut self) -> Option<Account> {
        let mut text = [0u8; 96];
        let n = read(&mut self.account, self.pid, self.tid, "schedstat", &mut text)?;
        Account::parse(text.get(..n)?)
    }

    /// Where it is.
    pub fn place(&mut self) -> Place {
        let mut text = [0u8; 256];
        let n = read(&mut self.place, self.pid, self.tid, "syscall", &mut text).unwrap_or(0);
        Place::parse(text.get(..n).unwrap_or(&[]))
    }

    /// Its name, as the kernel keeps it.
    pub fn name(&self) -> Option<[u8; 16]> {
        let text = fs::read(format!("/proc/{}/task/{}/comm", self.pid, self.tid)).ok()?;
        let mut name = [0u8; 16];
        for (to, from) in name.iter_mut().zip(text.iter().take_while(|b| **b != b'\n').take(15)) {
            *to = *from;
        }
        Some(name)
    }
}

/// Reads a file from its beginning, keeping it open. Where no more can be open, it is opened each time.
fn read(kept: &mut Option<File>, pid: u32, tid: u32, name: &str, text: &mut [u8]) -> Option<usize> {
    if let Some(file) = kept {
        return file.read_at(text, 0).ok();
    }
    let file = File::open(format!("/proc/{pid}/task/{tid}/{name}")).ok()?;
    let n = file.read_at(text, 0).ok()?;
    *kept = Some(file);
    Some(n)
}

/// Kernel ids of all threads, the main one first. Empty when the process is gone.
pub fn list(pid: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let mut tids: Vec<u32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    tids.sort_unstable_by_key(|tid| (*tid != pid, *tid));
    tids
}

/// Names of threads that serve a profiler inside the program: the sampler (of the crate and of the preload library), and the crate's
/// threads that answer peeks, read samples and write a file.
const OURS: [&[u8]; 4] = [b"stackglass", b"stackglass-peek", b"stackglass-read", b"stackglass-file"];

/// Whether a name, padded with zeros, is that of a thread of ours. A program's own thread of such a name is taken for one
/// too; the main thread never is, for the command's own is called so.
pub fn is_our_name(pid: u32, tid: u32, name: &[u8]) -> bool {
    let len = name.iter().position(|b| *b == 0).unwrap_or(name.len());
    tid != pid && OURS.contains(&&name[..len])
}

/// Whether a thread serves a profiler inside the program, by its name.
pub fn is_ours(pid: u32, tid: u32) -> bool {
    Files::new(pid, tid).name().is_some_and(|name| is_our_name(pid, tid, &name))
}

/// The same as [`list`], without ours, and without a main thread that has ended before the others.
pub fn of_the_program(pid: u32) -> Vec<u32> {
    let mut tids = list(pid);
    let main_has_ended = super::process::living_thread(pid) != Some(pid);
    tids.retain(|tid| !(is_ours(pid, *tid) || main_has_ended && *tid == pid));
    tids
}

/// Changes when a thread comes or goes: the folder has a link for each.
pub fn links(pid: u32) -> u64 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(format!("/proc/{pid}/task")).map_or(0, |meta| meta.nlink())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read() {
        assert_eq!(Account::parse(b"12 34 5\n"), Some(Account { ran: 12, waited: 34, turns: 5 }));
        assert_eq!(Account::parse(b"12 34\n"), None);
        assert_eq!(Place::parse(b"running\n"), Place::Running);
        let text = b"202 0x7f 0x80 0x0 0x0 0x0 0x7ffd 0x7fffa0 0x7f12ab\n";
        let call = Some(Call { number: 202, arguments: [0x7f, 0x80, 0, 0, 0, 0x7ffd] });
        assert_eq!(Place::parse(text), Place::Asleep { pc: 0x7f12ab, sp: 0x7fffa0, call });
        let stopped = Place::Asleep { pc: 0x7f12ab, sp: 0x7fffa0, call: None };
        assert_eq!(Place::parse(b"-1 0x7fffa0 0x7f12ab\n"), stopped);
        for bad in [&b""[..], b"\n", b"-1", b"-1 0x0 0x0", b"zz 0xzz", b"1 2", b"\xff \xff \xff"] {
            assert_eq!(Place::parse(bad), Place::Unknown);
        }
    }

    #[test]
    fn our_own_threads_are_known_by_their_names() {
        assert!(is_our_name(7, 8, b"stackglass\0\0\0\0\0\0") && is_our_name(7, 8, b"stackglass-peek\0"));
        assert!(!is_our_name(7, 7, b"stackglass\0\0\0\0\0\0"), "the main thread of the command");
        assert!(
            !is_our_name(7, 8, b"stackglass-look\0") && !is_our_name(7, 8, b"") && !is_our_name(7, 8, b"\0")
        );
        let (tell, tid) = std::sync::mpsc::channel();
        let reader = std::thread::Builder::new().name("stackglass-read".into()).spawn(move || {
            // SAFETY: no arguments.
            tell.send(unsafe { libc::gettid() } as u32).unwrap();
            std::thread::park();
        });
        let (reader, tid) = (reader.unwrap(), tid.recv().unwrap());
        let me = std::process::id();
        assert!(is_ours(me, tid) && list(me).contains(&tid) && !of_the_program(me).contains(&tid));
        reader.thread().unpark();
        reader.join().unwrap();
    }

    #[test]
    fn a_child_that_sleeps_stands_still() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mut files = Files::new(child.id(), child.id());
        while !matches!(files.place(), Place::Asleep { call: Some(Call { number: 230, .. }), .. }) {
            std::thread::yield_now();
        }
        let before = files.account().unwrap();
        assert!(before.turns > 0);
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(files.account(), Some(before));
        assert_eq!(list(child.id()), [child.id()]);
        assert_eq!(files.name().unwrap()[..6], *b"sleep\0");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(files.account(), None);
        assert!(list(child.id()).is_empty());
    }
}
