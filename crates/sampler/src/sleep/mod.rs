//! The stack of a sleeping thread.

pub(crate) mod read;
pub(crate) mod reader;
