//! The system calls in which a thread waits for another one.

use crate::sleepers::Sleeper;

/// Operations of futex(2), without flags.
const FUTEX_WAIT: u64 = 0;
const FUTEX_LOCK_PI: u64 = 6;
const FUTEX_WAIT_BITSET: u64 = 9;
const FUTEX_LOCK_PI2: u64 = 13;
/// Flags of operations.
const FUTEX_PRIVATE: u64 = 128;
const FUTEX_CLOCK_REALTIME: u64 = 256;

/// A wait for a word in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FutexWait {
    /// Address of the word.
    pub address: u64,
    /// The value that it had when the wait began. Waits for locks with priority inheritance have none.
    pub value: Option<u32>,
    /// Only threads of the process wait for it.
    pub is_private: bool,
    /// The wait ends after some time.
    pub has_timeout: bool,
}

/// A kind of locks in `/proc/locks`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FileLockKind {
    /// Of flock(2).
    Flock,
    /// Of fcntl(2), which belong to a process.
    Posix,
}

/// A call in which a thread waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Blocking {
    /// For a word in memory.
    Futex(FutexWait),
    /// For a lock of a file.
    File { descriptor: u64, kind: FileLockKind },
}

impl Blocking {
    /// The call of a thread, if it is one of these.
    pub fn of(sleeper: &Sleeper) -> Option<Blocking> {
        let arguments = sleeper.call.arguments;
        match sleeper.call.number {
            libc::SYS_futex => {
                let [address, operation, value, timeout, ..] = arguments;
                let operation = operation & u64::from(u32::MAX);
                let value = match operation & !(FUTEX_PRIVATE | FUTEX_CLOCK_REALTIME) {
                    FUTEX_WAIT | FUTEX_WAIT_BITSET => Some(value as u32),
                    FUTEX_LOCK_PI | FUTEX_LOCK_PI2 => None,
                    _ => return None,
                };
                let is_private = operation & FUTEX_PRIVATE != 0;
                Some(Blocking::Futex(FutexWait { address, value, is_private, has_timeout: timeout != 0 }))
            }
            libc::SYS_flock => Some(Blocking::File { descriptor: arguments[0], kind: FileLockKind::Flock }),
            libc::SYS_fcntl if arguments[1] as i32 == libc::F_SETLKW => {
                Some(Blocking::File { descriptor: arguments[0], kind: FileLockKind::Posix })
            }
            _ => None,
        }
    }
}
