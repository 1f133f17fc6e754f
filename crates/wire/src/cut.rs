//! Reasons why a sample has no complete stack.
//!
//! Numbers below 100 are the unwinder's (why a walk ended early, 0 for a complete stack); the ones here
//! stand in samples without any frame.

/// The thread blocks the signal.
pub const BLOCKED: u8 = 100;
/// The signal was refused by the kernel, not answered, or taken away from us by the program.
pub const NOT_TAKEN: u8 = 101;
/// The thread ended before a stack was taken.
pub const ENDED: u8 = 102;
/// Not a stack at all: an async task that waits. The only word is how long it has, ns.
pub const WAITS: u8 = 103;
/// The thread was in the kernel, which cannot be sampled with the rights that there are.
pub const IN_KERNEL: u8 = 104;
/// The thread ran for less than one period, or was never seen asleep.
pub const SHORT: u8 = 105;
/// The thread was starting or ending a program, and had no registers of its own.
pub const BETWEEN_PROGRAMS: u8 = 106;
/// Deeper than what the kernel copies, and changing meanwhile.
pub const DEEP: u8 = 107;
