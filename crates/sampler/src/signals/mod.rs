//! The sampling signal of a running thread: sending it, and reading the stack that its handler has written.

pub(crate) mod attribution;
pub(crate) mod call_ends;
pub(crate) mod held_back;
pub(crate) mod hits;
pub(crate) mod mask_releases;
pub(crate) mod open_timers;
pub(crate) mod pending;
pub(crate) mod receive;
pub(crate) mod send;
pub(crate) mod stack_bounds;
pub(crate) mod thread_timers;
pub(crate) mod timers;
