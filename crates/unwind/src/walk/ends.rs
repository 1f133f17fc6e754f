//! Results of a walk: complete, or cut for a reason that is counted and shown to the user.

/// A finished walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Frames written, innermost first.
    pub len: usize,
    /// Whether the outermost frame was reached.
    pub end: End,
}

impl Walk {
    /// Whether a walk from the program counter and the stack pointer alone has stopped for want of another register. The
    /// registers of a signal or a stop show the rest of the stack.
    pub const fn lacks_registers(&self) -> bool {
        matches!(
            self.end,
            End::Cut(Cut::RbpUnknown | Cut::RuleNotSupported | Cut::StackDidNotGrow | Cut::UnreadableStack)
        )
    }
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// At the outermost frame of the thread.
    Complete,
    /// Before the outermost frame.
    Cut(Cut),
}

/// Why a stack is not complete. The numbers are part of recordings and never change; zero is "complete".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cut {
    /// More frames than fit.
    Depth = 1,
    /// An address in no loaded module: code generated at run time, or a module not seen so far. Also where steps by frame
    /// pointer went on from there, since frames may be missing.
    NoModule = 2,
    /// No rule for the address in its module. Also where steps by frame pointer went on.
    NoRule = 3,
    /// A word of the stack could not be read.
    UnreadableStack = 4,
    /// The caller's stack pointer would not be above the callee's.
    StackDidNotGrow = 5,
    /// `rbp` was needed, unknown, and not recovered from the prologue.
    RbpUnknown = 6,
    /// The rule is of an unsupported kind, or depends on an unknown register.
    RuleNotSupported = 7,
}

impl End {
    /// Zero for complete, else the number of the [`Cut`].
    pub const fn code(self) -> u8 {
        match self {
            End::Complete => 0,
            End::Cut(cut) => cut as u8,
        }
    }
}
