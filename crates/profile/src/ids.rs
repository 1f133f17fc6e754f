//! Newtypes for the numbers of the model, so that they cannot be confused.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub $inner);

        impl From<$inner> for $name {
            fn from(n: $inner) -> $name { $name(n) }
        }
    };
}

id! {
    /// A *lookup* address in a process: the return address minus one for callers, the pc itself for the innermost frame and
    /// for frames interrupted by a signal.
    Address(u64)
}
id! {
    /// A duration or a CLOCK_MONOTONIC time in nanoseconds.
    Nanos(u64)
}
id! {
    /// Index into [`Recording::processes`](crate::Recording::processes).
    ProcessIndex(u32)
}
id! {
    /// Number of a thread in a recording, from 1 in order of start over all processes. Thread `n` is
    /// `recording.threads[n - 1]`.
    ThreadNumber(u32)
}
id! {
    /// Id of an async task. A thread without tasks is its own task. Never zero in reports.
    TaskId(u64)
}
id! {
    /// Index into [`Recording::modules`](crate::Recording::modules).
    ModuleIndex(u32)
}
id! {
    /// An interned code location; see [`Stacks`](crate::Stacks).
    LocationId(u32)
}
id! {
    /// An interned stack: the trie node of its innermost frame. 0 is the empty stack.
    StackId(u32)
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}", self.0)
    }
}

impl Nanos {
    /// Seconds as a floating-point number.
    pub fn seconds(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// Milliseconds as a floating-point number.
    pub fn millis(self) -> f64 {
        self.0 as f64 * 1e-6
    }
}
