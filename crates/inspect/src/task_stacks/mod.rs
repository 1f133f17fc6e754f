//! Stacks of tasks in samples, from inside and from outside of the program: polls and waits of a task are in one tree.
//!
//! - `flatten`: from await stacks to stacks. `polled`: from the stack of a thread to that of the task it polls. `passed_on`: what is
//!   left out of it. `calls`: the names that this needs.

mod calls;
pub mod flatten;
mod passed_on;
pub mod polled;

pub use calls::{Call, Calls, Code};
pub use flatten::{AwaitStack, WaitStacks};
pub use polled::TaskFrame;
