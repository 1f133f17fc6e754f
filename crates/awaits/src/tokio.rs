//! The tasks of tokio's runtimes.
//!
//! A task is one block: a header with its state and a vtable, its future, and links of the list of all tasks of its runtime.
//! The vtables are words in read-only data that hold the address of a function that polls tasks. A sweep of the heap finds
//! blocks with such vtables; the first live one leads to the runtime's own list, which has all tasks and no others. Fields are
//! found by their names, so their order does not matter.
//!
//! Source: `tokio/src/runtime/task/` of tokio 1.43 to 1.54.

mod cells;
mod headers;
mod lists;
mod roots;
mod sweep;

pub(crate) use headers::Headers;

use crate::futures::Futures;
use crate::held::{self, Held, Holdings};
use crate::memory::Pages;
use crate::values::Values;
use crate::walk::{Walked, Walker};
use crate::wrapped::{self, WrappedTask};
use crate::{deadlocks, names};
use cells::{Cells, Stage};
use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use stackglass_heapgraph::image::Image;
use stackglass_heapgraph::modules::LoadedModule;
use stackglass_profile::task_dump::{
    AsyncRuntime, DumpedTask, Holder, Lock, SharedKind, TaskDump, TaskState, WaitTarget,
};
use stackglass_symbols::layouts::{Layouts, Local, Shape, TypeId, is_coroutine};
use std::cell::RefCell;
use std::collections::BTreeMap;
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
    let Process { image, modules, layouts, .. } = *process;
    let values = Values { layouts, pages: Pages::new(image) };
    let types = Futures::new(layouts);
    let vtables = vtables(layouts, modules);
    let cells = Cells::find(&values, modules);
    let walker = Walker {
        values: &values,
        types: &types,
        vtables: &vtables,
        headers: cells.headers,
        wrapped: RefCell::default(),
    };
    let swept = sweep::cells(image, &cells);
    let lists = lists::of_schedulers(&values, &cells, &swept);
    let version = version(layouts);
    let mut dump = TaskDump { pid: image.pid, ..TaskDump::default() };
    let mut held: Vec<(usize, Holdings)> = Vec::new();
    let mut seen = HashSet::new();
    for list in &lists {
        let runtime = dump.runtimes.len();
        let version = version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
        dump.runtimes.push(AsyncRuntime { name: format!("tokio{version}, {}", list.kind) });
        for header in &list.tasks {
            if seen.insert(*header) {
                add(&walker, &cells, *header, Some(runtime), &mut dump, &mut held);
            }
        }
    }
    for header in swept.iter().filter(|header| !seen.contains(*header)) {
        let is_blocking = cells.at(&values, *header).is_some_and(|cell| cell.is_blocking);
        if is_blocking {
            add(&walker, &cells, *header, None, &mut dump, &mut held);
        }
    }
    roots::add(process, &walker, &mut dump, &mut held);
    wrapped::add(process.wrapped, &walker, &mut dump, &mut held);
    if dump.tasks.is_empty() {
        dump.remarks.push(nothing_found(layouts, &cells));
    }
    dump.locks = locks(&dump.tasks, &held, &mutex_offsets(layouts));
    dump.deadlocks = deadlocks::find(&dump.tasks, &dump.locks);
    dump
}

/// Why there are no tasks.
fn nothing_found(layouts: &Layouts, cells: &Cells<'_>) -> String {
    let has_types = layouts.coroutines().files().next().is_some();
    match (layouts.is_rust(), has_types, cells.is_empty()) {
        (false, ..) => "the program has no debug information of Rust: build it with `debug = 2` in its Cargo profile, and do not strip it",
        (true, false, _) => "its debug information has no types of async functions: it has no such functions, or its own crate needs `debug = 2` (or `true`) in the Cargo profile",
        (true, true, true) => "the program spawns no tasks of tokio",
        (true, true, false) => "no tokio runtime has a task now",
    }
    .to_owned()
}

