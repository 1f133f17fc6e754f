//! Programs whose profile is known beforehand: what a profiler says of them can be checked.
//!
//! One file for each kind of work; [`chain`] is the one most figures are measured with. Compiled
//! without frame pointers and with line tables, as programs in production are.
#![allow(unsafe_code, reason = "calls the C library")]

pub mod allocate;
pub mod beside;
pub mod bursts;
pub mod chain;
pub mod churn;
pub mod clock;
pub mod deep;
pub mod fib;
pub mod hostile;
pub mod measured;
pub mod options;
pub mod parked;
pub mod report;
pub mod shares;
pub mod sleepers;
pub mod spin;
pub mod threads;
pub mod variants;
pub mod waiters;
