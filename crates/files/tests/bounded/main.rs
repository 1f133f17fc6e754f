//! Memory that reading takes, counted by an allocator of their own.

mod hostile;
mod long;
#[path = "../../../../fuzz/checks/memory.rs"]
mod memory;
#[path = "../support/mod.rs"]
mod support;
