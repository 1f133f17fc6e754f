//! Blocks of real processes that use glibc's malloc, compared with those that a preloaded library counts.

#[path = "../../../../fuzz/checks/glibc_heap.rs"]
mod hostile;
#[path = "../support/made_up.rs"]
mod made_up;
#[path = "../../../../fuzz/checks/memory.rs"]
mod memory;
#[path = "../support/mod.rs"]
mod support;

mod process;
mod versions;
mod walks;
