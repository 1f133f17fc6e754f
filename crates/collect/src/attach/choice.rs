//! How running threads are made to show their stacks.

/// The means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Driver {
    /// Each is made to stand for some ten microseconds (ptrace).
    Ptrace,
}
