//! What the kernel says of a thread: whether it has run, whether it sleeps, and where.
//!
//! The files are in `/proc/PID/task/TID`. `schedstat` is exact for a thread that is off the CPU: its first number changes
//! when the thread has run, its third when the thread got a CPU, however briefly. So a sleeping thread with
//! unchanged numbers has not moved. `syscall` tells where a thread sleeps (proc_pid_syscall(5)).

use crate::numbers::{decimal, hexadecimal};

/// The three numbers of `schedstat`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SchedStat {
    /// Time on CPUs, ns.
    pub ran: u64,
    /// Time ready to run without a CPU, ns, without a wait that still lasts.
    pub waited: u64,
    /// How often the thread got a CPU.
    pub turns: u64,
}

impl SchedStat {
    /// Reads the text of the file.
    pub fn parse(text: &[u8]) -> Option<SchedStat> {
        let mut numbers = fields(text).map(decimal);
        Some(SchedStat { ran: numbers.next()??, waited: numbers.next()??, turns: numbers.next()?? })
    }
}

/// The system call that a thread is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call {
    /// Its number.
    pub number: i64,
    /// Its arguments. Those it does not take hold any value; those that are not known are `u64::MAX`.
    pub arguments: [u64; 6],
}

/// The program counter and the stack pointer with which a thread sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SleepPlace {
    /// Program counter.
    pub pc: u64,
    /// Stack pointer.
    pub sp: u64,
}

/// A thread that sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sleep {
    /// Where it sleeps.
    pub place: SleepPlace,
    /// In which system call; `None` in a page fault, or when it is stopped.
    pub call: Option<Call>,
}

/// The state of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThreadState {
    /// On a CPU, or ready to be.
    Running,
    /// Blocked in the kernel, or stopped.
    Asleep(Sleep),
    /// It cannot be read, or the thread has ended.
    Unknown,
}

impl ThreadState {
    /// Reads the text of `syscall`: `running`, or numbers. The first one is the call's (-1 for none); the last two are the stack
    /// pointer and the program counter.
    pub fn parse(text: &[u8]) -> ThreadState {
        let mut all = [&b""[..]; 9];
        let mut count = 0;
        for field in fields(text) {
            let Some(place) = all.get_mut(count) else { return ThreadState::Unknown };
            *place = field;
            count += 1;
        }
        let address = |field| prefixed(field).filter(|address| *address != 0);
        match &all[..count] {
            [b"running"] => ThreadState::Running,
            [number, arguments @ .., sp, pc] => match (address(sp), address(pc)) {
                (Some(sp), Some(pc)) => {
                    let place = SleepPlace { pc, sp };
                    ThreadState::Asleep(Sleep { place, call: call(number, arguments) })
                }
                _ => ThreadState::Unknown,
            },
            _ => ThreadState::Unknown,
        }
    }
}

fn call(number: &[u8], arguments: &[&[u8]]) -> Option<Call> {
    let number = i64::try_from(decimal(number)?).ok()?;
    let mut given = [u64::MAX; 6];
    for (to, from) in given.iter_mut().zip(arguments) {
        *to = prefixed(from).unwrap_or(u64::MAX);
    }
    Some(Call { number, arguments: given })
}

fn fields(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty())
}

/// A hexadecimal number that begins with `0x`.
fn prefixed(text: &[u8]) -> Option<u64> {
    hexadecimal(text.strip_prefix(b"0x")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_read() {
        assert_eq!(SchedStat::parse(b"12 34 5\n"), Some(SchedStat { ran: 12, waited: 34, turns: 5 }));
        for bad in [&b""[..], b"12 34\n", b"a b c", b"99999999999999999999 1 1", b"\xff"] {
            assert_eq!(SchedStat::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn states_are_read() {
        assert_eq!(ThreadState::parse(b"running\n"), ThreadState::Running);
        let text = b"202 0x7f 0x80 0x0 0x0 0x0 0x7ffd 0x7fffa0 0x7f12ab\n";
        let call = Some(Call { number: 202, arguments: [0x7f, 0x80, 0, 0, 0, 0x7ffd] });
        let place = SleepPlace { pc: 0x7f12ab, sp: 0x7fffa0 };
        assert_eq!(ThreadState::parse(text), ThreadState::Asleep(Sleep { place, call }));
        let stopped = ThreadState::Asleep(Sleep { place, call: None });
        assert_eq!(ThreadState::parse(b"-1 0x7fffa0 0x7f12ab\n"), stopped);
        let ten = b"1 0x1 0x1 0x1 0x1 0x1 0x1 0x1 0x1 0x1";
        for bad in [&b""[..], b"\n", b"-1", b"-1 0x0 0x0", b"zz 0xzz", b"1 2", b"\xff \xff \xff", ten] {
            assert_eq!(ThreadState::parse(bad), ThreadState::Unknown, "{bad:?}");
        }
    }
}
