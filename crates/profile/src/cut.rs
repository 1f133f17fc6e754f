//! Numbers of the reasons for which a stack is not complete.
//!
//! Walks (`stackglass-unwind`) and streams (`stackglass-wire`) use the same numbers; `stackglass-collect` asserts that.
//! The texts are in `stackglass-report`.

/// Why a stack does not reach its root. Recordings hold the numbers, which therefore never change.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Cut(pub u8);

impl Cut {
    /// The walk found more frames than fit.
    pub const DEPTH: Cut = Cut(1);
    /// The walk came to an address in no known module.
    pub const NO_MODULE: Cut = Cut(2);
    /// The walk came to an address without unwind rule.
    pub const NO_RULE: Cut = Cut(3);
    /// The walk came to a word of the stack that cannot be read.
    pub const UNREADABLE_STACK: Cut = Cut(4);
    /// The walk came to a caller whose stack pointer is not above the callee's.
    pub const STACK_DID_NOT_GROW: Cut = Cut(5);
    /// The walk needed an `rbp` that is unknown.
    pub const RBP_UNKNOWN: Cut = Cut(6);
    /// The walk came to an unwind rule of an unsupported kind.
    pub const RULE_NOT_SUPPORTED: Cut = Cut(7);
    /// No stack: the thread blocks the signal.
    pub const BLOCKED: Cut = Cut(100);
    /// No stack: the signal was refused, not answered, or taken over by the program.
    pub const NOT_TAKEN: Cut = Cut(101);
    /// No stack: the thread ended first.
    pub const ENDED: Cut = Cut(102);
    /// No stack: the thread was in the kernel, which may not be sampled.
    pub const IN_KERNEL: Cut = Cut(104);
    /// No stack: the thread ran for less than one period, or was never seen asleep.
    pub const SHORT: Cut = Cut(105);
    /// No stack: the thread was starting or ending a program.
    pub const BETWEEN_PROGRAMS: Cut = Cut(106);
    /// The stack is deeper than the part that the kernel copies, and its outer part has changed.
    pub const DEEP: Cut = Cut(107);
    /// No stack: the kernel took it, but it was lost before it could be read.
    pub const LOST: Cut = Cut(108);
    /// A page of the stack was not in memory at that moment.
    pub const ABSENT: Cut = Cut(109);
    /// No stack: the thread ran in a system call that had not ended when sampling did.
    pub const IN_CALL: Cut = Cut(110);

    /// All reasons.
    pub const ALL: [Cut; 17] = [
        Cut::DEPTH,
        Cut::NO_MODULE,
        Cut::NO_RULE,
        Cut::UNREADABLE_STACK,
        Cut::STACK_DID_NOT_GROW,
        Cut::RBP_UNKNOWN,
        Cut::RULE_NOT_SUPPORTED,
        Cut::BLOCKED,
        Cut::NOT_TAKEN,
        Cut::ENDED,
        Cut::IN_KERNEL,
        Cut::SHORT,
        Cut::BETWEEN_PROGRAMS,
        Cut::DEEP,
        Cut::LOST,
        Cut::ABSENT,
        Cut::IN_CALL,
    ];
}
