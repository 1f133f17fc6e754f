//! The two ways to get the stack of a running thread.

/// How the stack of a running thread is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Driver {
    /// The thread is stopped for some tens of microseconds (ptrace).
    Ptrace,
    /// The kernel copies registers and stack while the thread goes on (perf events).
    Perf,
}
