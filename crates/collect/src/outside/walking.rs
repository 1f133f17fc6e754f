//! Working memory of stack walks, allocated once.

use stackglass_unwind::Scratch;
use stackglass_wire::MAX_FRAMES;

/// Bytes of a stack that are read at once.
pub(super) const FETCH: usize = 8 << 10;

/// Buffers that every walk overwrites.
pub(super) struct Walking {
    pub scratch: Box<Scratch>,
    /// The frames of the last walk, leaf first.
    pub frames: Vec<u64>,
    /// A piece of a stack, as it was read from the process.
    pub fetched: Vec<u8>,
}

impl Walking {
    pub(super) fn new() -> Walking {
        Walking { scratch: Box::default(), frames: vec![0; MAX_FRAMES], fetched: vec![0; FETCH] }
    }
}
