//! The stack of an asked task, as the program has sent it.

/// Addresses of calls, innermost first. The last is in the function that polls the task.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AskedStack {
    /// Lookup addresses.
    pub frames: Vec<u64>,
    /// The waker was woken here, not cloned.
    pub is_wake: bool,
}
