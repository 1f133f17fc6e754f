//! Alternate signal stacks, and whether a thread with a small one may be signalled.
//!
//! A thread has one alternate stack, for all handlers that ask for it. If the signal arrives while a handler of the program
//! runs there, the kernel puts another frame on top, and the profiler's handler needs room as well ([`enough_for_two`]).
//! Without that room, memory below the stack is overwritten, or the program is killed. The preload library's hooks block
//! the signal while such a handler runs. Without hooks, a thread with a smaller stack is not signalled if the
//! program has such handlers. Handlers of faults do not count: they run when the program is about to end, or in runtimes
//! with large alternate stacks. The profiler's handler takes no stack if it finds too little room.

use crate::action::{self, Action};
use crate::handler::HANDLER_BYTES;
use crate::program_actions;
use core::sync::atomic::{AtomicBool, Ordering::*};

/// Bytes that a handler of the program may use.
const PROGRAM_BYTES: usize = 4096;
/// Bytes of the kernel's frame with AVX-512, for kernels that do not tell (before 5.14).
const FRAME_BYTES: usize = 3584;

/// The program has, or had, a handler that runs on the alternate stack and is not for a fault.
static USED: AtomicBool = AtomicBool::new(false);

/// Asks the kernel for the program's handlers. For processes without hooks.
pub fn look_for_handlers() {
    let runs_there = |action: Action| action.flags & libc::SA_ONSTACK as u64 != 0;
    if program_actions::handlers().any(|(number, action)| runs_there(action) && !action::is_fault(number)) {
        USED.store(true, Release);
    }
}

/// Bytes of an alternate stack on which the signal may interrupt a handler of the program.
pub fn enough_for_two() -> usize {
    // SAFETY: no pointers.
    let frame = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize;
    let frame = if frame == 0 { FRAME_BYTES } else { frame };
    2 * frame + HANDLER_BYTES + PROGRAM_BYTES
}

/// Whether a thread with an alternate stack of so many bytes (0 for none) may be signalled.
pub fn may_signal(bytes: usize) -> bool {
    bytes == 0 || !USED.load(Acquire) || bytes >= enough_for_two()
}
