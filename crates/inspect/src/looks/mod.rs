//! Looks at all tasks of a process, again and again: await stacks, and the stacks of threads that poll.
//!
//! ```text
//! look: frozen copy -> lists of tasks -> await stacks, stacks of threads that poll -> names -> messages to the recording
//! ```
//!
//! - `program`: whether a program's tasks can be read. `looker`: the thread that looks. `rate`: when. `weights`: for how much time a
//!   look stands.
//! - `view`: the process at one moment. `types`: what is kept from look to look. `named`: the tasks that the program has named. `look`:
//!   what one look sees. `idle`: whether anything ran. How stacks are made of what is seen: [`task_stacks`](crate::task_stacks).
//! - `names`: the names that this needs.

mod idle;
mod look;
mod looker;
mod named;
mod names;
mod program;
mod rate;
mod types;
mod view;
mod weights;

pub use look::{SeenStack, TaskName};
pub use looker::{Command, Looker, Message};
pub use program::TaskTypes;
