//! How a walk ended: complete, or cut for a reason that is counted and shown to the user.

/// A finished walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Frames written, innermost first.
    pub len: usize,
    /// Whether the outermost frame was reached.
    pub end: End,
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// At the outermost frame of the thread.
    Complete,
    /// Before that.
    Cut(Cut),
}

/// Why a stack is not complete. The numbers are stable; zero is kept for "complete".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cut {
    /// More frames than there was room for.
    Depth = 1,
    /// An address in no loaded module: code made at run time, or a module not yet seen. Also when steps
    /// by frame pointer led on from there, since frames may be missing.
    NoModule = 2,
    /// The module says nothing about the address. Also when steps by frame pointer led on.
    NoRule = 3,
    /// A word of the stack could not be read.
    UnreadableStack = 4,
    /// The caller's stack pointer would not be above the callee's.
    StackDidNotGrow = 5,
    /// `rbp` was needed, not known and not to be found by the prologue.
    RbpUnknown = 6,
    /// The rule is of a kind that is not supported, or counts from an unknown register.
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

    /// The reverse of [`End::code`]; `None` for numbers of later versions.
    pub const fn from_code(code: u8) -> Option<End> {
        Some(match code {
            0 => End::Complete,
            1 => End::Cut(Cut::Depth),
            2 => End::Cut(Cut::NoModule),
            3 => End::Cut(Cut::NoRule),
            4 => End::Cut(Cut::UnreadableStack),
            5 => End::Cut(Cut::StackDidNotGrow),
            6 => End::Cut(Cut::RbpUnknown),
            7 => End::Cut(Cut::RuleNotSupported),
            _ => return None,
        })
    }
}
