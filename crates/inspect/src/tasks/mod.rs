//! The async tasks of another process, each with its await stack.
//!
//! - [`read()`] copies the process ([`stackglass_attach::frozen`]), and reads the copy ([`stackglass_awaits`]). Where no copy can be had, the
//!   process itself can be read while it stands still. If tasks are polled, their threads are looked at again after 100 ms
//!   (`long_poll`), and get names for their frames (`polling_threads`). `pool`: the tasks that the program has named.
//! - [`LiveTasks`] reads the tasks of one process again and again.
//! - A program reads its own tasks by a forked child (`own`, `encoded`), and what waits while it runs by itself ([`AwaitStacks`]),
//!   in a copy until types are known ([`WaitCopies`]).

mod encoded;
mod error;
mod live;
mod long_poll;
mod own;
mod own_waits;
mod polling_threads;
pub(crate) mod pool;
mod read;
mod wait_copies;

pub use error::TasksError;
pub use live::{LiveTasks, may_have_tasks};
pub use own::{OwnTasksError, read_own};
pub use own_waits::{AwaitStacks, NoAwaitStacks};
pub use read::{TasksOptions, of_image, read};
pub use wait_copies::{WaitCopies, WaitCopy};
