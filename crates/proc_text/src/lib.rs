//! Texts of `/proc`, read without allocating.
//!
//! The sampler inside a program and the readers of other processes get these texts in different ways: with calls of their own, or
//! by the standard library. What the texts say is here: whether a thread has run ([`SchedStat`]), whether it sleeps and where
//! ([`ThreadState`]), and [`numbers`].
//!
//! Nothing here makes a system call or allocates, so that it can run inside any program.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), no_std)]

pub mod numbers;
mod thread_state;

pub use thread_state::{Call, SchedStat, Sleep, SleepPlace, ThreadState};
