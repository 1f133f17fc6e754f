//! Reads `/proc/PID/status`.

use std::fs;

/// Facts from `/proc/PID/status`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Status {
    /// Name of the thread.
    pub name: String,
    /// Process id; differs from the id that was read if that was a thread's.
    pub process: u32,
    /// Process id of the parent.
    pub parent: u32,
    /// Id of the tracing thread; 0 if there is none.
    pub tracer: u32,
    /// Real user id.
    pub user: u32,
    /// `R`, `S`, `Z`, …
    pub state: u8,
    /// It has memory of its own; threads of the kernel have none, and processes that are ending.
    pub has_memory: bool,
    /// Signals with a handler, bit N-1 for signal N.
    pub caught: u64,
    /// Ignored signals.
    pub ignored: u64,
    /// Pending signals, of this thread or its process.
    pub pending: u64,
    /// Blocked signals.
    pub blocked: u64,
    /// How often the thread gave up its CPU to wait.
    pub voluntary_switches: u64,
    /// Seccomp confines its system calls, by a filter or by strict mode.
    pub confined: bool,
    /// Effective capabilities, as bits.
    pub capabilities: u64,
    /// Process id in the innermost pid namespace; 0 if the kernel does not tell.
    pub innermost_pid: u32,
    /// Its returns are checked against a shadow stack.
    pub has_shadow_stack: bool,
}

impl Status {
    /// Reads the status of a process or thread; `None` if it does not exist or is hidden.
    pub fn read(pid: u32) -> Option<Status> {
        Some(Status::parse(&String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/status")).ok()?)))
    }

    /// Whether `pid` is a thread of the kernel. A process that is ending has no memory either, but is none.
    pub fn is_kernel_thread(pid: u32) -> bool {
        /// `PF_KTHREAD` of the kernel (include/linux/sched.h), in the flags of proc_pid_stat(5).
        const KERNEL_THREAD: u64 = 0x0020_0000;
        const FLAGS: usize = 6;
        let Ok(stat) = fs::read(format!("/proc/{pid}/stat")) else { return false };
        // The name may contain anything; the fields begin behind its last bracket.
        let stat = String::from_utf8_lossy(&stat);
        let flags = stat.rsplit_once(')').and_then(|(_, fields)| fields.split_ascii_whitespace().nth(FLAGS));
        flags.and_then(|flags| flags.parse::<u64>().ok()).is_some_and(|flags| flags & KERNEL_THREAD != 0)
    }

    /// The status of this process.
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
                "SigIgn" => status.ignored = u64::from_str_radix(first, 16).unwrap_or(0),
                "SigPnd" | "ShdPnd" => status.pending |= u64::from_str_radix(first, 16).unwrap_or(0),
                "SigBlk" => status.blocked = u64::from_str_radix(first, 16).unwrap_or(0),
                "voluntary_ctxt_switches" => status.voluntary_switches = first.parse().unwrap_or(0),
                "Seccomp" => status.confined = matches!(first, "1" | "2"),
                "NSpid" => {
                    let last = value.split_ascii_whitespace().next_back();
                    status.innermost_pid = last.and_then(|pid| pid.parse().ok()).unwrap_or(0);
                }
                "x86_Thread_features" => {
                    status.has_shadow_stack =
                        value.split_ascii_whitespace().any(|feature| feature == "shstk");
                }
                "CapEff" => status.capabilities = u64::from_str_radix(first, 16).unwrap_or(0),
                _ => {}
            }
        }
        status
    }

    /// Whether it has a handler for this signal.
    pub fn catches(&self, signal: i32) -> bool {
        (1..=64).contains(&signal) && self.caught >> (signal - 1) & 1 == 1
    }

    /// Whether it blocks this signal.
    pub fn blocks(&self, signal: i32) -> bool {
        (1..=64).contains(&signal) && self.blocked >> (signal - 1) & 1 == 1
    }

    /// Whether it handles, ignores or blocks this signal, so that the signal does not act by default.
    pub fn expects(&self, signal: i32) -> bool {
        let expected = self.caught | self.ignored | self.blocked;
        (1..=64).contains(&signal) && expected >> (signal - 1) & 1 == 1
    }

    /// Whether it has ended, even if its parent has not read its exit status yet.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

/// The process of the thread `tid`, which may be a process id; `tid` itself if it cannot be read.
pub fn process_of(tid: u32) -> u32 {
    Status::read(tid).map_or(tid, |status| status.process)
}

/// The ids of a process, or of a zombie, in all its pid namespaces: first that of `/proc`, last the innermost. Empty if the
/// kernel does not report them.
pub fn namespace_pids(pid: u32) -> Vec<u32> {
    let text = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    namespace_pids_in(&String::from_utf8_lossy(&text))
}

fn namespace_pids_in(text: &str) -> Vec<u32> {
    let line = text.lines().find_map(|line| line.strip_prefix("NSpid:"));
    line.into_iter().flat_map(str::split_ascii_whitespace).filter_map(|pid| pid.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_the_kernel_are_told_from_processes() {
        assert!(!Status::is_kernel_thread(std::process::id()) && !Status::is_kernel_thread(0));
        // In a pid namespace, 2 is any process.
        if Status::read(2).is_some_and(|status| status.name == "kthreadd") {
            assert!(Status::is_kernel_thread(2));
        }
    }

    #[test]
    fn status_is_read_whatever_the_name() {
        let status = Status::parse(
            "Name:\tTgid:\t9\nState:\tS (sleeping)\nTgid:\t77\nPPid:\t1\nTracerPid:\t5\nUid:\t1000\t0\t0\t0\n\
             VmSize:\t  100 kB\nSigPnd:\t0000000000000001\nShdPnd:\t0000000000000400\nSigBlk:\t0000000000000004\nSigCgt:\t0000000000000200\nCapEff:\t0000000000080000\nSeccomp:\t2\n\
             NSpid:\t77\t12\t1\nx86_Thread_features:\tshstk wrss \n",
        );
        assert_eq!((status.process, status.parent, status.tracer, status.user), (77, 1, 5, 1000));
        assert_eq!((status.state, status.has_memory, status.confined), (b'S', true, true));
        assert_eq!((status.caught, status.capabilities), (1 << 9, 1 << 19));
        assert_eq!((status.pending, status.blocked), (0x401, 4));
        assert!(Status::parse("Seccomp:\t1\n").confined && !Status::parse("Seccomp:\t0\n").confined);
        assert!(!status.has_ended());
        assert_eq!((status.innermost_pid, status.has_shadow_stack), (1, true));
        assert_eq!(namespace_pids_in("Pid:\t7\nNSpid:\t700\t12\t1\nNSpgid:\t1\n"), [700, 12, 1]);
        assert_eq!(namespace_pids(std::process::id()).first(), Some(&std::process::id()));
        let own = Status::own();
        assert_eq!(own.process, std::process::id());
    }
}
