//! The tasks of tokio's runtimes.
//!
//! A task is one block: a header with its state and a vtable, its future, and links of the list of all tasks of its runtime.
//! The vtables are words in read-only data that hold the address of a function that polls tasks. A sweep of the heap finds
//! blocks with such vtables; the first live one leads to the runtime's own list, which has all tasks and no others. Fields are
//! found by their names, so their order does not matter.
//!
//! Source: `tokio/src/runtime/task/` of tokio 1.43 to 1.54.

mod alone;
mod block_on;
mod cells;
mod headers;
mod lists;
mod looks;
mod order;
mod polling;
mod root_names;
mod roots;
mod sweep;
mod untyped;

pub(crate) use headers::Headers;
pub use looks::{FoundRoot, PollCode, RootFuture, SeenTask, TaskLook, TaskLooks};
pub use polling::Poll;

use crate::futures::Futures;
use crate::held;
use crate::locks::{self, TaskHoldings};
use crate::values::{Value, Values};
use crate::walk::{Walked, Walker};
use crate::wrapped::{self, WrappedTask};
use crate::{deadlocks, names};
use cells::{Cells, Stage};
use foldhash::{HashSet, HashSetExt};
use order::{Indices, OfRuntime};
use stackglass_drop_code::{DropStop, Drops};
use stackglass_process_view::image::Image;
use stackglass_process_view::modules::LoadedModule;
use stackglass_process_view::pages::Pages;
use stackglass_process_view::stacks::StackFrame;
use stackglass_profile::task_dump::{AsyncRuntime, AwaitFrame, DumpedTask, TaskDump, TaskState};
use stackglass_symbols::layouts::{Layouts, Local, TypeId, is_coroutine};
use std::sync::Arc;

/// A process, and what is known of it.
pub struct Process<'a> {
    /// Its memory.
    pub image: &'a Image,
    /// Its modules.
    pub modules: &'a [LoadedModule],
    /// Types of these modules, read with coroutines.
    pub layouts: &'a Layouts,
    /// The local variables of each frame of some threads, innermost frame first.
    pub locals: &'a [Vec<Vec<Local>>],
    /// Kernel ids of these threads.
    pub tids: &'a [u32],
    /// Tasks of our own wrapper, from the table that the process has of them.
    pub wrapped: &'a [WrappedTask],
}

/// Finds the tasks of a process. It has none if its debug information has no types, or if it does not use tokio.
pub fn tasks(process: &Process<'_>) -> TaskDump {
    tasks_and_polls(process, &[]).0
}

/// Finds the tasks of a process, and those that its threads poll. `frames` are those of each thread, innermost first.
pub fn tasks_and_polls(process: &Process<'_>, frames: &[Vec<StackFrame>]) -> (TaskDump, Vec<Poll>) {
    let (dump, polls, _) = read(process, frames);
    (dump, polls)
}

/// Where the code that drops the tasks of a process cannot be followed. What a task holds is then not certain.
pub fn drop_stops(process: &Process<'_>) -> Vec<DropStop> {
    read(process, &[]).2
}

