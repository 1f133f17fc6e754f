//! What the launcher tells every process of a session: written once, but for `state` and `beat`.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// Name of the session page's file in the session folder.
pub const SESSION_FILE: &str = "session";

/// `b"SGSESS01"`: the first word of a session page.
const MAGIC: u64 = u64::from_le_bytes(*b"SGSESS01");

/// The launcher's orders, mapped by every profiled process (one page, shared, read by the guests).
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
    /// Bytes of stream each process makes (a power of two).
    pub stream_bytes: AtomicU64,
    /// Process id of the launcher.
    pub launcher: AtomicU32,
    /// Not zero: follow children (fork, and the images they exec).
    pub follow_children: AtomicU32,
    /// Process id of the only process to profile when children are not followed.
    pub only_pid: AtomicU32,
    /// Number of the signal that running threads get, 0 for SIGURG.
    pub signal: AtomicU32,
    /// Not zero: a wall-time profile, one look at a task at each tick.
    pub walltime: AtomicU64,
    /// Changes at least once a second while the launcher lives. A guest that sees it stand
    /// still for five seconds stops sampling.
    pub beat: AtomicU64,
}

/// What the guests shall do now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum SessionState {
    /// Be ready, do not sample yet (`--delay-start`).
    Waiting = 0,
    /// Sample.
    Sampling = 1,
    /// Stop sampling for good (buffer full, `--duration` over, launcher leaving).
    Stopped = 2,
    /// Sample nothing; count the peeks that are asked for by signal in [`Requests`](crate::Requests) (`stackglass run`).
    Ready = 3,
}

impl SessionState {
    /// The state with this number; anything unknown means [`SessionState::Stopped`].
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
        }
    }

    /// Marks the page as complete: version first, magic last.
    pub fn publish(&self) {
        use core::sync::atomic::Ordering::*;
        self.version.store(crate::VERSION, Relaxed);
        self.magic.store(MAGIC, Release);
    }

    /// True when the page is complete and of this version.
    pub fn is_ready(&self) -> bool {
        use core::sync::atomic::Ordering::*;
        self.magic.load(Acquire) == MAGIC && self.version.load(Relaxed) == crate::VERSION
    }
}

impl Default for SessionPage {
    fn default() -> Self {
        SessionPage::new()
    }
}
