//! Frozen copies of real programs: what they contain, and that the programs notice nothing.
#![cfg(target_arch = "x86_64")]

mod moment;
mod program;
