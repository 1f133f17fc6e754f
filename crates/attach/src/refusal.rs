//! Why a process cannot be sampled: one line for the user, with the remedy.

use super::tracer_lock::AttachMode;
use std::io;

/// Why a process cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// There is none.
    #[error("there is no process {pid}")]
    NoProcess {
        /// The id that was given.
        pid: u32,
    },
    /// Its status waits to be read by its parent; nothing of it runs.
    #[error("process {pid} ({name}) has ended already")]
    Ended {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// We, or a part of us.
    #[error("process {pid} is stackglass itself")]
    Own {
        /// Its id.
        pid: u32,
    },
    /// A thread of the kernel.
    #[error("{pid} ({name}) is a thread of the kernel, not a program")]
    Kernel {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// It is traced.
    #[error(
        "process {pid} ({name}) is traced by {tracer_name} (pid {tracer}), and only one can: end that one first, \
         or use --driver perf where that is allowed"
    )]
    Traced {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
        /// Who traces it.
        tracer: u32,
        /// The name of that.
        tracer_name: String,
    },
    /// Another user's.
    #[error("process {pid} ({name}) belongs to {owner}: use sudo, or become that user")]
    OtherUser {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
        /// Whose it is.
        owner: String,
    },
    /// We are root, but without the capability.
    #[error(
        "the capability CAP_SYS_PTRACE is missing to look at process {pid} ({name}): start this container with \
         --cap-add SYS_PTRACE (Docker, Podman), or add SYS_PTRACE to securityContext.capabilities (Kubernetes)"
    )]
    NoCapability {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// The program has said so, or has more rights than its user.
    #[error(
        "process {pid} ({name}) is closed to its own user (it has more rights than its user, or has called \
         prctl(PR_SET_DUMPABLE)): use sudo"
    )]
    NotDumpable {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// Yama allows parents only.
    #[error(
        "process {pid} ({name}) may be looked at by its parents only (kernel.yama.ptrace_scope is 1): use sudo, \
         or sudo sysctl kernel.yama.ptrace_scope=0, or start the program with stackglass record"
    )]
    YamaParents {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// Yama allows root only.
    #[error("process {pid} ({name}) may be looked at by root only (kernel.yama.ptrace_scope is 2): use sudo")]
    YamaRoot {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// Yama allows nobody.
    #[error(
        "nobody may look at other processes until this machine starts anew (kernel.yama.ptrace_scope is 3): start \
         the program with stackglass record instead"
    )]
    YamaNobody,
    /// Another stackglass traces it.
    #[error(
        "process {pid} ({name}) is being looked at by another stackglass, and only one can trace it: wait for its \
         end, or use --driver perf"
    )]
    Taken {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
        /// How long the other means to mode.
        mode: AttachMode,
    },
    /// A filter forbids the call to us.
    #[error(
        "a seccomp filter forbids ptrace here: start this container with --security-opt seccomp=unconfined or \
         --cap-add SYS_PTRACE, or look at process {pid} ({name}) from outside of it"
    )]
    Filtered {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// Not for 64-bit x86.
    #[error("process {pid} ({name}) is a 32-bit program, whose stacks cannot be read: only 64-bit ones can")]
    Narrow {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// The kernel keeps no account of threads.
    #[error("this kernel does not tell what threads run (no /proc/{pid}/schedstat; CONFIG_SCHED_INFO)")]
    NoAccount {
        /// Its id.
        pid: u32,
    },
    /// None of the rules that can be seen.
    #[error(
        "process {pid} ({name}) may not be looked at, although the usual rules would allow it: a security module \
         (AppArmor, SELinux) or the sandbox around us forbids it; look from outside of that"
    )]
    Forbidden {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// Something else.
    #[error("process {pid} ({name}) cannot be looked at: {error}")]
    Other {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// No thread to look from.
    #[error("no thread can be started: {0}")]
    Thread(io::Error),
}