fn read(process: &Process<'_>, frames: &[Vec<StackFrame>]) -> (TaskDump, Vec<Poll>, Vec<DropStop>) {
    let Process { image, modules, layouts, .. } = *process;
    let values = Values { layouts, pages: Pages::new(image) };
    let types = Futures::new(layouts);
    let vtables = vtables(layouts, modules);
    let cells = Cells::find(&values, modules);
    let walker = Walker::new(&values, &types, &vtables, cells.headers);
    let swept = sweep::cells(image, &cells);
    let version = version(layouts);
    let mut dump = TaskDump { pid: image.pid, ..TaskDump::default() };
    let mut held: Vec<TaskHoldings> = Vec::new();
    let mut seen = HashSet::new();
    let mut polled = Vec::new();
    let is_polled = |dump: &TaskDump, count: usize, header: u64| {
        let is_running =
            |cell: cells::TaskCell| cell.has_references(&values) && cell.state(&values).is_running;
        dump.tasks.len() > count && cells.at(&values, header).is_some_and(is_running)
    };
    let mut of_runtimes: Vec<OfRuntime> = Vec::new();
    lists::visit(&values, &cells, &swept, &mut |kind, number, header| {
        of_runtimes.resize(of_runtimes.len().max(number + 1), OfRuntime::default());
        of_runtimes[number] = OfRuntime { kind, tasks: of_runtimes[number].tasks + 1 };
        seen.insert(header);
        let count = dump.tasks.len();
        add(&walker, &cells, header, Some(number), &mut dump, Some(&mut held));
        polled.extend(is_polled(&dump, count, header).then_some((count, header)));
    });
    let mut wrapped = walker.wrapped.borrow_mut();
    let indices = Indices { held: &mut held, polled: &mut polled, wrapped: &mut wrapped };
    let kinds = order::sort(&of_runtimes, &mut dump, indices);
    drop(wrapped);
    let of_version = version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    let runtime = |kind| AsyncRuntime { name: format!("tokio{of_version}, {kind}") };
    dump.runtimes = kinds.into_iter().map(runtime).collect();
    for header in swept.iter().filter(|header| !seen.contains(*header)) {
        let is_blocking = cells.at(&values, *header).is_some_and(|cell| cell.is_blocking);
        if is_blocking {
            let count = dump.tasks.len();
            add(&walker, &cells, *header, None, &mut dump, Some(&mut held));
            polled.extend(is_polled(&dump, count, *header).then_some((count, *header)));
        }
    }
    let mut polls = polling::find(&values, &cells.headers, modules, frames, &polled);
    roots::add(process, &walker, (&cells, &swept), &mut dump, &mut held);
    block_on::add(process, &walker, &mut dump, &mut held);
    wrapped::add(process.wrapped, &walker, &mut dump, &mut held);
    if cells.is_empty() {
        polls.extend(root_names::add(process, &values, frames, &mut dump));
    }
    if dump.tasks.is_empty() {
        dump.remarks.insert(0, nothing_found(layouts, &cells, version.as_deref()));
    } else if cells.is_empty() && spawns(layouts) {
        dump.remarks.push(not_understood(version.as_deref()));
    }
    let drops = Drops::new(&values.pages, layouts, modules);
    let places;
    (dump.locks, places) = locks::find(&values, &drops, &dump.tasks, &held);
    let needs = held.into_iter().map(|held| (held.task, held.needs)).collect();
    dump.deadlocks = deadlocks::find(&dump.tasks, &needs, &dump.locks, &places);
    (dump, polls, drops.stops())
}

/// Why there are no tasks.
fn nothing_found(layouts: &Layouts, cells: &Cells<'_>, version: Option<&str>) -> String {
    let has_types = layouts.coroutines().files().next().is_some();
    match (layouts.is_rust(), has_types, cells.is_empty()) {
        (false, ..) => "the program has no debug information of Rust, which the tasks of a Rust program are read by: its own crate needs `debug = 2` in its Cargo profile, and no `strip`",
        (true, false, _) => "its debug information has no types of async functions: it has no such functions, or its own crate needs `debug = 2` (or `true`) in the Cargo profile",
        (true, true, true) if spawns(layouts) => return not_understood(version),
        (true, true, true) => "the program spawns no tasks of tokio",
        (true, true, false) => "no tokio runtime has a task now",
    }
    .to_owned()
}

/// Whether the program has types of async functions, and functions that poll tasks of tokio.
fn spawns(layouts: &Layouts) -> bool {
    let is_task = |name: &str| {
        name.contains("tokio::runtime::scheduler::") || name.contains("tokio::task::local::Shared")
    };
    let coroutines = layouts.coroutines();
    coroutines.files().next().is_some() && coroutines.polls().iter().any(|poll| is_task(&poll.name))
}

fn not_understood(version: Option<&str>) -> String {
    let version = version.map(|version| format!(" {version}")).unwrap_or_default();
    format!("the tasks of tokio{version} are not understood; those of tokio 1.43 to 1.54 are")
}

