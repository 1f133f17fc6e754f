//! What this process was started with and does not keep: SIGPIPE and SIGCHLD that are ignored, and closed standard
//! streams. A program that we start gets them as we found them.
//!
//! Before `main`, Rust's runtime ignores SIGPIPE, which a child then has at its default, and opens `/dev/null` for
//! streams that are closed; SIGCHLD is needed here. So all are looked at by a constructor, which runs before.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Signals that are looked at.
const SIGNALS: [i32; 2] = [libc::SIGPIPE, libc::SIGCHLD];
/// A bit for each of them that was ignored.
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
        // SAFETY: takes numbers.
        let closed = unsafe { libc::fcntl(stream, libc::F_GETFD) } < 0;
        CLOSED.fetch_or(u8::from(closed) << stream, Relaxed);
    }
}

/// In a child before its exec: makes all of it as it was found. No allocation, no lock.
pub(super) fn restore() {
    for (bit, signal) in SIGNALS.into_iter().enumerate() {
        if IGNORED.load(Relaxed) >> bit & 1 == 1 {
            // SAFETY: takes numbers; no handler is installed.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
    }
    for stream in (0..3).filter(|stream| CLOSED.load(Relaxed) >> stream & 1 == 1) {
        // SAFETY: a standard stream of this child alone, which its one thread does not use.
        unsafe { libc::close(stream) };
    }
}
