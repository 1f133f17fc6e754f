//! Working memory of walks, and what a walk has found.

use stackglass_unwind::Scratch;
use stackglass_wire::MAX_FRAMES;

/// Bytes of a stack that are fetched at once.
pub(super) const FETCH: usize = 8 << 10;

/// Working memory.
pub(super) struct Walking {
    pub scratch: Box<Scratch>,
    /// The frames of the last walk.
    pub frames: Vec<u64>,
    /// A part of a stack.
    pub fetched: Vec<u8>,
}

/// The stack that a walk has left in [`Walking::frames`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Walked {
    pub len: usize,
    /// Why the stack is incomplete, 0 if it is complete.
    pub cut: u8,
}

impl Default for Walking {
    fn default() -> Walking {
        Walking { scratch: Box::default(), frames: vec![0; MAX_FRAMES], fetched: vec![0; FETCH] }
    }
}
