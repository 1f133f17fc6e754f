//! The activity of a thread at one moment, as reported by the kernel.

/// What a thread is doing.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Activity {
    /// On a CPU.
    Running,
    /// It could run, and waits for a CPU.
    Ready,
    /// Blocked in the kernel.
    Asleep {
        /// Name of the system call, if known.
        call: Option<String>,
        /// Program counter of the call, if known. It tells whether the thread has moved since its stack was taken.
        pc: Option<u64>,
    },
    /// Stopped by a signal or a debugger.
    Stopped,
}
