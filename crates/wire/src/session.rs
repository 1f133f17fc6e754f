//! The page from which the processes of a session read its settings. Only `state` and `beat` change.

use crate::ready;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// Name of the session page's file in the session folder.
pub const SESSION_FILE: &str = "session";

/// `b"SGSESS01"`: the first word of a session page.
const MAGIC: u64 = u64::from_le_bytes(*b"SGSESS01");

/// The settings of a session, written by the launcher and mapped by every profiled process.
///
/// A value of all zeros is a page that is not ready.
#[repr(C)]
pub struct SessionPage {
    magic: AtomicU64,
    version: AtomicU32,
    /// A [`SessionState`] as its number.
    pub state: AtomicU32,
    /// Time between two ticks in nanoseconds.
    pub delay_ns: AtomicU64,
    /// Bytes of the stream of each process (a power of two).
    pub stream_bytes: AtomicU64,
    /// Process id of the launcher.
    pub launcher: AtomicU32,
    /// Not zero: children are profiled as well.
    pub follow_children: AtomicU32,
    /// Process id of the only profiled process if children are not.
    pub only_pid: AtomicU32,
    /// Signal for running threads; 0: SIGURG.
    pub signal: AtomicU32,
    /// Not zero: a wall-time profile, which samples one task at each tick.
    pub walltime: AtomicU64,
    /// Changes at least once a second while the launcher lives. A process stops sampling when it has not changed for
    /// five seconds.
    pub beat: AtomicU64,
    /// Number of the recording of allocations that is on, 0 for none. May change at any moment.
    pub allocations: AtomicU32,
    /// Which of them, as a [`HeapSampling`](crate::heap::HeapSampling). 0: this session never records allocations.
    pub allocation_sampling: AtomicU32,
    /// Parameter of that sampling.
    pub allocation_parameter: AtomicU64,
    /// Not zero: the library records allocations only; the launcher samples from outside.
    pub sampled_from_outside: AtomicU32,
    /// Process id of the command that has turned the recording of allocations on in a session that only waits
    /// (`stackglass run`). The launcher turns it off when that process has ended.
    pub allocation_asker: AtomicU32,
    /// Whether the program waits at its end, because its heap is read: [`HEAP_NOT_READ`], [`HEAP_TO_BE_READ`] or
    /// [`HEAP_BEING_READ`].
    pub heap_at_exit: AtomicU32,
    /// The launcher's own [`confinement`].
    pub confinement: AtomicU32,
}

/// How far a thread is confined by seccomp(2), from its `status` file (proc_pid_status(5)), as a number: the mode (0 none, 1
/// strict, 2 filters), and above it the number of filters (since Linux 5.9).
pub fn confinement(status: &[u8]) -> u32 {
    let number = |name: &[u8]| {
        let value = status.split(|b| *b == b'\n').find_map(|line| line.strip_prefix(name))?;
        core::str::from_utf8(value.trim_ascii()).ok()?.parse::<u32>().ok()
    };
    number(b"Seccomp:").unwrap_or(0) & 3 | number(b"Seccomp_filters:").unwrap_or(0).min(1 << 29) << 2
}

/// The program ends without waiting.
pub const HEAP_NOT_READ: u32 = 0;
/// The program waits at its end for the launcher to notice.
pub const HEAP_TO_BE_READ: u32 = 1;
/// The launcher reads the heap, and the program waits for that.
pub const HEAP_BEING_READ: u32 = 2;

/// What the processes of a session do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum SessionState {
    /// Wait for sampling to start (`--delay-start`).
    Waiting = 0,
    /// Sample.
    Sampling = 1,
    /// No more sampling: the buffer is full, `--duration` is over, or the launcher ends.
    Stopped = 2,
    /// No sampling; requests for peeks are counted in [`Requests`](crate::Requests) (`stackglass run`).
    Ready = 3,
}

impl SessionState {
    /// The state with this number; [`SessionState::Stopped`] for unknown numbers.
    pub fn from_number(n: u32) -> SessionState {
        match n {
            0 => SessionState::Waiting,
            1 => SessionState::Sampling,
            3 => SessionState::Ready,
            _ => SessionState::Stopped,
        }
    }
}

impl SessionPage {
    /// A page that is not ready yet (all zeros). Set the fields, then [`SessionPage::publish`].
    pub const fn new() -> SessionPage {
        SessionPage {
            magic: AtomicU64::new(0),
            version: AtomicU32::new(0),
            state: AtomicU32::new(0),
            delay_ns: AtomicU64::new(0),
            stream_bytes: AtomicU64::new(0),
            launcher: AtomicU32::new(0),
            follow_children: AtomicU32::new(0),
            only_pid: AtomicU32::new(0),
            signal: AtomicU32::new(0),
            walltime: AtomicU64::new(0),
            beat: AtomicU64::new(0),
            allocations: AtomicU32::new(0),
            allocation_sampling: AtomicU32::new(0),
            allocation_parameter: AtomicU64::new(0),
            sampled_from_outside: AtomicU32::new(0),
            allocation_asker: AtomicU32::new(0),
            heap_at_exit: AtomicU32::new(0),
            confinement: AtomicU32::new(0),
        }
    }

    /// Marks the page as complete.
    pub fn publish(&self) {
        ready::publish(&self.magic, &self.version, MAGIC);
    }

    /// True when the page is complete and of this version.
    pub fn is_ready(&self) -> bool {
        ready::is_ready(&self.magic, &self.version, MAGIC)
    }
}

impl Default for SessionPage {
    fn default() -> Self {
        SessionPage::new()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::confinement;
    use std::format;

    #[test]
    fn another_filter_makes_another_number() {
        let status = |mode, filters| {
            confinement(
                format!("Name:\tx\nSeccomp:\t{mode}\nSeccomp_filters:\t{filters}\nSpeculation:\tx\n")
                    .as_bytes(),
            )
        };
        assert_eq!(confinement(b"Name:\tx\n"), 0);
        assert_eq!(status(0, 0), 0);
        assert_eq!(status(2, 1), status(2, 1));
        assert_ne!(status(2, 1), status(2, 2));
        assert_ne!(status(1, 0), status(0, 0));
    }
}
