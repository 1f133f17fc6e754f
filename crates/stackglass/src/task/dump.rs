//! What the tasks of this process wait for, by the types of its debug information.

use super::DumpError;
use stackglass_inspect::tasks;
use stackglass_profile::task_dump;
use stackglass_report::TasksText;
use std::fmt;
use std::io::Write;
use std::time::Duration;

/// How long [`dump`] waits for the process that reads types. Those of a large program take a second.
const LIMIT: Duration = Duration::from_secs(30);

/// The tasks of this process, each with its await stack: the chain of `.await`s in which it is suspended.
#[derive(Clone, Debug)]
pub struct TaskDump(task_dump::TaskDump);

impl TaskDump {
    /// The tasks.
    pub fn tasks(&self) -> &[task_dump::DumpedTask] {
        &self.0.tasks
    }

    /// All that is known, for programs.
    pub fn model(&self) -> &task_dump::TaskDump {
        &self.0
    }

    /// Prints tasks with equal await stacks as groups, most first, like `stackglass tasks`.
    pub fn print(&self) {
        // A closed output is ignored.
        let _ = write!(std::io::stdout().lock(), "{self}");
    }
}

/// As `stackglass tasks` prints it, for 80 columns, and then what could not be read and why.
impl fmt::Display for TaskDump {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        let printed = TasksText::new();
        printed.groups(&self.0, &mut text).map_err(|_| fmt::Error)?;
        printed.remarks(&self.0, &mut text).map_err(|_| fmt::Error)?;
        formatter.write_str(&String::from_utf8_lossy(&text))
    }
}

/// Reads what all tasks of this process wait for, as `stackglass tasks PID` does from outside: with locks, their holders and deadlocks.
///
/// Nothing has to be prepared. All tasks of tokio are seen, and named tasks ([`TaskExt::task`](super::TaskExt::task)) of any
/// executor. The crates with the async functions need full debug information (`debug = 2`); others need none. A forked child reads a
/// frozen copy of this process, which is held up for some milliseconds. Nobody else who waits for child processes finds this one.
///
/// Named tasks whose types are not known have no stack, only their name, the place where they were created, and whether they run.
/// A remark says so.
///
/// It waits for the child, which takes some tenths of a second, or more in a large program. So call it on a thread of its own, not in a
/// task.
///
/// ```
/// use std::time::Duration;
///
/// async fn answer() -> u32 {
///     tokio::time::sleep(Duration::from_secs(3600)).await;
///     42
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build()?;
/// let task = runtime.spawn(answer());
/// let dump = stackglass::task::dump()?;
/// println!("{dump}");
/// # task.abort();
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`DumpError`]: there is no child process, or it cannot read this one, for example under a debugger.
pub fn dump() -> Result<TaskDump, DumpError> {
    tasks::read_own(LIMIT).map(TaskDump)
}
