//! Takes snapshots of all tasks of a process: await stacks, and the stacks of threads that poll.
//!
//! ```text
//! snapshot: process at one moment -> tasks -> await stacks, stacks of threads that poll -> names -> messages to the recording
//! ```
//!
//! - `program`: whether a program's tasks can be read. `sampler`: the thread that takes snapshots. `rate`: when. `weights`: for how much
//!   time a snapshot stands.
//! - `view`: the process at one moment. `types`: what is kept between snapshots. `named`: the tasks that the program has named.
//!   `snapshot`: what all tasks do at one moment. `idle`: whether anything ran. How stacks are made of what is seen:
//!   [`task_stacks`](crate::task_stacks).
//! - `names`: the names that this needs.

mod idle;
mod named;
mod names;
mod program;
mod rate;
mod sampler;
mod snapshot;
mod types;
mod view;
mod weights;

pub use program::TaskTypes;
pub use sampler::{Command, Message, TaskSampler};
pub use snapshot::{SeenStack, TaskName};
