//! Blocks of real processes that use glibc's malloc, compared with those that a preloaded library counts.

#[path = "../support/mod.rs"]
mod support;

mod process;
mod walks;
