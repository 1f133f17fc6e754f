//! Why a process cannot be sampled, or its heap read: one line for the user, with the remedy.

use super::perf_refused::PerfRefused;
use super::tracer_lock::AttachMode;
use std::io;

/// Why a process cannot be sampled.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It does not exist.
    #[error("there is no process {pid}")]
    NoProcess {
        /// The requested id.
        pid: u32,
    },
    /// It is ending, or a zombie: its parent has not read its exit status yet.
    #[error("process {pid} ({name}) has ended already")]
    Ended {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// It is this process.
    #[error("process {pid} is stackglass itself")]
    Own {
        /// Its id.
        pid: u32,
    },
    /// It is a kernel thread.
    #[error("{pid} ({name}) is a thread of the kernel, not a program")]
    Kernel {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// Another process traces it.
    #[error(
        "process {pid} ({name}) is traced by {tracer_name} (pid {tracer}), and only one can: end that one first"
    )]
    Traced {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
        /// Process id of the tracer.
        tracer: u32,
        /// Name of the tracer.
        tracer_name: String,
    },
    /// It belongs to another user.
    #[error("process {pid} ({name}) belongs to {owner}: use sudo, or become that user")]
    OtherUser {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
        /// The owner.
        owner: String,
    },
    /// This process is root, but has no CAP_SYS_PTRACE.
    #[error(
        "reading process {pid} ({name}) needs the capability CAP_SYS_PTRACE: start this container with \
         --cap-add SYS_PTRACE (Docker, Podman), or add SYS_PTRACE to securityContext.capabilities (Kubernetes)"
    )]
    NoCapability {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// It is not dumpable: it called prctl(2), or has more rights than its user.
    #[error(
        "process {pid} ({name}) is not accessible to its own user (it has more privileges, or has called \
         prctl(PR_SET_DUMPABLE)): use sudo"
    )]
    NotDumpable {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// Yama allows only its ancestors.
    #[error(
        "process {pid} ({name}) may be read only by its ancestors (kernel.yama.ptrace_scope is 1): use sudo, \
         or sudo sysctl kernel.yama.ptrace_scope=0, or start the program with stackglass record"
    )]
    YamaParents {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// Yama allows only root.
    #[error("process {pid} ({name}) may be read only by root (kernel.yama.ptrace_scope is 2): use sudo")]
    YamaRoot {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// Yama allows nothing.
    #[error(
        "this machine allows no process to read another one until it is rebooted (kernel.yama.ptrace_scope is 3): start \
         the program with stackglass record instead"
    )]
    YamaNobody,
    /// Another Stackglass traces it.
    #[error(
        "process {pid} ({name}) is being read by another stackglass, and only one can trace it: wait for its \
         end"
    )]
    Taken {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
        /// How long the other one stays attached.
        mode: AttachMode,
    },
    /// A seccomp filter forbids ptrace to this process.
    #[error(
        "a seccomp filter forbids ptrace here: start this container with --security-opt seccomp=unconfined or \
         --cap-add SYS_PTRACE, or read process {pid} ({name}) from outside of it"
    )]
    Filtered {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// It is a 32-bit program.
    #[error("process {pid} ({name}) is a 32-bit program: only 64-bit programs can be read")]
    Narrow {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// The kernel has no statistics of threads (`schedstat`).
    #[error("this kernel has no statistics of threads (no /proc/{pid}/schedstat; CONFIG_SCHED_INFO)")]
    NoAccount {
        /// Its id.
        pid: u32,
    },
    /// No rule that is visible here.
    #[error(
        "process {pid} ({name}) may not be read, although the usual rules would allow it: a security module \
         (AppArmor, SELinux) or a sandbox forbids it; try from outside of the sandbox"
    )]
    Forbidden {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// Another error.
    #[error("process {pid} ({name}) cannot be read: {error}")]
    Other {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
        /// The error.
        error: io::Error,
    },
    /// Perf events are refused, and nothing else samples a running thread without interrupting it.
    #[error("{0}, so running threads cannot be sampled without interrupting their system calls")]
    NoPerf(PerfRefused),
    /// The sampling thread cannot be started.
    #[error("no thread can be started: {0}")]
    Thread(io::Error),
}
