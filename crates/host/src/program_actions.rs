//! The program's own signal handlers.
//!
//! For a signal that has the profiler's handler, the program's action is stored here. For any other signal
//! the kernel is asked.

use crate::action::{Action, is_fault, is_peek_handler, kernel_action};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};

/// The program's own action for a signal that has the profiler's handler.
pub(crate) struct ProgramAction {
    handler: AtomicUsize,
    flags: AtomicU64,
    mask: AtomicU64,
}

/// One for each signal from 1 to 31.
static ACTIONS: [ProgramAction; 32] = [const { ProgramAction::none() }; 32];
/// The signals that have the profiler's handler, one bit each. A handler is never removed.
static SIGNALS: AtomicU64 = AtomicU64::new(0);

/// The program's own action, if the signal has the profiler's handler.
pub(crate) fn program_action_of(signal: i32) -> Option<&'static ProgramAction> {
    if has_our_handler(signal) { ACTIONS.get(signal as usize) } else { None }
}

/// Stores the action that the profiler's handler is about to replace; `None` for signals that cannot have it.
pub(crate) fn replace(signal: i32, before: Option<Action>) -> Option<&'static ProgramAction> {
    let program = ACTIONS.get(signal as usize)?;
    if let Some(before) = before {
        program.store(before);
    }
    SIGNALS.fetch_or(1 << signal, AcqRel);
    Some(program)
}

/// Whether the profiler's handler is installed in place of the program's for this signal.
pub fn has_our_handler(signal: i32) -> bool {
    (1..32).contains(&signal) && SIGNALS.load(Acquire) >> signal & 1 == 1
}

impl ProgramAction {
    const fn none() -> ProgramAction {
        ProgramAction { handler: AtomicUsize::new(0), flags: AtomicU64::new(0), mask: AtomicU64::new(0) }
    }

    pub(crate) fn load(&self) -> Action {
        Action::new(self.handler.load(Acquire), self.flags.load(Acquire), self.mask.load(Acquire))
    }

    pub(crate) fn store(&self, action: Action) {
        // No handler while the flags change: a handler must never run with the flags of another.
        self.handler.store(libc::SIG_IGN, Release);
        self.flags.store(action.flags, Release);
        self.mask.store(action.mask, Release);
        self.handler.store(action.handler, Release);
    }
}

/// Whether the program now has its own handler that may interrupt a system call.
pub fn program_has_handlers() -> bool {
    handlers().any(|(number, _)| !is_fault(number))
}

/// The program's own handlers, with the numbers of their signals. Left out are signals 32 and 33, which the C library
/// reserves for itself.
pub(crate) fn handlers() -> impl Iterator<Item = (i32, Action)> {
    (1..=64).filter(|number| !(32..=33).contains(number)).filter_map(|number| {
        let action = match program_action_of(number) {
            Some(own) => own.load(),
            None => kernel_action(number, None).ok()?,
        };
        (action.has_handler() && !is_peek_handler(action.handler)).then_some((number, action))
    })
}
