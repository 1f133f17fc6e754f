//! The working memory of a walk, so that a signal handler's own stack stays small.

use crate::registers::Registers;
use crate::rules::Interpreter;

/// What a walk needs beyond a few hundred bytes of stack. One for each walk in progress; it may be used
/// again and carries nothing from one walk to the next. Made in a `static`, a mapping or a mailbox.
pub struct Scratch {
    pub(crate) interpreter: Interpreter,
    pub(crate) registers: Registers,
    pub(crate) caller: Registers,
}

impl Scratch {
    /// Empty working memory.
    pub const fn new() -> Scratch {
        Scratch {
            interpreter: Interpreter::new(),
            registers: Registers::new(0, 0, None),
            caller: Registers::new(0, 0, None),
        }
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Scratch::new()
    }
}

// A mailbox sets this much aside.
const _: () = assert!(size_of::<Scratch>() <= 4096);
