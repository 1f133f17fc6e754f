//! Why a sample has no stack, or an incomplete one.
//!
//! 0 is a complete stack. Numbers below 100 are the unwinder's reasons why a walk ended early. The numbers from 100 on
//! are defined here: no stack was taken, or its outer part is missing ([`DEEP`]).

/// The thread blocks the signal.
pub const BLOCKED: u8 = 100;
/// The kernel refused the signal, the thread did not answer it, or the program took it over.
pub const NOT_TAKEN: u8 = 101;
/// The thread ended before a stack was taken.
pub const ENDED: u8 = 102;
/// Not a stack: an async task that waits. The words are the time it has waited, in ns, and the number of the question for its
/// await stack, 0 for none.
pub const WAITS: u8 = 103;
/// The thread was in the kernel, which may not be sampled.
pub const IN_KERNEL: u8 = 104;
/// The thread ran for less than one period, or was never seen asleep.
pub const SHORT: u8 = 105;
/// The thread was starting or ending a program and had no user registers.
pub const BETWEEN_PROGRAMS: u8 = 106;
/// The stack is deeper than the part that the kernel copies, and its outer part has changed.
pub const DEEP: u8 = 107;
/// The kernel took a stack, but it was lost before it could be read.
pub const LOST: u8 = 108;
/// A page of the stack was not in memory at that moment.
pub const ABSENT: u8 = 109;
/// The thread ran in a system call that had not ended when sampling did.
pub const IN_CALL: u8 = 110;
