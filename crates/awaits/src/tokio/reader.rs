//! Reads the tasks of one process again and again, for profiles by wall time.
//!
//! What stays the same between two reads is found once: the types of tasks by their vtables, what types lead to futures, and
//! where the runtimes have their lists. A read then only follows these lists and walks the futures of some tasks.

use super::cells::{Cells, Stage, TaskCell, Vtables, kind};
use super::lists::{self, Scheduler};
use super::{polling, roots, sweep, task};
use crate::found::Found;
use crate::futures::Futures;
use crate::process::Process;
use crate::task_headers::Headers;
use crate::task_names::task_name;
use crate::values::{Value, Values};
use crate::walk::Walked;
use crate::walker::Walker;
use crate::wrapped::{self, SeenWrapped};
use foldhash::{HashMap, HashSet, HashSetExt};
use stackglass_layouts::TypeId;
use stackglass_process_view::pages::Pages;
use stackglass_process_view::stacks::StackFrame;
use stackglass_profile::runtimes::tokio;
use stackglass_profile::task_dump::{DumpedTask, TaskState};
use std::ops::Range;
use std::sync::Arc;

/// What is known of the tasks of a process while its modules and their layouts stay the same.
#[derive(Default)]
pub struct TaskReader {
    of_vtables: Vtables,
    vtables: Vec<(u64, TypeId)>,
    futures: HashMap<TypeId, u8>,
    schedulers: Vec<Scheduler>,
    poll_codes: Vec<PollCode>,
}

/// The code of a function that polls tasks of one type. The runtime has several for each type, which call each other.
#[derive(Clone, Debug)]
pub struct PollCode {
    /// Its addresses in the process.
    pub range: Range<u64>,
    /// The name of these tasks. `None` if the linker has merged functions for several types.
    pub name: Option<Arc<str>>,
    /// They are functions of `spawn_blocking`. Workers of a runtime are none.
    pub is_blocking: bool,
}

/// The future of a `block_on`. It stays where it is while its frame lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RootFuture(Value);

/// Where the future of a `block_on` was found.
#[derive(Clone, Debug)]
pub struct FoundRoot {
    /// Index of the thread among those of [`Process::locals`].
    pub thread: usize,
    /// Index of the frame that has it as a variable.
    pub frame: usize,
    /// The future.
    pub future: RootFuture,
    /// Its function.
    pub name: Arc<str>,
}

/// What one read has seen.
#[derive(Debug, Default)]
pub struct SeenTasks {
    /// Number of live tasks, without those of `spawn_blocking` and the futures of `block_on`.
    pub alive: usize,
    /// Some of them, or all.
    pub tasks: Vec<SeenTask>,
    /// The tasks of `block_on`, in the order in which they were asked for. `None` for one that has ended.
    pub roots: Vec<Option<DumpedTask>>,
    /// Named tasks that are none of these.
    pub wrapped: SeenWrapped,
}

/// A task.
#[derive(Debug)]
pub struct SeenTask {
    /// What it does.
    pub task: DumpedTask,
    /// Index of the thread that polls it, and of the outermost frame of this poll.
    pub polled: Option<(usize, usize)>,
}

impl TaskReader {
    /// Finds what stays the same.
    pub fn new(process: &Process<'_>) -> TaskReader {
        let Process { image, modules, layouts, .. } = *process;
        let values = Values { layouts, pages: Pages::new(image) };
        let cells = Cells::find(&values, modules);
        let vtables = process.vtables();
        let types = Futures::new(layouts);
        let walker = Walker::new(&values, &types, &vtables, cells.headers);
        let poll_codes = poll_codes(process, &walker);
        let of_vtables = cells.into_vtables();
        TaskReader { of_vtables, futures: types.into_known(), vtables, schedulers: Vec::new(), poll_codes }
    }

    /// Whether the process cannot have tasks that could be read.
    pub fn is_empty(&self) -> bool {
        self.of_vtables.0.is_empty()
    }

    /// The functions that poll tasks, by address.
    pub fn poll_code(&self, address: u64) -> Option<&PollCode> {
        let behind = self.poll_codes.partition_point(|code| code.range.start <= address);
        self.poll_codes[..behind].last().filter(|code| code.range.contains(&address))
    }

    /// Searches the heap for runtimes.
    pub fn find_runtimes(&mut self, process: &Process<'_>) {
        self.with_walker(process, |reader, walker, cells| {
            let swept = sweep::cells(process.image, cells);
            reader.schedulers = lists::schedulers(walker.values, cells, &swept);
        });
    }

    /// Finds the futures of `block_on`. The process must have its locals.
    pub fn find_roots(&mut self, process: &Process<'_>) -> Vec<FoundRoot> {
        let found = |(root, walked): (roots::Root, Walked)| FoundRoot {
            thread: root.thread,
            frame: root.frame,
            future: RootFuture(root.future),
            name: roots::task(0, walked).name,
        };
        self.with_walker(process, |reader, walker, cells| {
            let of_scheduler =
                |scheduler: &lists::Scheduler| lists::headers(walker.values, cells, *scheduler);
            let headers: Vec<u64> = reader.schedulers.iter().flat_map(of_scheduler).collect();
            roots::find(process, walker, cells, &headers).into_iter().map(found).collect()
        })
    }

