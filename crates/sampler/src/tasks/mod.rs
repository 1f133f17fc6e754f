//! Async tasks: their names, and the wall-time profile that samples them. `waits`: questions for their await stacks.

pub(crate) mod choice;
pub(crate) mod names;
pub mod waits;
pub(crate) mod walltime;