/// Adds the task with a header at an address, and what it holds, if that is asked for.
fn add(
    walker: &Walker<'_>,
    cells: &Cells<'_>,
    header: u64,
    runtime: Option<usize>,
    dump: &mut TaskDump,
    held: Option<&mut Vec<TaskHoldings>>,
) {
    let Some(cell) = cells.at(walker.values, header) else {
        dump.tasks.extend(untyped::task(walker, cells, header, runtime));
        return;
    };
    let state = cell.state(walker.values);
    let id = cell.id(walker.values).unwrap_or(0);
    let (state, future) = match cell.stage(walker.values) {
        Some(Stage::Running(future)) if !state.is_complete => (
            match (cell.is_blocking, state.is_running, state.is_notified) {
                (true, ..) => TaskState::Blocking,
                (_, true, _) => TaskState::Running,
                (_, _, true) => TaskState::Ready,
                _ => TaskState::Waiting,
            },
            Some(future),
        ),
        // A function that runs was moved out of its cell.
        Some(Stage::Consumed) if cell.is_blocking && !state.is_complete => (TaskState::Blocking, None),
        _ if cell.is_blocking => return,
        _ => (TaskState::Finished, None),
    };
    let type_name = task_name(walker, cell.future_type);
    // A worker of the runtime is such a function, too.
    if cell.is_blocking && type_name.starts_with("tokio::runtime::scheduler::") {
        return;
    }
    // The state of a future that is polled changes; it is on the stack of its worker.
    let readable = future.filter(|_| matches!(state, TaskState::Waiting | TaskState::Ready));
    let walked = readable.map(|future| walker.walk(future)).unwrap_or_default();
    if let Some(future) = future {
        walker.wrapped.borrow_mut().claim(walker.values, dump.tasks.len(), future, &walked.wrapped);
    }
    let Walked { stack, waits, needs, .. } = walked;
    if let (Some(future), Some(held)) = (readable, held) {
        let holdings = held::holdings(walker, future);
        let free = walker.headers.free(walker.values, header);
        let drop = free.map(|free| (free, header));
        held.push(TaskHoldings { task: dump.tasks.len(), holdings, drop, needs });
    }
    let name = future.map_or(type_name, |future| name_of(walker, future, &stack));
    dump.tasks.push(DumpedTask { id, runtime, state, name, stack, waits, ..DumpedTask::default() });
}

/// A name for the task of a future with this await stack.
pub(crate) fn name_of(walker: &Walker<'_>, future: Value, stack: &[AwaitFrame]) -> Arc<str> {
    let name = task_name(walker, future.type_id);
    if is_coroutine(walker.values.name(future)) {
        return name;
    }
    match stack {
        [outermost] => outermost.function.clone(),
        // The type of a `Pin<Box<dyn Future>>` says nothing. Pointers stay while the future behind them is polled.
        _ => walker.boxed(future).map_or(name, |inner| task_name(walker, inner.type_id)),
    }
}

/// A name for tasks of a future's type.
fn task_name(walker: &Walker<'_>, future: TypeId) -> Arc<str> {
    let name = &walker.values.layout(future).name;
    // The function of `spawn_blocking` is in a struct of its own.
    let inner = name.strip_prefix("tokio::runtime::blocking::task::BlockingTask<");
    match inner.and_then(|inner| inner.strip_suffix('>')) {
        Some(function) => names::closure(function),
        None if wrapped::is_wrapper(name) => match wrapped::future_type(walker.values, future) {
            Some(inner) => task_name(walker, inner),
            None => names::without_arguments(name).into(),
        },
        None if is_coroutine(name) => names::function(name, walker.values.layouts.coroutines()),
        None => names::without_arguments(name).into(),
    }
}

/// Vtables by their address in the process.
pub(crate) fn vtables(layouts: &Layouts, modules: &[LoadedModule]) -> Vec<(u64, TypeId)> {
    let mut all = Vec::new();
    for (number, module) in modules.iter().enumerate() {
        let of_module = layouts.module(number).vtables.iter().filter(|vtable| !vtable.of_class);
        all.extend(of_module.map(|vtable| (vtable.address.wrapping_add(module.bias()), vtable.type_id)));
    }
    all.sort_unstable();
    all
}

/// The version of tokio, from the path of its sources.
fn version(layouts: &Layouts) -> Option<String> {
    layouts.coroutines().files().find_map(|file| {
        let (_, rest) = file.split_once("/tokio-")?;
        let (version, rest) = rest.split_once('/')?;
        let is_version =
            version.split('.').count() >= 3 && version.starts_with(|char: char| char.is_ascii_digit());
        (is_version && rest.starts_with("src/")).then(|| version.to_owned())
    })
}
