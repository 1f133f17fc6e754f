//! Reads the tasks of a process once: from a copy of it, or while it stands still.

use super::error::TasksError;
use super::long_poll::{self, PolledTask};
use super::polling_threads;
use super::pool::Pool;
use crate::sleepers::Sleeper;
use crate::{complete, core_image, thread_waits};
use stackglass_attach::frozen::{self, FrozenProcess};
use stackglass_awaits::{Poll, Process, WrappedTask};
use stackglass_layouts::Wanted;
use stackglass_process_view::core_image::CoreImage;
use stackglass_process_view::modules::LoadedModule;
use stackglass_process_view::{ProcessView, Threads};
use stackglass_procfs::{clock, threads};
use stackglass_profile::task_dump::{DumpedTask, TaskDump, TaskState};
use stackglass_profile::{Module, Nanos};
use stackglass_symbols::Options;
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

/// How tasks are read.
#[derive(Clone, Debug, Default)]
pub struct TasksOptions {
    /// Read the process itself, which stands still meanwhile, instead of a copy.
    pub stop: bool,
    /// Interrupt system calls of the process, which may then return early.
    pub interrupt_calls: bool,
    /// How types are found.
    pub symbols: Options,
    /// How long it is watched at least which tasks are not polled. The copy lives as long.
    pub watch: Duration,
    /// How long others that trace the process are waited for, if not as long as usual.
    pub wait: Option<Duration>,
}

/// Reads the tasks of a process.
///
/// # Errors
/// [`TasksError`].
pub fn read(pid: u32, options: &TasksOptions) -> Result<TaskDump, TasksError> {
    let pool = Pool::find(pid);
    // What ends before the copy is in the table before it, what begins before the copy in the table after it.
    let mut wrapped = BTreeMap::new();
    if let Some(pool) = pool.as_ref().filter(|_| !options.stop) {
        pool.read_into(&mut wrapped);
    }
    let sleepers: Vec<Sleeper> =
        threads::list(pid).into_iter().filter_map(|tid| Sleeper::read(pid, tid)).collect();
    let start = Instant::now();
    let freeze = if options.stop { FrozenProcess::stop } else { FrozenProcess::copy };
    let usual = frozen::Options::default();
    let process = freeze(
        pid,
        &frozen::Options {
            wait: options.wait.unwrap_or(usual.wait),
            interrupt_calls: options.interrupt_calls,
        },
    )?;
    if let Some(pool) = &pool {
        pool.read_into(&mut wrapped);
    }
    let (copied, read_at) = (Instant::now(), clock::monotonic());
    let wrapped: Vec<WrappedTask> = wrapped.into_values().collect();
    let image = core_image::from_frozen(&process);
    // Those that have slept on at the moment of the copy.
    let words = sleepers.iter().filter(|sleeper| sleeper.is_still(pid));
    let words: Vec<(u32, u64)> =
        words.filter_map(|sleeper| Some((sleeper.thread.tid, thread_waits::word(sleeper)?))).collect();
    let read = (&wrapped[..], &words[..]);
    let Dumped { mut dump, modules, files, mut polled, polls } = dump(&image, read, &options.symbols);
    complete::check(&process, pid, TasksError::Ended, TasksError::CopyEnded)?;
    let mut pause = if options.stop { start.elapsed() } else { process.pause().whole };
    std::thread::sleep(options.watch.saturating_sub(copied.elapsed()));
    add_unpolled(&mut dump, &process, copied);
    drop((image, process));
    pause += long_poll::check_again(pid, &modules, &mut polled, &polls);
    dump.read_at = has_this_clock(pid).then_some(Nanos(read_at));
    dump.pause = Nanos(u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX));
    if !polled.is_empty() {
        polling_threads::add(&mut dump, &polled, &modules, &files, &options.symbols);
    }
    Ok(dump)
}

/// Whether times of a process are those of this one: a container may have a clock of its own.
fn has_this_clock(pid: u32) -> bool {
    let clock = |of: &str| fs::read_link(format!("/proc/{of}/ns/time")).ok();
    clock("self") == clock(&pid.to_string())
}

/// Says of tasks that waited at the time of the copy how long they were not polled since then. A poll begins with a word in the
/// task's header, so a header that was not written is one of a task that still waits in the same place.
fn add_unpolled(dump: &mut TaskDump, process: &FrozenProcess, copied: Instant) {
    let elapsed = Nanos(u64::try_from(copied.elapsed().as_nanos()).unwrap_or(u64::MAX));
    let waiting = |task: &&mut DumpedTask| task.state == TaskState::Waiting;
    let headers: Vec<u64> = dump.tasks.iter_mut().filter(waiting).filter_map(|task| task.header).collect();
    let unwritten = process.unwritten(&headers);
    for task in dump.tasks.iter_mut().filter(waiting) {
        let is_unpolled = task.header.is_some_and(|header| unwritten.contains(&header));
        task.unpolled = is_unpolled.then_some(elapsed);
    }
}

/// What was read from the process while it did not run.
struct Dumped {
    dump: TaskDump,
    modules: Vec<LoadedModule>,
    files: Vec<Module>,
    /// The tasks that are polled, and the functions of `spawn_blocking` that run.
    polled: Vec<PolledTask>,
    /// The polls of tasks, by index in `polled`.
    polls: Vec<(usize, Poll)>,
}

/// The tasks of a core image, such as a stored one. Threads that poll tasks have no stacks, and nothing is known of tasks that only
/// the program has named.
pub fn of_image(image: &CoreImage, options: &Options) -> TaskDump {
    dump(image, (&[], &[]), options).dump
}

/// `wrapped` are the tasks that the program has named, `words` those that its threads wait for.
fn dump(image: &CoreImage, (wrapped, words): (&[WrappedTask], &[(u32, u64)]), options: &Options) -> Dumped {
    let view = ProcessView::open(image);
    let files = view.files();
    let Threads { frames, tids, .. } = view.threads();
    let (layouts, locals) = view.layouts_and_locals(&files, options, &frames, Wanted::Coroutines);
    let read =
        Process { image, modules: &view.modules, layouts: &layouts, locals: &locals, tids: &tids, wrapped };
    let (mut dump, found) = stackglass_awaits::tasks_and_polls(&read, &frames, words);
    dump.program = view.program().to_owned();
    let polled = |poll: &Poll| PolledTask {
        task: poll.task,
        tid: tids[poll.thread],
        lookups: frames[poll.thread][..poll.frame].iter().map(|frame| frame.lookup).collect(),
        polled_for: None,
        seen_again: false,
    };
    let polled: Vec<PolledTask> = found.iter().map(polled).collect();
    // A function of `spawn_blocking` blocks no worker.
    let is_polled = |poll: &Poll| dump.tasks[poll.task].state == TaskState::Running;
    let polls = found.into_iter().enumerate().filter(|(_, poll)| is_polled(poll)).collect();
    Dumped { dump, modules: view.modules, files, polled, polls }
}
