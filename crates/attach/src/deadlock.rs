//! Breaks a deadlock between PTRACE_SEIZE and execve(2).
//!
//! An exec of a program with several threads holds `cred_guard_mutex`, which PTRACE_SEIZE needs, and waits until the tracer
//! has reaped the program's other threads. A tracing thread that is inside PTRACE_SEIZE cannot reap them, so both wait
//! for ever. Any other thread of the tracing process can reap them (wait(2) without `__WNOTHREAD`). The thread that drains
//! samples therefore checks whether the tracing thread has been inside that call for too long, and reaps for it.
//! Source: ptrace(2); kernel/ptrace.c and fs/exec.c of Linux.

use super::clock::monotonic;
use super::ptrace;
use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Mutex, PoisonError};

/// PTRACE_SEIZE takes longer than this only while it waits for an exec, ns.
const LONG: u64 = 3_000_000;

/// State of the tracing thread, or of one that it waits for, shared with other threads.
#[derive(Default)]
pub(super) struct Seizing {
    /// When the thread entered PTRACE_SEIZE; 0 while it is outside.
    since: AtomicU64,
    traced: Mutex<BTreeSet<u32>>,
}

impl Seizing {
    /// Starts to trace a thread.
    ///
    /// # Errors
    /// Those of [`ptrace::seize`].
    pub(super) fn seize(&self, tid: u32) -> io::Result<()> {
        let seized = self.try_to_seize(tid);
        if seized.is_ok() {
            self.traced.lock().unwrap_or_else(PoisonError::into_inner).insert(tid);
        }
        seized
    }

    /// Traces a thread until the calling thread ends. The tracing thread waits for that end and reaps no tracee meanwhile.
    ///
    /// # Errors
    /// Those of [`ptrace::seize`].
    pub(super) fn try_to_seize(&self, tid: u32) -> io::Result<()> {
        self.since.store(monotonic().max(1), Release);
        let seized = ptrace::seize(tid);
        self.since.store(0, Release);
        seized
    }

    /// A traced thread has ended and was reaped.
    pub(super) fn ended(&self, tid: u32) {
        self.traced.lock().unwrap_or_else(PoisonError::into_inner).remove(&tid);
    }

    /// Reaps traced threads that have ended, except the main thread (`pid`), while the tracing thread is stuck.
    /// Another thread calls this regularly.
    pub(super) fn help(&self, pid: u32) {
        let since = self.since.load(Acquire);
        if since == 0 || monotonic().saturating_sub(since) < LONG {
            return;
        }
        let traced = self.traced.lock().unwrap_or_else(PoisonError::into_inner).clone();
        traced.into_iter().filter(|tid| *tid != pid).for_each(ptrace::reap_ended);
    }
}
