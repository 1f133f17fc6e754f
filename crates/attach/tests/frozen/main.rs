//! Frozen copies of real programs: what they contain, and that the programs notice nothing.
#![cfg(target_arch = "x86_64")]
#![allow(unsafe_code, reason = "signals and limits of test programs")]

mod ends;
mod given_back;
mod killed;
mod moment;
mod pages;
mod program;
mod refused;
mod sampled;
mod signals;
mod threads;
mod unnoticed;
