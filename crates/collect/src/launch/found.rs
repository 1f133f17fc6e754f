//! What this process was started with and Rust's runtime changes before `main`: SIGPIPE that is ignored, and closed
//! standard streams. A program that we start gets them as we found them.
//!
//! The runtime ignores SIGPIPE, and a child has it at its default; it opens `/dev/null` for streams that are closed. So
//! both are looked at by a constructor, which runs before.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

static PIPE_IGNORED: AtomicBool = AtomicBool::new(false);
/// A bit for each standard stream that was closed.
static CLOSED: AtomicU8 = AtomicU8::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: an all-zero sigaction is a value, which the kernel fills; fcntl takes numbers.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGPIPE, std::ptr::null(), &mut action) == 0 {
            PIPE_IGNORED.store(action.sa_sigaction == libc::SIG_IGN, Relaxed);
        }
        let closed =
            (0..3).filter(|fd| libc::fcntl(*fd, libc::F_GETFD) < 0).fold(0, |bits, fd| bits | 1 << fd);
        CLOSED.store(closed, Relaxed);
    }
}

/// In a child before its exec: makes both as they were found. No allocation, no lock.
pub(super) fn restore() {
    let closed = CLOSED.load(Relaxed);
    // SAFETY: the child has one thread, and its streams are nobody else's; both calls take numbers.
    unsafe {
        if PIPE_IGNORED.load(Relaxed) {
            libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        }
        for fd in (0..3).filter(|fd| closed & 1 << fd != 0) {
            libc::close(fd);
        }
    }
}
