//! Programs with known profiles, to check profilers.
//!
//! There is one file for each kind of work; most figures use [`chain`]. The programs are compiled without frame pointers and
//! with line tables, like programs in production.
#![allow(unsafe_code, reason = "calls the C library")]

pub mod allocate;
pub mod beside;
pub mod bursts;
pub mod chain;
pub mod churn;
pub mod clock;
pub mod deep;
pub mod fib;
pub mod handed_over;
pub mod heaps;
pub mod hostile;
pub mod live_graph;
pub mod measured;
pub mod options;
pub mod parked;
pub mod report;
pub mod small_objects;
pub mod spin;
pub mod text_tree;
pub mod threads;
pub mod waiters;
