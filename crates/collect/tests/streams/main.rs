//! Streams become recordings: known ones, hostile ones, and those of this process.

mod hostile;
mod in_process;
mod interning;
#[path = "../support/mod.rs"]
mod support;
