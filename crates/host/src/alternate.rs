//! Alternate signal stacks, and who may be signalled although it has a small one.
//!
//! A thread has one alternate stack, for all handlers that ask for it. While a handler of the program runs there, the
//! kernel puts the frame of our signal on top of it, and our handler needs its part: [`enough_for_two`]. Where
//! that does not fit, what lies below the stack is overwritten, or the program killed. The hooks of the preload library make
//! our signal wait until such a handler is done. Without hooks a thread with a smaller stack is not signalled in a
//! program that has such handlers. Handlers of faults are no reason: they run when the program is about to end, or in
//! runtimes with large stacks of their own; our handler takes no stack where it finds less room than it may need.

use crate::action::{self, Action};
use crate::handler::HANDLER_BYTES;
use crate::program_actions;
use core::sync::atomic::{AtomicBool, Ordering::*};

/// What a handler of the program's may use besides.
const PROGRAM_BYTES: usize = 4096;
/// The kernel's frame where it does not tell its size (before 5.14), with AVX-512.
const FRAME_BYTES: usize = 3584;

/// The program has, or had, a handler that runs on the alternate stack and is not one of a fault.
static USED: AtomicBool = AtomicBool::new(false);

/// Asks the kernel for the program's handlers: for processes without hooks, which would block our signal in them.
pub fn look_for_handlers() {
    let runs_there = |action: Action| action.flags & libc::SA_ONSTACK as u64 != 0;
    if program_actions::handlers().any(|(number, action)| runs_there(action) && !action::is_fault(number)) {
        USED.store(true, Release);
    }
}

/// Bytes of an alternate stack on which our signal may interrupt a handler of the program's.
pub fn enough_for_two() -> usize {
    // SAFETY: no pointers.
    let frame = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize;
    let frame = if frame == 0 { FRAME_BYTES } else { frame };
    2 * frame + HANDLER_BYTES + PROGRAM_BYTES
}

/// Whether a thread with an alternate stack of so many bytes (0 for none) may be signalled now.
pub fn may_signal(bytes: usize) -> bool {
    bytes == 0 || !USED.load(Acquire) || bytes >= enough_for_two()
}
