//! The async tasks of a process at one moment, each with its await stack: the chain of `.await`s in which it is suspended.

use crate::Nanos;
use crate::runtimes::tokio;
use std::sync::Arc;

/// Timers of more than ten years are not meant to fire: `sleep(Duration::MAX)` is one of thirty years.
const NEVER: u64 = 10 * 365 * 86_400 * 1_000_000_000;

/// The tasks of a process at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskDump {
    /// The process.
    pub pid: u32,
    /// Its program: the last part of the path.
    pub program: String,
    /// Its runtimes.
    pub runtimes: Vec<AsyncRuntime>,
    /// Its tasks, by runtime and id.
    pub tasks: Vec<DumpedTask>,
    /// Its pools of threads for functions of `spawn_blocking`.
    pub pools: Vec<BlockingPool>,
    /// Locks and channels for which tasks wait.
    pub locks: Vec<Lock>,
    /// Tasks that wait for each other.
    pub deadlocks: Vec<Deadlock>,
    /// When they were read (CLOCK_MONOTONIC), where the process has the same clock. Not part of encoded dumps.
    pub read_at: Option<Nanos>,
    /// How long the process was held up, ns.
    pub pause: Nanos,
    /// Remarks for the user.
    pub remarks: Vec<String>,
}

impl TaskDump {
    /// The tasks that block their worker, by index, the longest poll first: their poll has not returned for
    /// [`PollingThread::BLOCKS`].
    pub fn blocking(&self) -> Vec<usize> {
        let polled_for =
            |task: &usize| self.tasks[*task].thread.as_ref().and_then(|thread| thread.polled_for);
        let blocks = |task: &usize| {
            self.tasks[*task].state == TaskState::Running
                && polled_for(task).is_some_and(|time| time >= PollingThread::BLOCKS)
                && !self.tasks[*task].thread.as_ref().is_some_and(PollingThread::is_in_place)
        };
        let mut tasks: Vec<usize> = (0..self.tasks.len()).filter(blocks).collect();
        tasks.sort_by_key(|task| std::cmp::Reverse(polled_for(task)));
        tasks
    }

    /// How long it was until the first timer of a task fires, when the tasks were read. `None` if it waits for none, or for one that is
    /// not meant to fire.
    pub fn fires_in(&self, task: &DumpedTask) -> Option<Nanos> {
        let left = task.fires_at?.0.saturating_sub(self.read_at?.0);
        (left < NEVER).then_some(Nanos(left))
    }

    /// Number of tasks. Futures of `block_on` are none.
    pub fn count(&self) -> usize {
        self.tasks.iter().filter(|task| !matches!(task.state, TaskState::BlockOn(_))).count()
    }
}

/// A runtime or local set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsyncRuntime {
    /// What it is: `tokio 1.54.1, multi-thread`.
    pub name: String,
}

/// A pool of threads that run functions of `spawn_blocking`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockingPool {
    /// Number of functions that run, if it is known.
    pub busy: Option<u64>,
    /// Number of functions that wait for a thread.
    pub queued: u64,
    /// It may have no more threads, and all of them run something.
    pub is_exhausted: bool,
}

/// A task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DumpedTask {
    /// The runtime's id of it. 0 for the future of `block_on`.
    pub id: u64,
    /// Index of its runtime; `None` if it is not known.
    pub runtime: Option<usize>,
    /// What it does.
    pub state: TaskState,
    /// Its function: that of the outermost future.
    pub name: Arc<str>,
    /// Its number among those that the program has named, if no known runtime has it. Otherwise 0.
    pub number: u64,
    /// The name that the program has given it, as by `.task("name")`.
    pub given_name: Option<Arc<str>>,
    /// Where the program created it, as far as that is known.
    pub created: Option<(Arc<str>, u32)>,
    /// How its stack was found.
    pub source: AwaitSource,
    /// Its await stack, outermost first. More than one where the outermost future is a combination of several.
    pub stack: Vec<AwaitFrame>,
    /// What it waits for, in all of its branches, as far as it is known.
    pub waits: Vec<WaitTarget>,
    /// It waits, and its runtime has no waker of it: nothing can wake it.
    pub has_no_waker: bool,
    /// How long it has waited, ns, as far as that is known.
    pub waited: Option<Nanos>,
    /// How long it was not polled at least, ns, as far as that is known. Not part of encoded dumps.
    pub unpolled: Option<Nanos>,
    /// When the first timer fires for which it waits, as far as that is known (CLOCK_MONOTONIC). Not part of encoded dumps.
    pub fires_at: Option<Nanos>,
    /// Where its header is in the process, if it is a task of tokio. Each poll writes there. Not part of encoded dumps.
    pub header: Option<u64>,
    /// The thread that polls it, or runs its function, as far as that is known.
    pub thread: Option<PollingThread>,
}

/// How an await stack was found, best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum AwaitSource {
    /// By the types of the debug information.
    #[default]
    Types,
    /// Only the task's function, or the place where it was created, is known.
    RootName,
}

/// A thread that polls a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PollingThread {
    /// Its kernel id.
    pub tid: u32,
    /// Its stack, innermost first, without the frames of the runtime that call the task.
    pub stack: Vec<crate::Frame>,
    /// How long this poll lasts at least, ns. `None` if it may have just begun.
    pub polled_for: Option<Nanos>,
    /// A second look found that this thread polls it as well. It may have returned between the two.
    pub seen_again: bool,
}

impl PollingThread {
    /// From this time on, ns, a poll is said to block its worker.
    pub const BLOCKS: Nanos = Nanos(100_000_000);

