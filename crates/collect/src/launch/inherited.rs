//! State that this process has inherited and changes for itself: ignored signals, and closed standard streams. A started
//! program gets it unchanged.
//!
//! Before `main`, Rust's runtime ignores SIGPIPE (and gives children the default), and opens `/dev/null` for closed
//! streams. The launcher itself needs SIGCHLD. With the first thread, the C library catches signals of its own. So a
//! constructor, which runs earlier, records the original state.

use std::ptr;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Signals whose disposition is recorded. The last three are those of the C library, which has no name for them (glibc's
/// `nptl/descr.h`, musl's `pthread_impl.h`).
const SIGNALS: [i32; 5] = [libc::SIGPIPE, libc::SIGCHLD, 32, 33, 34];
/// A bit for each of these signals that was ignored.
static IGNORED: AtomicU8 = AtomicU8::new(0);
/// A bit for each standard stream that was closed.
static CLOSED: AtomicU8 = AtomicU8::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = note_inherited;

/// `struct sigaction` of the kernel on 64-bit machines.
#[repr(C)]
#[derive(Default)]
struct Action {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

extern "C" fn note_inherited() {
    for (bit, signal) in SIGNALS.into_iter().enumerate() {
        let mut action = Action::default();
        // SAFETY: the kernel fills the action. The C library's function would refuse its own signals.
        let read = unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                ptr::null::<Action>(),
                &raw mut action,
                size_of::<u64>(),
            )
        };
        let ignored = read == 0 && action.handler == libc::SIG_IGN;
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
    restore_signals();
    for stream in (0..3).filter(|stream| CLOSED.load(Relaxed) >> stream & 1 == 1) {
        // SAFETY: a standard stream of this child, which its only thread does not use.
        unsafe { libc::close(stream) };
    }
}

/// Restores ignored signals alone, likewise.
pub(super) fn restore_signals() {
    let ignore = Action { handler: libc::SIG_IGN, ..Action::default() };
    for (bit, signal) in SIGNALS.into_iter().enumerate() {
        if IGNORED.load(Relaxed) >> bit & 1 == 1 {
            // SAFETY: the kernel reads the action; no handler is installed.
            unsafe {
                libc::syscall(
                    libc::SYS_rt_sigaction,
                    signal,
                    &raw const ignore,
                    ptr::null_mut::<Action>(),
                    size_of::<u64>(),
                )
            };
        }
    }
}
