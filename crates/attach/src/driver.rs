//! The ways to get the stack of a running thread.

/// What sampling by ptrace does to a program, in words.
pub const RISK: &str =
    "ptrace interrupts the system calls of running threads: reads and writes may come back short";

/// How the stack of a running thread is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Driver {
    /// The thread is stopped for some tens of microseconds (ptrace). A system call that it is in is interrupted.
    Ptrace,
    /// The kernel copies registers and stack while the thread goes on (perf events).
    Perf,
    /// Not at all: only sleeping threads have stacks. Nobody is stopped, and no permission but that to read is needed.
    Asleep,
}
