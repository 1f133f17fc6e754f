//! Async tasks: their names, and the wall-time profile that looks at them.

pub(crate) mod choice;
pub(crate) mod names;
pub(crate) mod walltime;
