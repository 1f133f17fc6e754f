//! State that this process has inherited and changes for itself: ignored SIGPIPE and SIGCHLD, and closed standard
//! streams. A started program gets it unchanged.
//!
//! Before `main`, Rust's runtime ignores SIGPIPE (and gives children the default), and opens `/dev/null` for closed
//! streams. The launcher itself needs SIGCHLD. So a constructor, which runs earlier, records the original state.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Signals whose disposition is recorded.
const SIGNALS: [i32; 2] = [libc::SIGPIPE, libc::SIGCHLD];
/// A bit for each of these signals that was ignored.
static IGNORED: AtomicU8 = AtomicU8::new(0);
/// A bit for each standard stream that was closed.
static CLOSED: AtomicU8 = AtomicU8::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = look;

extern "C" fn look() {
    for (bit, signal) in SIGNALS.into_iter().enumerate() {
        // SAFETY: an all-zero sigaction is a value, which the kernel fills.
        let ignored = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut action) == 0
                && action.sa_sigaction == libc::SIG_IGN
        };
        IGNORED.fetch_or(u8::from(ignored) << bit, Relaxed);
    }
    for stream in 0..3 {
        // SAFETY: a system call without pointers.
        let closed = unsafe { libc::fcntl(stream, libc::F_GETFD) } < 0;
        CLOSED.fetch_or(u8::from(closed) << stream, Relaxed);
    }
}

/// Whether this process was started without standard output.
pub fn stdout_was_closed() -> bool {
    CLOSED.load(Relaxed) >> 1 & 1 == 1
}

/// Restores the state in a child before its exec. No allocation, no lock.
pub(super) fn restore() {
    for (bit, signal) in SIGNALS.into_iter().enumerate() {
        if IGNORED.load(Relaxed) >> bit & 1 == 1 {
            // SAFETY: a call without pointers; no handler is installed.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
    }
    for stream in (0..3).filter(|stream| CLOSED.load(Relaxed) >> stream & 1 == 1) {
        // SAFETY: a standard stream of this child, which its only thread does not use.
        unsafe { libc::close(stream) };
    }
}