    /// Reads the tasks. `frames` are those of each thread, innermost first. If more than `most` are alive, so many are read, each
    /// as likely as the others: `below(n)` is a random number below `n`. Each root has the kernel id of its thread.
    pub fn read(
        &mut self,
        process: &Process<'_>,
        frames: &[Vec<StackFrame>],
        of_threads: &[(u32, RootFuture)],
        most: usize,
        below: &mut dyn FnMut(usize) -> usize,
    ) -> SeenTasks {
        self.with_walker(process, |reader, walker, cells| {
            let mut headers = Vec::new();
            let mut seen = HashSet::new();
            for scheduler in &reader.schedulers {
                let of_runtime = lists::headers(walker.values, cells, *scheduler).into_iter();
                headers.extend(of_runtime.filter(|header| seen.insert(*header)));
            }
            let alive = headers.len();
            for place in 0..alive.min(most) {
                headers.swap(place, place + below(alive - place));
            }
            let rest = headers.split_off(alive.min(most));
            let mut read = SeenTasks { alive, ..SeenTasks::default() };
            let mut found = Found::default();
            let mut running = Vec::new();
            for header in headers {
                let count = found.dump.tasks.len();
                task::add(walker, cells, header, None, &mut found);
                if found.dump.tasks.get(count).is_some_and(|task| task.state == TaskState::Running) {
                    running.push((count, header));
                }
            }
            // Which named tasks are among the others.
            if !process.wrapped.is_empty() {
                let futures =
                    rest.iter().filter_map(|header| cells.at(walker.values, *header)?.stage(walker.values));
                for stage in futures {
                    if let Stage::Running(future) = stage {
                        found.wrapped.claim_unseen(walker.values, future);
                    }
                }
            }
            let root = |(tid, RootFuture(future)): &(u32, RootFuture)| {
                let walked = walker.walk(*future);
                found.wrapped.claim(walker.values, usize::MAX, *future, &walked.wrapped);
                let is_suspended = walked.stack.iter().any(roots::is_suspended);
                is_suspended.then(|| roots::task(*tid, walked))
            };
            read.roots = of_threads.iter().map(root).collect();
            read.wrapped = wrapped::read_at_most(process.wrapped, walker, &mut found, most, below);
            read.tasks = found.dump.tasks.into_iter().map(|task| SeenTask { task, polled: None }).collect();
            for poll in polling::find(walker.values, &cells.headers, process.modules, frames, &running) {
                read.tasks[poll.task].polled = Some((poll.thread, poll.frame));
            }
            read
        })
    }

    fn with_walker<R>(
        &mut self,
        process: &Process<'_>,
        job: impl FnOnce(&mut TaskReader, &Walker<'_>, &Cells<'_>) -> R,
    ) -> R {
        let values = Values { layouts: process.layouts, pages: Pages::new(process.image) };
        let headers = Headers::new(process.layouts);
        let vtables = std::mem::take(&mut self.vtables);
        let types = Futures::known(process.layouts, std::mem::take(&mut self.futures));
        let cells = Cells::known(&values, headers, std::mem::take(&mut self.of_vtables));
        let walker = Walker::new(&values, &types, &vtables, headers);
        let result = job(self, &walker, &cells);
        self.of_vtables = cells.into_vtables();
        self.futures = types.into_known();
        self.vtables = vtables;
        result
    }
}

/// The functions that poll, sorted by address.
fn poll_codes(process: &Process<'_>, walker: &Walker<'_>) -> Vec<PollCode> {
    let mut codes: Vec<PollCode> = Vec::new();
    let polls = process.layouts.coroutines().polls().iter();
    for poll in polls.filter(|poll| poll.size > 0) {
        let Some(module) = process.modules.get(poll.module) else { continue };
        let Some(kind) = kind(process.layouts, &poll.name) else { continue };
        let Some(cell) = TaskCell::from_header(walker.values, kind, 0) else { continue };
        let name = task_name(walker, cell.future_type);
        let start = poll.address.wrapping_add(module.bias());
        let range = start..start.saturating_add(poll.size);
        let is_worker = name.starts_with(tokio::SCHEDULER);
        let is_blocking = kind.is_blocking && !is_worker;
        codes.push(PollCode { range, is_blocking, name: Some(name) });
    }
    codes.sort_by(|a, b| (a.range.start, &a.name).cmp(&(b.range.start, &b.name)));
    codes.dedup_by(|next, first| {
        let is_same = next.range.start == first.range.start;
        if is_same && next.name != first.name {
            first.name = None;
        }
        is_same
    });
    codes
}
