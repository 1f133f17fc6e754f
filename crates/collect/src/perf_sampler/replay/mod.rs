//! Tests without a kernel: the records of real programs, taken once, are applied again to the process table.
//!
//! A trace has the bytes of the rings, in the order of drains, and each answer of the running system ([`System`](super::system::System)).
//! So the tests here depend on no clock: the same bytes always give the same recording. What is expected of it was said by the program
//! itself, by its own clocks, or by the kernel's account.
//!
//! - [`traced`]: the system that writes a trace while a program runs, or answers from one. [`trace`]: what a trace has. [`stored`]: its bytes.
//! - [`programs`]: which programs there are traces of. [`record`]: takes their traces anew.
//! - [`play`]: applies a trace. [`facts`]: what a recording says, and what the program said.
//! - [`truth`], [`stacks`], [`losses`]: the recordings agree with the programs.
//! - [`altered`], [`damaged`]: what follows from other drains, from lost records and from damaged ones.

mod altered;
mod damaged;
mod facts;
mod losses;
mod play;
mod programs;
mod record;
mod stacks;
mod stored;
mod trace;
mod traced;
mod truth;

pub(super) use stored::Stored as Answer;
pub(super) use trace::Step;
pub(super) use traced::{TracedFile, TracedSystem, find_file};