/// Adds the task with a header at an address.
fn add(
    walker: &Walker<'_>,
    cells: &Cells<'_>,
    header: u64,
    runtime: Option<usize>,
    dump: &mut TaskDump,
    held: &mut Vec<(usize, Holdings)>,
) {
    let Some(cell) = cells.at(walker.values, header) else { return };
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
    let mut name = task_name(walker, cell.future_type);
    // A worker of the runtime is such a function, too.
    if cell.is_blocking && name.starts_with("tokio::runtime::scheduler::") {
        return;
    }
    // The state of a future that is polled changes; it is on the stack of its worker.
    let readable = future.filter(|_| matches!(state, TaskState::Waiting | TaskState::Ready));
    let walked = readable.map(|future| walker.walk(future)).unwrap_or_default();
    if let Some(future) = future {
        walker.wrapped.borrow_mut().claim(walker.values, dump.tasks.len(), future, &walked.wrapped);
    }
    let Walked { stack, waits, .. } = walked;
    if let Some(future) = readable {
        held.push((dump.tasks.len(), held::holdings(walker, future)));
    }
    // The type of a `Pin<Box<dyn Future>>` says nothing.
    if let [outermost] = &stack[..]
        && !is_coroutine(&walker.values.layout(cell.future_type).name)
    {
        name = outermost.function.clone();
    }
    dump.tasks.push(DumpedTask { id, runtime, state, name, stack, waits, ..DumpedTask::default() });
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
fn vtables(layouts: &Layouts, modules: &[LoadedModule]) -> Vec<(u64, TypeId)> {
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

/// What tasks hold and wait for, together.
fn locks(tasks: &[DumpedTask], held: &[(usize, Holdings)], mutex_offsets: &[u64]) -> Vec<Lock> {
    let mut found: BTreeMap<u64, Lock> = BTreeMap::new();
    let new = |kind, address| Lock { kind, address, holders: Vec::new(), waiters: Vec::new() };
    for (index, task) in tasks.iter().enumerate() {
        for wait in &task.waits {
            let WaitTarget::Shared { kind, address } = wait.target else { continue };
            let lock = found.entry(address).or_insert_with(|| new(kind, address));
            if lock.waiters.last() != Some(&index) {
                lock.waiters.push(index);
            }
        }
    }
    for (task, holdings) in held {
        for Held { kind, address, line } in &holdings.guards {
            let Some(lock) = found.get_mut(address) else { continue };
            // The guard knows best what it is of.
            lock.kind = *kind;
            if !lock.holders.iter().any(|holder| holder.task == *task) {
                lock.holders.push(Holder { task: *task, line: line.clone(), is_described: true });
            }
        }
    }
    // A guard has the address of the mutex, in which the semaphore is.
    let mut without_holder: HashMap<u64, u64> = HashMap::new();
    for lock in found.values().filter(|lock| lock.kind == SharedKind::Mutex && lock.holders.is_empty()) {
        let mutexes = mutex_offsets.iter().filter_map(|offset| lock.address.checked_sub(*offset));
        without_holder.extend(mutexes.map(|mutex| (mutex, lock.address)));
    }
    for (task, holdings) in held {
        for (word, line) in &holdings.hidden {
            let lock = without_holder.get(word).and_then(|address| found.get_mut(address));
            let Some(lock) = lock.filter(|lock| !lock.waiters.contains(task)) else { continue };
            if !lock.holders.iter().any(|holder| holder.task == *task) {
                lock.holders.push(Holder { task: *task, line: line.clone(), is_described: false });
            }
        }
    }
    found.into_values().collect()
}

/// Where mutexes have their semaphore: one offset for each type of protected data at most.
fn mutex_offsets(layouts: &Layouts) -> Vec<u64> {
    let mut offsets = Vec::new();
    for number in 0..layouts.len() {
        let layout = layouts.get(TypeId(number as u32));
        if layout.name.starts_with("tokio::sync::mutex::Mutex<")
            && let Shape::Struct(fields) = &layout.shape
            && let Some(semaphore) = fields.iter().find(|field| &*field.name == "s")
            && !offsets.contains(&semaphore.offset)
        {
            offsets.push(semaphore.offset);
        }
    }
    offsets
}
