//! Whether a process answers peeks itself: checked from outside, without sending it a signal.
//!
//! A signal without a handler would kill the program. So two conditions must hold: the mapping that our handler
//! creates (forked children do not have it), and the kernel's list of caught signals.

use foldhash::HashMap;
use stackglass_procfs::{Status, threads};
use stackglass_wire::{PEEK_MARK, confinement};
use std::time::Duration;
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

/// Why a program is not asked.
#[derive(Debug, thiserror::Error)]
pub enum NotAsked {
    /// It has no handler of ours.
    #[error("it does not answer peeks (stackglass::peek::install, `stackglass run`)")]
    NoHandler,
    /// A thread blocks the signal, as programs do that read it by sigwaitinfo(2) or a descriptor.
    #[error("a thread of it blocks SIGUSR1, which it may wait for itself")]
    Blocked,
    /// Threads run, and it cannot be seen whether they wait for the signal.
    #[error("it cannot be seen whether a thread of it waits for SIGUSR1: its threads hardly get a CPU")]
    Uncertain,
    /// A filter may end a program at the return from its handler.
    #[error("a seccomp filter confines it, which may not allow the return from a signal handler")]
    Confined,
    /// The kernel has refused the signal.
    #[error("{0}")]
    Signal(#[from] io::Error),
}

/// Whether the signal can be sent without harm, but for the calls that it interrupts.
///
/// # Errors
/// Why not.
pub fn may_be_asked(pid: u32) -> Result<(), NotAsked> {
    if !carries_our_handler(pid) {
        return Err(NotAsked::NoHandler);
    }
    // What confines the first process as well is the filter of a container, which allows the return.
    let of_container = confinement(&fs::read("/proc/1/status").unwrap_or_default());
    let mut seen: HashMap<u32, SeenThread> = HashMap::default();
    for check in 0..MOST_CHECKS {
        if check > 0 {
            std::thread::sleep(if check < CHECKS { BETWEEN } else { BETWEEN_MORE });
        }
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Err(NotAsked::NoHandler) };
        let tids = tasks.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let mut are_certain = true;
        for tid in tids.filter(|tid| !threads::is_ours(pid, *tid)) {
            let before = CallOfThread::read(pid, tid);
            let Ok(text) = fs::read(format!("/proc/{pid}/task/{tid}/status")) else { continue };
            if ![0, of_container].contains(&confinement(&text)) {
                return Err(NotAsked::Confined);
            }
            if before == CallOfThread::WaitsForSignals || blocks(tid) {
                return Err(NotAsked::Blocked);
            }
            let thread = seen.entry(tid).or_default();
            let is_certain = thread.observe(pid, tid);
            match CallOfThread::read(pid, tid) {
                CallOfThread::WaitsForSignals => return Err(NotAsked::Blocked),
                CallOfThread::Other if before == CallOfThread::Other => {}
                _ => are_certain &= is_certain,
            }
        }
        if are_certain && check + 1 >= CHECKS {
            return Ok(());
        }
    }
    Err(NotAsked::Uncertain)
}

/// What was seen of a thread that is not asleep in a call. Its mask may be the one that sigtimedwait(2) sets while it waits: until a thread
/// that was woken there gets a CPU, the kernel shows no call and no blocked signal. So the thread must have run twice without a
/// sleep, before and after its mask is read.
#[derive(Default)]
struct SeenThread {
    /// How often it went to sleep, and how long it ran.
    last: Option<(u64, u64)>,
    /// In how many checks in a row it had run since the one before, without a sleep.
    runs: u32,
}

impl SeenThread {
    /// Whether its mask is known to be its own.
    fn observe(&mut self, pid: u32, tid: u32) -> bool {
        let sleeps = Status::read(tid).map(|status| status.voluntary_switches);
        let now = sleeps.zip(threads::Files::new(pid, tid).stat().map(|stat| stat.ran));
        match (self.last, now) {
            (Some((sleeps, ran)), Some((sleeps_now, ran_now))) if sleeps == sleeps_now => {
                self.runs += u32::from(ran_now > ran);
            }
            _ => self.runs = 0,
        }
        self.last = now;
        self.runs >= 2
    }
}

/// Whether a thread blocks the signal. For a moment, every thread blocks all signals: in our own handler, and while it creates
/// another thread or ends.
fn blocks(tid: u32) -> bool {
    for _ in 0..MOST_MOMENTS {
        match Status::read(tid) {
            Some(status) if status.blocked == EVERYTHING => std::thread::sleep(MOMENT),
            status => return status.is_some_and(|status| status.blocks(SIGNAL)),
        }
    }
    true
}

/// All signals but SIGKILL and SIGSTOP, which cannot be blocked.
const EVERYTHING: u64 = !(1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1));
/// How often a thread that blocks everything is checked again, and the time between two checks.
const MOST_MOMENTS: u32 = 50;
const MOMENT: Duration = Duration::from_micros(200);

/// Checks of a program before it is asked, and the time between two: a thread may block the signal now and then.
const CHECKS: u32 = 3;
const BETWEEN: Duration = Duration::from_millis(1);
/// Checks while masks of threads that run are uncertain, and the time between two: a tick of the kernel's account.
const MOST_CHECKS: u32 = 60;
const BETWEEN_MORE: Duration = Duration::from_millis(5);

/// Where a thread is.
#[derive(PartialEq, Eq)]
enum CallOfThread {
    /// It sleeps in sigwaitinfo(2) or the like: the kernel does not count what it waits for as blocked meanwhile.
    WaitsForSignals,
    /// It sleeps in another call, or for a page.
    Other,
    /// It runs, or is ready to run.
    Running,
}

impl CallOfThread {
    fn read(pid: u32, tid: u32) -> CallOfThread {
        let call = fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).unwrap_or_default();
        match call.split(' ').next().and_then(|number| number.parse::<i64>().ok()) {
            Some(libc::SYS_rt_sigtimedwait) => CallOfThread::WaitsForSignals,
            Some(_) => CallOfThread::Other,
            None => CallOfThread::Running,
        }
    }
}

/// Requests a peek, if the program [may be asked](may_be_asked).
///
/// # Errors
/// Why not, or what kill(2) says.
pub fn ask(pid: u32) -> Result<(), NotAsked> {
    may_be_asked(pid)?;
    // SAFETY: a system call without pointers.
    match unsafe { libc::kill(pid as libc::pid_t, SIGNAL) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error().into()),
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