    /// Whether it is in `tokio::task::block_in_place`: then another thread has taken over the other tasks of its worker.
    pub fn is_in_place(&self) -> bool {
        self.stack
            .iter()
            .any(|frame| frame.func.starts_with(tokio::CRATE) && frame.func.ends_with("::block_in_place"))
    }
}

/// What a task does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum TaskState {
    /// It waits.
    #[default]
    Waiting,
    /// It was woken, and waits for a worker.
    Ready,
    /// A worker polls it. Its stack is that of the worker.
    Running,
    /// It has ended; its result was not collected yet.
    Finished,
    /// It is a function of `spawn_blocking`, not a future.
    Blocking,
    /// It is such a function, and waits for a thread.
    Queued,
    /// It is the future of a `block_on`, on the stack of a thread with this kernel id.
    BlockOn(u32),
}

impl TaskState {
    /// A word for it.
    pub fn word(self) -> &'static str {
        match self {
            TaskState::Waiting => "waiting",
            TaskState::Ready => "ready",
            TaskState::Running => "running",
            TaskState::Finished => "finished",
            TaskState::Blocking => "blocking",
            TaskState::Queued => "queued",
            TaskState::BlockOn(_) => "block_on",
        }
    }
}

/// A future in an await stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AwaitFrame {
    /// The `async` function or block, or the type of a future that is no coroutine.
    pub function: Arc<str>,
    /// Where it is.
    pub point: AwaitPoint,
    /// The futures that it waits for: several in `join!` and `select!`.
    pub children: Vec<AwaitFrame>,
    /// It is known to wait for the first of them only, as `select!` does. Not part of texts and of encoded dumps.
    pub is_race: bool,
}

/// Where a future is in its function.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AwaitPoint {
    /// Suspended in this line of a file; `None` if the line is not known.
    Await(Option<(Arc<str>, u32)>),
    /// Not polled yet.
    NotStarted,
    /// It has returned.
    Finished,
    /// Not a coroutine: the future that the runtime or a library wakes.
    Leaf,
    /// The chain continues, but cannot be followed: why not.
    Lost(&'static str),
}

/// Another task, or something that tasks share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitTarget {
    /// The end of the task with this id.
    Task(u64),
    /// A lock or channel.
    Shared {
        /// What it is.
        kind: SharedKind,
        /// Its address in the process.
        address: u64,
    },
}

/// Something that tasks share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SharedKind {
    /// `tokio::sync::Mutex`.
    Mutex,
    /// `async_lock::Mutex` or `futures::lock::Mutex`.
    OtherMutex,
    /// A mutex that blocks the thread: of `std::sync` or `parking_lot`.
    BlockingMutex,
    /// A lock of theirs for readers and writers.
    BlockingRwLock,
    /// `tokio::sync::RwLock`.
    RwLock,
    /// `tokio::sync::Semaphore`.
    Semaphore,
    /// A channel that is full.
    FullChannel,
    /// A channel without a message.
    EmptyChannel,
    /// `tokio::sync::watch`.
    Watch,
    /// `tokio::sync::Barrier`.
    Barrier,
    /// `tokio::sync::Notify`.
    Notify,
    /// `tokio::sync::oneshot`.
    Oneshot,
}

impl SharedKind {
    /// Its name as a programmer writes it.
    pub fn name(self) -> &'static str {
        match self {
            SharedKind::Mutex | SharedKind::OtherMutex | SharedKind::BlockingMutex => "Mutex",
            SharedKind::RwLock | SharedKind::BlockingRwLock => "RwLock",
            SharedKind::Semaphore => "Semaphore",
            SharedKind::FullChannel => "full channel",
            SharedKind::EmptyChannel => "empty channel",
            SharedKind::Watch => "watch channel",
            SharedKind::Barrier => "Barrier",
            SharedKind::Notify => "Notify",
            SharedKind::Oneshot => "oneshot channel",
        }
    }
}

/// Something that tasks share, with those that hold it and those that wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// What it is.
    pub kind: SharedKind,
    /// Its address in the process.
    pub address: u64,
    /// Tasks with a guard of it, or with its other end.
    pub holders: Vec<Holder>,
    /// Tasks that wait for it, by index.
    pub waiters: Vec<usize>,
    /// How many tasks have arrived at a barrier, and how many must.
    pub arrived: Option<(u64, u64)>,
    /// The number of ends of a channel that can end the wait, as the channel counts them.
    pub ends: Option<u64>,
}

/// A task with a guard of a lock, or with the end of a channel that others wait for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// Index of the task in [`TaskDump::tasks`].
    pub task: usize,
    /// The `.await` across which it holds the guard.
    pub line: Option<(Arc<str>, u32)>,
    /// Its guard is a described variable, which may be moved away already, as by `drop(guard)`. Otherwise, a word in it has the
    /// address of the lock.
    pub is_described: bool,
    /// It holds it: what drops the task gives the lock back. Otherwise it probably does.
    pub is_certain: bool,
    /// Number of permits that it holds: several if it writes. 0 if that is not known.
    pub permits: u64,
    /// It has it through an `Arc`, as others may.
    pub is_shared: bool,
}

/// A cycle of tasks, each of which waits for the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// The tasks, by index in [`TaskDump::tasks`].
    pub tasks: Vec<usize>,
    /// What each of them waits for.
    pub via: Vec<WaitTarget>,
    /// Nothing but the end of one of these tasks from outside ends it. Otherwise a holder of a lock is not certain, or a branch of
    /// `try_join!` may fail.
    pub is_certain: bool,
}
