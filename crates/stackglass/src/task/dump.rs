//! What tasks wait for, told by the program itself.

use stackglass_collect::asked::{AskedModule, AskedSaid, AskedStack, AskedTask, AskedTasks};
use stackglass_profile::task_dump;
use stackglass_report::TasksText;
use stackglass_sampler::task::asked::{self, NotAsked, Said};
use std::fmt;
use std::io::Write;
use std::time::Duration;

/// How long [`dump`] waits for answers.
const LIMIT: Duration = Duration::from_secs(1);

/// Why there is no dump.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DumpError {
    /// Another thread asks the tasks.
    #[error("another thread asks the tasks of this process")]
    Busy,
    /// The kernel refused memory.
    #[error("the kernel refused memory for asking tasks")]
    NoMemory,
}

/// Lets [`dump`] ask tasks from now on, and `stackglass tasks PID --ask`, for which the program also calls
/// [`peek::install`](crate::peek::install). It is false if the kernel refuses memory.
///
/// Each named task then keeps a clone of the waker of its last poll, which costs some nanoseconds a poll. A few executors, such as
/// the thread pool of the crate `futures`, drop a task when its last waker is dropped. They keep such a task, which
/// nothing wakes any more: so this is a choice of its own.
pub fn enable_dumps() -> bool {
    asked::keep_wakers()
}

/// The named tasks of this process, each with its await stack: the chain of `.await`s in which it is suspended.
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

/// As `stackglass tasks` prints it, for 80 columns.
impl fmt::Display for TaskDump {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        TasksText::new().groups(&self.0, &mut text).map_err(|_| fmt::Error)?;
        formatter.write_str(&String::from_utf8_lossy(&text))
    }
}

/// Asks all named tasks of this process what they wait for.
///
/// Each waiting task is woken once, and that one poll is traced: the await stack is the native stack at which a future stores the
/// waker. A wake-up without a reason is legal for every future. Names and lines are those of the debug information, for which
/// line tables suffice. Tasks that have no name ([`TaskExt::task`](super::TaskExt::task)) are not seen.
///
/// It waits up to one second, so call it on a thread of its own, not in a task. A task is *not polled* if its worker is busy all
/// that time. The first call lets tasks be asked ([`enable_dumps`]). Tasks that were polled only before cannot be asked.
/// Not seen are the children of a `FuturesUnordered`, which it does not poll without a reason.
///
/// ```
/// use stackglass::task::TaskExt;
/// use std::time::Duration;
///
/// async fn answer() -> u32 {
///     tokio::time::sleep(Duration::from_secs(3600)).await;
///     42
/// }
///
/// # use stackglass::model::task_dump::AwaitSource;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// stackglass::task::enable_dumps();
/// let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build()?;
/// let task = runtime.spawn(answer().task("answer"));
/// # while stackglass::task::dump()?.tasks().iter().all(|task| task.source != AwaitSource::AskedPoll) {}
/// let dump = stackglass::task::dump()?;
/// println!("{dump}");
/// assert_eq!(dump.tasks()[0].given_name.as_deref(), Some("answer"));
/// # task.abort();
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`DumpError`].
pub fn dump() -> Result<TaskDump, DumpError> {
    if !enable_dumps() {
        return Err(DumpError::NoMemory);
    }
    let asked = ask(LIMIT)?;
    // On this thread alone: other threads would appear in a profile of the program.
    let options = stackglass_symbols::Options { threads: Some(1), ..Default::default() };
    let mut dump = asked.dump(&options);
    stackglass_collect::give_back_memory();
    let executable = executable();
    dump.pid = std::process::id();
    dump.program = executable.rsplit('/').next().unwrap_or_default().to_owned();
    Ok(TaskDump(dump))
}

/// Asks all named tasks. The stacks have no names yet.
pub(crate) fn ask(limit: Duration) -> Result<AskedTasks, DumpError> {
    let answers = match asked::ask(limit) {
        Ok(answers) => answers,
        Err(NotAsked::Busy) => return Err(DumpError::Busy),
        Err(NotAsked::NoMemory) => return Err(DumpError::NoMemory),
        // A process that lets no task be asked has none to ask.
        Err(NotAsked::Off) => Vec::new(),
    };
    let executable = executable();
    let module = |module: asked::LoadedModule| AskedModule {
        range: module.range,
        bias: module.bias,
        build_id: module.build_id,
        path: match module.path.is_empty() {
            true => executable.clone(),
            false => String::from_utf8_lossy(&module.path).into_owned(),
        },
    };
    let tasks = answers.into_iter().filter_map(|answer| {
        let said = match answer.said {
            Said::Waits(stacks) => AskedSaid::Waits(
                stacks
                    .into_iter()
                    .map(|stack| AskedStack { frames: stack.frames, is_wake: stack.is_wake })
                    .collect(),
            ),
            Said::Ended => return None,
            Said::NoWaker => AskedSaid::NoWaker,
            Said::NotPolled => AskedSaid::NotPolled,
            Said::Polled(tid) => AskedSaid::Polled(tid),
        };
        let (file, line) = answer.created;
        let created = (line != 0).then_some((file, line));
        Some(AskedTask { id: answer.id, name: answer.name, created, said })
    });
    Ok(AskedTasks { tasks: tasks.collect(), modules: asked::modules().into_iter().map(module).collect() })
}

fn executable() -> String {
    std::fs::read_link("/proc/self/exe").map(|path| path.display().to_string()).unwrap_or_default()
}
