//! Tables and walks that need nothing from the process: what handles signals or forks is a program of its own.

mod call_sites;
mod hostile_tables;
mod landing_pads;
#[path = "../../../../fuzz/checks/memory.rs"]
mod memory;
mod oracle_rows;
mod own_walk;
mod stack_cache;
#[path = "../support/mod.rs"]
mod support;
#[path = "../../../../fuzz/checks/unwind_tables.rs"]
mod unwind_tables;
