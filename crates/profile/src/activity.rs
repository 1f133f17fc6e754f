//! What a thread does at one moment, as the kernel tells it.

/// What a thread is doing, beside its stack.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Activity {
    /// On a processor.
    Running,
    /// Ready to run, no processor free.
    Ready,
    /// Blocked in the kernel.
    Asleep {
        /// The system call's name, where it is known.
        call: Option<String>,
        /// Where it was made, where that is known: a thread that has moved since its stack was taken sleeps elsewhere.
        pc: Option<u64>,
    },
    /// Stopped by a signal or a debugger.
    Stopped,
}
