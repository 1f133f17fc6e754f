//! A thread that begins to trace another one may wait for an exec, which waits for that very thread.
//!
//! An exec of a program with several threads holds the lock that PTRACE_SEIZE takes (`cred_guard_mutex`), and waits until
//! whoever traces its other threads has heard of their end. The tracing thread cannot hear it while it is in PTRACE_SEIZE;
//! but any other thread of its process can (wait(2) without `__WNOTHREAD`). So one that never waits for long looks now and
//! then whether the tracing thread has been in that call for too long, and hears the ends for it. Source: ptrace(2),
//! kernel/ptrace.c and fs/exec.c of Linux.

use super::clock::monotonic;
use super::ptrace;
use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Mutex, PoisonError};

/// A seizing that takes longer waits for something, ns.
const LONG: u64 = 3_000_000;

/// What the tracing thread tells of itself.
#[derive(Default)]
pub(super) struct Seizing {
    /// Since when it is in PTRACE_SEIZE, 0: it is not.
    since: AtomicU64,
    traced: Mutex<BTreeSet<u32>>,
}

impl Seizing {
    /// Begins to trace a thread.
    ///
    /// # Errors
    /// As [`ptrace::seize`].
    pub(super) fn seize(&self, tid: u32) -> io::Result<()> {
        self.since.store(monotonic().max(1), Release);
        let seized = ptrace::seize(tid);
        self.since.store(0, Release);
        if seized.is_ok() {
            self.traced.lock().unwrap_or_else(PoisonError::into_inner).insert(tid);
        }
        seized
    }

    /// The end of a traced thread was heard.
    pub(super) fn ended(&self, tid: u32) {
        self.traced.lock().unwrap_or_else(PoisonError::into_inner).remove(&tid);
    }

    /// Hears the ends of traced threads, but of the first one (`pid`), where the tracing thread seems to wait for ever. To be
    /// called by another thread, again and again.
    pub(super) fn help(&self, pid: u32) {
        let since = self.since.load(Acquire);
        if since == 0 || monotonic().saturating_sub(since) < LONG {
            return;
        }
        let traced = self.traced.lock().unwrap_or_else(PoisonError::into_inner).clone();
        traced.into_iter().filter(|tid| *tid != pid).for_each(ptrace::hear_end);
    }
}
