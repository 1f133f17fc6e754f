//! What the tasks of this process wait for: by the types of its debug information, and where they are missing, by asking.

use stackglass_collect::asked::{AskedModule, AskedSaid, AskedStack, AskedTask, AskedTasks};
use stackglass_collect::tasks::{self, OwnTasksError, WITHOUT_TYPES};
use stackglass_profile::task_dump::{self, AwaitSource, DumpedTask, TaskState};
use stackglass_report::TasksText;
use stackglass_sampler::task::asked::{self, NotAsked, Said};
use std::fmt;
use std::io::Write;
use std::time::Duration;

/// How long [`dump`] waits for answers of tasks.
const LIMIT: Duration = Duration::from_secs(1);
/// How long it waits for the process that reads types. Those of a large program take a second.
const READ_LIMIT: Duration = Duration::from_secs(30);

/// How to get the stacks of tasks without types.
const ASK: &str = "tasks without a stack: their types are not in the debug information; build their crate with `debug = 2`, or call `stackglass::task::enable_dumps()` when the program starts";

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

/// Lets tasks be asked from now on: by [`dump`] where types are missing, and by `stackglass tasks PID --ask`, for which the program
/// also calls [`peek::install`](crate::peek::install). It is false if the kernel refuses memory.
///
/// Each named task then keeps a clone of the waker of its last poll, which costs some nanoseconds a poll. A few executors, such as
/// the thread pool of the crate `futures`, drop a task when its last waker is dropped. They keep such a task, which
/// nothing wakes any more: so this is a choice of its own.
pub fn enable_dumps() -> bool {
    asked::keep_wakers()
}

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
/// Named tasks whose types are not known are asked, if [`enable_dumps`] allows it: each is woken once, and that poll is traced. A
/// wake-up without a reason is legal for every future. Line tables suffice for that. A task is *not polled* if its worker is busy
/// for a second, and the children of a `FuturesUnordered` are not seen. Tasks are also asked where the child cannot trace this process,
/// for example under a debugger; a remark then says so.
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
/// [`DumpError`].
pub fn dump() -> Result<TaskDump, DumpError> {
    let dump = match tasks::read_own(READ_LIMIT, None) {
        Ok(dump) if dump.tasks.iter().any(has_no_types) => without_types(dump)?,
        Ok(dump) => dump,
        Err(error) => asked_instead(&error)?,
    };
    Ok(TaskDump(dump))
}

/// Whether a named task has no stack because its types are missing.
fn has_no_types(task: &DumpedTask) -> bool {
    task.source == AwaitSource::RootName
        && task.given_name.is_some()
        && task.state == TaskState::Waiting
        && task.stack.is_empty()
}

/// Asks the tasks without types, and reads all again.
fn without_types(mut dump: task_dump::TaskDump) -> Result<task_dump::TaskDump, DumpError> {
    dump.remarks.retain(|remark| remark != WITHOUT_TYPES);
    if !asked::keeps_wakers() {
        dump.remarks.push(ASK.to_owned());
        return Ok(dump);
    }
    let asked = ask(LIMIT)?;
    match tasks::read_own(READ_LIMIT, Some(&asked)) {
        Ok(mut dump) => {
            dump.remarks.retain(|remark| remark != WITHOUT_TYPES);
            Ok(dump)
        }
        Err(error) => {
            dump.remarks.push(format!("tasks without a stack: {error}"));
            Ok(dump)
        }
    }
}

/// The named tasks, asked because the types cannot be read.
fn asked_instead(error: &OwnTasksError) -> Result<task_dump::TaskDump, DumpError> {
    let can_ask = asked::keeps_wakers();
    let mut dump = match can_ask {
        true => {
            // On this thread alone: other threads would appear in a profile of the program.
            let options = stackglass_symbols::Options { threads: Some(1), ..Default::default() };
            let dump = ask(LIMIT)?.dump(&options);
            stackglass_collect::give_back_memory();
            dump
        }
        false => task_dump::TaskDump::default(),
    };
    let instead = match can_ask {
        true => "the named tasks were asked instead",
        false => "with `stackglass::task::enable_dumps()` at its start, named tasks would be asked instead",
    };
    dump.remarks.insert(0, format!("the types of tasks cannot be read ({error}); {instead}"));
    let executable = executable();
    dump.pid = std::process::id();
    dump.program = executable.rsplit('/').next().unwrap_or_default().to_owned();
    Ok(dump)
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
