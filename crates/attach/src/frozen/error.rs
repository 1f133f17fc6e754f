//! Why a process cannot be copied or stopped: one line for the user, with the remedy.

use crate::perf_refused::PerfRefused;
use crate::refusal::Refusal;
use std::io;

/// Why there is no frozen copy of a process.
#[derive(Debug, thiserror::Error)]
pub enum FreezeError {
    /// The process may not be traced.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Seccomp could end the process at the injected call. Only a process with CAP_SYS_ADMIN that runs under no filter itself
    /// can suspend it.
    #[error(
        "process {pid} ({name}) runs under seccomp, which could end it at the call that copies it: use sudo outside of \
         containers, or --stop to read the process itself while it is stopped"
    )]
    Filtered {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// Its threads redirect their calls to a handler (Syscall User Dispatch), and with it the call that copies it.
    #[error(
        "process {pid} ({name}) redirects its system calls to SIGSYS (Syscall User Dispatch, as Wine does), and would get the call \
         that copies it: try again when it is outside of such code, or use --stop to read it while it is stopped"
    )]
    Redirected {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// Shadow stacks refuse the return frames that protect the process.
    #[error(
        "process {pid} ({name}) uses shadow stacks and cannot be copied: use --stop to read it while it is stopped"
    )]
    ShadowStack {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// Its children are in another pid namespace, which would depend on the copy.
    #[error(
        "process {pid} ({name}) cannot be copied: its children belong to another pid namespace than itself; use --stop to \
         read it while it is stopped"
    )]
    ChildNamespace {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// Its code has no system call or no return from a signal handler that could be borrowed.
    #[error(
        "process {pid} ({name}) cannot be copied: its code has no system call or no return from a signal handler to \
         borrow (some small static programs have none); use --stop to read it while it is stopped"
    )]
    NoCode {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// No thread has room on its stack for the return frames.
    #[error(
        "process {pid} ({name}) cannot be copied: no thread has {bytes} free bytes on a stack of private memory; use --stop to read it \
         while it is stopped"
    )]
    NoRoom {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
        /// Bytes that are needed.
        bytes: usize,
    },
    /// The call that copies the process failed.
    #[error(
        "process {pid} ({name}) cannot be copied: {error} (a limit on processes or memory); use --stop to read it \
         while it is stopped"
    )]
    NotCopied {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
        /// The error of clone(2).
        error: io::Error,
    },
    /// A thread waits for children of all kinds, and would find the task that makes the copy.
    #[error(
        "process {pid} ({name}) waits for all kinds of children (__WALL) and would see the task that copies it: use --stop to \
         read it while it is stopped"
    )]
    WaitsForCopies {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// A monitor of its page faults would be told of the copy.
    #[error(
        "process {pid} ({name}) uses userfaultfd, whose monitor would notice a copy: use --stop to read it while it is \
         stopped"
    )]
    Watched {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// Perf events are refused, and a thread computes.
    #[error(
        "process {pid} runs, and it cannot be stopped without cutting its system calls short, as {refused}: {}; or use \
         --interrupt-calls and its risk",
        refused.ways_out().join("; or ")
    )]
    NoUserStops {
        /// The process.
        pid: u32,
        /// What refuses perf events.
        refused: PerfRefused,
    },
    /// A thread runs its own code and blocks SIGTRAP.
    #[error(
        "thread {tid} of process {pid} runs and blocks all signals, so that it cannot be stopped without interrupting its calls: \
         try again when it sleeps, or use --interrupt-calls and its risk"
    )]
    BlocksSignals {
        /// The process.
        pid: u32,
        /// The thread.
        tid: u32,
    },
    /// A thread did not stop in time.
    #[error("thread {tid} of process {pid} does not stop: try again")]
    NotStopped {
        /// The process.
        pid: u32,
        /// The thread.
        tid: u32,
    },
    /// The call that copies the process did not return in time.
    #[error(
        "process {pid} cannot be copied: clone(2) does not return; use --stop to read it while it is stopped"
    )]
    Stuck {
        /// The process.
        pid: u32,
    },
    /// The process or a thread of it ended or exec'ed meanwhile.
    #[error("process {pid} has ended or executed another program meanwhile")]
    Gone {
        /// The process.
        pid: u32,
    },
    /// A file or a call of this process failed.
    #[error("{what}: {error}")]
    Io {
        /// What failed.
        what: &'static str,
        /// The error.
        error: io::Error,
    },
}

impl FreezeError {
    pub(super) fn cannot_read(error: io::Error) -> FreezeError {
        FreezeError::Io { what: "the memory of the process cannot be read", error }
    }
}
