//! From a frozen process to the await stacks of its async tasks.
//!
//! An `async` function that waits is a value in memory: an enum whose variant says at which `.await` it is suspended, with the
//! awaited future inside. Debug information describes these types ([`Coroutines`](stackglass_layouts::Coroutines)), so
//! a stack of `.await`s is read from memory alone. Nothing is executed in the process.
//!
//! [`tasks`] finds the tasks of tokio's runtimes by the runtimes' own lists, and [`tasks_and_polls`] also the threads that poll them.
//! `walk` follows one future, `held` finds the guards of locks that a future holds, `needs` is what a task waits for, and
//! `deadlocks` finds the tasks that wait for each other. `wrapped` adds tasks of other executors, whose futures the program has
//! wrapped by the crate `stackglass`. All of them add to what is `found`.
//!
//! Memory of the process is hostile input: each pointer may be wrong, each list may be endless.
#![forbid(unsafe_code)]

mod blocking_guards;
mod deadlocks;
mod ends;
mod found;
mod futures;
mod holding_branch;
mod holdings;
mod join_set;
mod joins;
mod known_wrapped;
mod lock_guards;
mod locks;
mod names;
mod needs;
mod opaque_futures;
mod process;
mod task_headers;
mod task_names;
mod tokio;
mod values;
mod walk;
mod walker;
mod wrapped;
mod wrapped_task;
mod wrapper;

pub use blocking_guards::{VariableGuard, of_variables as guards_of_variables};
pub use process::Process;
pub use stackglass_drop_code::DropStop;
pub use tokio::{
    FoundRoot, Poll, PollCode, RootFuture, SeenTask, SeenTasks, TaskReader, drop_stops, tasks,
    tasks_and_polls,
};
pub use wrapped::{SeenWrapped, WrappedReader};
pub use wrapped_task::WrappedTask;
