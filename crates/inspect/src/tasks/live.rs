//! Reads the tasks of a process again and again: types are read once, and again only when modules come.
//!
//! Each refresh copies the process, which holds it up for some milliseconds. The copy ends as soon as it is read. Futures of
//! `block_on` and threads are left out: they need the stacks of all threads.

use super::error::TasksError;
use super::pool::{LivePool, Pool};
use crate::{complete, core_image};
use stackglass_attach::frozen::{self, FrozenProcess};
use stackglass_awaits::{DropStop, Process, WrappedTask};
use stackglass_layouts::{Layouts, Wanted, may_describe_tasks, may_name_tasks};
use stackglass_process_view::ProcessView;
use stackglass_profile::task_dump::TaskDump;
use stackglass_profile::{Module, Nanos};
use stackglass_symbols::Options;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Whether a process may have tasks that can be read: the debug information of its program names futures and tokio, or the program
/// has a table of named tasks. Takes some milliseconds, and does not touch the process.
///
/// # Errors
/// If the program's file may not be read.
pub fn may_have_tasks(pid: u32) -> io::Result<bool> {
    let path = format!("/proc/{pid}/exe");
    File::open(&path)?;
    let own = stackglass_procfs::process::executable(pid);
    // The path is better: a separate debug file may be beside it.
    let is_same = stackglass_procfs::process::is_same_file(&own, Path::new(&path));
    let path = if is_same { own.display().to_string() } else { path };
    let module = Module { path: path.into(), build_id: [].into() };
    let options = Options::default();
    Ok(may_describe_tasks(&module, &options)
        || may_name_tasks(&module, &options) && Pool::find(pid).is_some())
}

/// The tasks of a process that are read repeatedly.
pub struct LiveTasks {
    pid: u32,
    options: Options,
    /// Types of these modules.
    known: Option<(Vec<Module>, Layouts)>,
    pool: LivePool,
}

impl LiveTasks {
    /// Nothing is read yet.
    pub fn new(pid: u32) -> LiveTasks {
        LiveTasks { pid, options: Options::default(), known: None, pool: LivePool::default() }
    }

    /// Reads all tasks, and how long that took.
    ///
    /// # Errors
    /// [`TasksError`].
    pub fn read(&mut self) -> Result<(TaskDump, Duration), TasksError> {
        let start = Instant::now();
        let dump = self.read_with(stackglass_awaits::tasks, |dump, program, pause| {
            dump.program = program;
            dump.pause = pause;
        })?;
        Ok((dump, start.elapsed()))
    }

    /// Where the code that drops the tasks cannot be followed.
    ///
    /// # Errors
    /// [`TasksError`].
    pub fn drop_stops(&mut self) -> Result<Vec<DropStop>, TasksError> {
        self.read_with(stackglass_awaits::drop_stops, |_, _, _| {})
    }

    /// Reads something of all tasks.
    fn read_with<T>(
        &mut self,
        what: impl FnOnce(&Process<'_>) -> T,
        finish: impl FnOnce(&mut T, String, Nanos),
    ) -> Result<T, TasksError> {
        // What ends before the copy is in the table before it, what begins before the copy in the table after it.
        let mut wrapped = BTreeMap::new();
        self.pool.read_into(self.pid, &mut wrapped);
        let process = FrozenProcess::copy(self.pid, &frozen::Options::default())?;
        self.pool.read_into(self.pid, &mut wrapped);
        let wrapped: Vec<WrappedTask> = wrapped.into_values().collect();
        let image = core_image::from_frozen(&process);
        let view = ProcessView::open(&image);
        let files = view.files();
        let (known, layouts) = match self.known.take().filter(|(known, _)| *known == files) {
            Some(known) => known,
            None => {
                let layouts = view.layouts(&files, &self.options, Wanted::Coroutines);
                (files, layouts)
            }
        };
        let read = Process {
            image: &image,
            modules: &view.modules,
            layouts: &layouts,
            locals: &[],
            tids: &[],
            wrapped: &wrapped,
        };
        let mut found = what(&read);
        self.known = Some((known, layouts));
        let pause = Nanos(u64::try_from(process.pause().whole.as_nanos()).unwrap_or(u64::MAX));
        finish(&mut found, view.program().to_owned(), pause);
        complete::check(&process, self.pid, TasksError::Ended, TasksError::CopyEnded)?;
        Ok(found)
    }
}
